#!/bin/sh
# Installs muster from this bundle, without any network: install.sh server, or client --join ADDRESS --token TOKEN, …
# (muster install --help tells all). A server that is installed by it can give muster to machines of both architectures.
set -eu
cd "$(dirname "$0")"
case $(uname -m) in
x86_64 | amd64) cpu=amd64 ;;
aarch64 | arm64) cpu=arm64 ;;
*)
	echo "muster: there is no program for $(uname -m) in this bundle" >&2
	exit 1
	;;
esac
sha256sum --quiet -c SHA256SUMS >&2 || {
	echo "muster: this bundle is damaged" >&2
	exit 1
}
exec "./muster-linux-$cpu" install "$@"
