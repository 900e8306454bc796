#!/bin/sh
# Installs muster on this machine, from a server of its cluster. As root:
#   curl -fsSL http://SERVER:7440/install.sh | sh -s -- client --token TOKEN
# The first word is what the machine becomes: client, server or login; --uninstall, --dry-run and all
# other options are those of "muster install --help". This script only fetches the program for this
# machine's processor, checks it, and runs that.
set -eu

server='@SERVER@'
sums='@SUMS@'

die() {
	echo "muster: $*" >&2
	exit 1
}

# arch prints the processor as the files are called.
arch() {
	case $(uname -m) in
	x86_64 | amd64) echo amd64 ;;
	aarch64 | arm64) echo arm64 ;;
	*) uname -m ;;
	esac
}

# wanted prints the SHA-256 that the program for a processor must have.
wanted() {
	printf '%s\n' "$sums" | while read -r name sum; do
		if [ "$name" = "$1" ]; then echo "$sum"; fi
	done
}

# sum prints a file's SHA-256.
sum() {
	if command -v sha256sum >/dev/null; then
		sha256sum <"$1" | cut -d' ' -f1
	elif command -v openssl >/dev/null; then
		openssl dgst -sha256 -r <"$1" | cut -d' ' -f1
	else
		die "neither sha256sum nor openssl is here to check the program with"
	fi
}

fetch() {
	if command -v curl >/dev/null; then
		curl -fsSL --retry 5 -o "$2" "$1"
	elif command -v wget >/dev/null; then
		wget -q -O "$2" "$1"
	else
		die "neither curl nor wget is here to fetch the program with"
	fi
}

main() {
	[ "$(uname -s)" = Linux ] || die "this machine runs $(uname -s); muster needs Linux"
	[ "$(id -u)" = 0 ] || die "only root can install muster: ... | sudo sh -s -- $1 ..."
	cpu=$(arch)
	want=$(wanted "$cpu")
	[ -n "$want" ] || die "$server has no muster for $cpu; put it there as /var/lib/muster/download/muster-linux-$cpu"
	dir=
	trap '[ -z "$dir" ] || rm -rf "$dir"' EXIT
	trap 'exit 1' HUP INT TERM
	umask 022
	for place in "${TMPDIR:-/tmp}" /var/lib /root; do # one where programs may be run
		dir=$(mktemp -d "$place/muster.XXXXXX" 2>/dev/null) || continue
		printf '#!/bin/sh\n' >"$dir/try"
		chmod 755 "$dir/try"
		"$dir/try" 2>/dev/null && break
		rm -rf "$dir"
		dir=
	done
	[ -n "$dir" ] || die "found no folder where programs may be run; name one with TMPDIR"
	fetch "http://$server/download/muster-linux-$cpu" "$dir/muster" || die "could not fetch the program from $server"
	[ "$(sum "$dir/muster")" = "$want" ] || die "the program that came from $server is not the right one (SHA-256); nothing was installed"
	chmod 755 "$dir/muster"
	MUSTER_FROM=$server "$dir/muster" install "$@" </dev/null
}

[ $# -gt 0 ] || die "say what this machine becomes: ... | sh -s -- client --token TOKEN (or server, or login)"
main "$@"
