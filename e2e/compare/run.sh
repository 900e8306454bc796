#!/bin/bash
# run.sh: one list of commands against a real Slurm and against muster, side by side.
# The reference is the cluster of SLURM_CONF, or that of ../shared/oracle/oracle (as root).
# COMPARE_ONLY=TEXT or numbers: only these commands.  COMPARE_ARGS: further options of the program.
# COMPARE_LIFE=yes: the lives of jobs (life/) instead of the list of commands, beside a reference with the lines of life/slurm.conf.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
export PATH=$PATH:/usr/local/go/bin CGO_ENABLED=0
oracle=../shared/oracle/oracle
mine="" dir="" down=""

# end_supervisors DIR: end, by pid, the supervisors that muster left for that data folder.
end_supervisors() {
	local p i
	for p in $(pgrep -f -- "internal supervisor --dir $1/"); do
		kill "$p" 2>/dev/null
		for i in $(seq 20); do kill -0 "$p" 2>/dev/null || break; sleep .1; done
		kill -KILL "$p" 2>/dev/null
	done
}

finish() {
	[ -n "$mine" ] && kill "$mine" 2>/dev/null && wait "$mine" 2>/dev/null
	[ -n "$dir" ] && end_supervisors "$dir"
	[ -n "$down" ] && bash "$oracle" down "${of[@]}" >/dev/null 2>&1
	[ -n "$dir" ] && rm -rf "$dir"
}
trap finish EXIT

of=() program=./e2e/compare
if [ -n "${COMPARE_LIFE:-}" ]; then
	program=./e2e/compare/life of=(/tmp/oracle-life)
	export ORACLE_PORT_BASE=${ORACLE_PORT_BASE:-27900} ORACLE_EXTRA_CONF=$PWD/e2e/compare/life/slurm.conf
	grep -qs KillWait=8 "${SLURM_CONF:-}" || unset SLURM_CONF
fi

up() { [ -n "${SLURM_CONF:-}" ] && PATH=/usr/bin:/bin SLURM_CONF=$SLURM_CONF timeout 5 /usr/bin/sinfo -h >/dev/null 2>&1; }

if ! up && [ -f "$oracle" ] && [ "$(id -u)" = 0 ]; then
	found=$(bash "$oracle" env "${of[@]}" 2>/dev/null) && eval "$found"
	up || { eval "$(bash "$oracle" up "${of[@]}")" && down=yes; }
fi
if ! up; then
	echo "compare: no reference is here: neither SLURM_CONF nor $oracle leads to a real Slurm. The commands would be:"
	grep -v -e '^#' -e '^$' e2e/compare/commands.txt
	exit 0
fi

make -s build || exit 1
dir=$(mktemp -d /tmp/cmp.XXXXXX) && chmod 755 "$dir"
# Job ids that can be told from other numbers (megabytes, array sizes): above 2100, with which muster starts too.
burn() { PATH=/usr/bin:/bin sbatch --parsable -H -o /dev/null --wrap true; }
last=$(burn)
while [ "${last:-9999}" -lt 2100 ]; do
	for _ in 1 2 3 4 5 6 7 8; do burn >/dev/null & done; for j in $(jobs -p); do [ "$j" = "$mine" ] || wait "$j"; done
	last=$(burn)
done
PATH=/usr/bin:/bin scancel -u "$(id -un)" >/dev/null 2>&1
for f in "$(dirname "$SLURM_CONF")"/{topology,gres,cgroup}.conf; do [ -f "$f" ] && cp "$f" "$dir/"; done
{ cat "$SLURM_CONF"; echo "FirstJobId=$((last + 1))"; } >"$dir/slurm.conf"
env -u SLURM_CONF bin/muster dev --data "$dir/d" --socket "$dir/s.sock" --conf "$dir/slurm.conf" --hollow conf --hollow-exec >"$dir/log" 2>&1 &
mine=$!
for _ in $(seq 100); do MUSTER_SOCKET=$dir/s.sock bin/sinfo -h 2>/dev/null | grep -q idle && break; sleep .05; done
chmod 755 "$dir/d"
# The reference's QOS, accounts and users.
ref() { PATH=/usr/bin:/bin sacctmgr -nP show "$@"; }
own() { MUSTER_SOCKET=$dir/s.sock bin/sacctmgr -i "$@" </dev/null >/dev/null; }
ref qos format=name,priority,maxwall,grptres,maxtres,maxtrespu,maxjobspu,maxsubmitpu,flags | while IFS='|' read -r n p w g t u j s f; do
	[ "$n" = normal ] || own add qos "$n" priority="$p" ${w:+maxwall=$w} ${g:+grptres=$g} ${t:+maxtres=$t} ${u:+maxtrespu=$u} ${j:+maxjobspu=$j} ${s:+maxsubmitjobspu=$s} ${f:+flags=$f}
done
ref assoc tree user= format=account,parentname,fairshare | while IFS='|' read -r a p f; do
	a=${a## } && [ "$a" != root ] && own add account "${a// /}" parent="$p" fairshare="$f" description="$(ref account "${a// /}" format=descr)" organization="$(ref account "${a// /}" format=org)"
done
ref assoc format=user,account,fairshare,qos | while IFS='|' read -r u a f q; do
	case $u in '') ;; root) own modify user root set qos="$q" ;; *) own add user "$u" account="$a" fairshare="$f" qos="$q" ;; esac
done
go run $program -dir "$dir" -slurm-conf "$SLURM_CONF" -bin "$PWD/bin" -socket "$dir/s.sock" -only "${COMPARE_ONLY:-}" ${COMPARE_ARGS:-}
