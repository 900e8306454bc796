#!/bin/sh
# Makes a machine of a cloud a member of a muster cluster, at its first boot. /etc/muster/cloud.env has the settings.
# "muster-cloud-join publish", on a server, renews the join tokens in the secret store.
set -eu
umask 077
. /etc/muster/cloud.env # ROLE SERVERS FIRST PROGRAM_URL PROGRAM_SHA256 TOKEN_USES TOKEN_EXPIRES
PATH=/usr/local/sbin:/usr/local/bin:$PATH
get=/etc/muster/cloud-secret-get put=/etc/muster/cloud-secret-put

die() {
	echo "muster-cloud-join: $*" >&2
	exit 1
}

# publish creates a token for servers and one for clients, and stores them. They are in no argument of a process.
publish() {
	for role in server client; do
		token=$(muster token create --role "$role" --uses "$TOKEN_USES" --expires "$TOKEN_EXPIRES")
		printf '%s\n' "$token" | "$put" "$role" || die "cannot store the token for the role $role"
	done
}

if [ "${1:-}" = publish ]; then
	publish
	exit
fi
[ ! -e /var/lib/muster/trust/cert.pem ] || exit 0

mkdir -p /var/lib/muster
dir=$(mktemp -d /var/lib/muster/join.XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
curl -fsSL --retry 10 --retry-connrefused -o "$dir/muster" "$PROGRAM_URL" || die "cannot fetch $PROGRAM_URL"
echo "$PROGRAM_SHA256  $dir/muster" | sha256sum -c --status || die "$PROGRAM_URL does not have the given SHA-256"
chmod 755 "$dir/muster"

# The store holds "none" until the cluster exists. A store that fails, or any other text, creates no cluster.
tries=180
until "$get" "$ROLE" >"$dir/token" && [ -s "$dir/token" ] &&
	{ [ "$(cat "$dir/token")" != none ] || { [ "$ROLE" = server ] && [ "$FIRST" = yes ]; }; }; do
	tries=$((tries - 1))
	[ "$tries" -gt 0 ] || die "no token for the role $ROLE is in the secret store"
	sleep 5
done
if [ "$(cat "$dir/token")" = none ]; then
	"$dir/muster" install server >/dev/null # it prints tokens of its own
	muster token list | tail -n +2 | while read -r id _; do muster token revoke "$id"; done
	rm -f /var/lib/muster/join-commands
	publish
	exit
fi
for s in $SERVERS; do set -- "$@" --join "$s"; done
"$dir/muster" install "$ROLE" --token-file "$dir/token" "$@"
