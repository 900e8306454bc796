#!/bin/bash
# Starts a cluster of simulated nodes for the later steps of a GitHub job. action.yml describes the inputs.
set -euo pipefail

die() {
	echo "::error::muster: $*"
	exit 1
}

[[ $INPUT_TIMEOUT =~ ^[0-9]{1,4}$ ]] || die "timeout: $INPUT_TIMEOUT: want seconds"
[ -z "$INPUT_PROGRAM" ] || [ -z "$INPUT_URL" ] || die "program and url: give one of them"
dir=$(mktemp -d "${RUNNER_TEMP:-/tmp}/muster.XXXXXX")
if [ -n "$INPUT_PROGRAM" ]; then
	cp -- "$INPUT_PROGRAM" "$dir/muster"
elif [ -n "$INPUT_URL" ]; then
	[[ $INPUT_SHA256 =~ ^[0-9a-f]{64}$ ]] || die "sha256: want the SHA-256 of the program at url, 64 hexadecimal digits"
	curl -fsSL --retry 5 -o "$dir/muster" -- "$INPUT_URL" || die "cannot fetch $INPUT_URL"
	sha256sum --check --status <<<"$INPUT_SHA256  $dir/muster" || die "$INPUT_URL does not have the given SHA-256"
else
	command -v go >/dev/null || die "go is not on this runner; give program, or url with sha256"
	(cd "$GITHUB_ACTION_PATH/../.." && CGO_ENABLED=0 go build -trimpath -o "$dir/muster" .)
fi
chmod 755 "$dir/muster"
"$dir/muster" install client --root "$dir/root" # the program under Slurm's names
bin=$dir/root/usr/local/bin
options=(--data "$dir/data" --socket "$dir/socket" --http none --hollow "$INPUT_NODES" --hollow-exec)
[ -z "$INPUT_CONF" ] || options+=(--conf "$INPUT_CONF")
nohup "$bin/muster" dev "${options[@]}" >"$dir/log" 2>&1 </dev/null &
pid=$!

export MUSTER_SOCKET=$dir/socket
for ((end = SECONDS + INPUT_TIMEOUT; ; )); do
	all=$("$bin/sinfo" -h -N -o %N 2>/dev/null | sort -u | wc -l) || all=0
	idle=$("$bin/sinfo" -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l) || idle=0
	((all == 0 || idle < all)) || break
	if ! kill -0 "$pid" 2>/dev/null || ((SECONDS >= end)); then
		cat "$dir/log"
		kill "$pid" 2>/dev/null || true
		die "the cluster did not become ready: $idle of $all nodes are idle after $INPUT_TIMEOUT s at most"
	fi
	sleep 0.2
done
echo "muster: $all nodes are idle"
echo "$bin" >>"$GITHUB_PATH"
echo "MUSTER_SOCKET=$MUSTER_SOCKET" >>"$GITHUB_ENV"
printf '%s\n' "socket=$MUSTER_SOCKET" "log=$dir/log" "pid=$pid" >>"$GITHUB_OUTPUT"
