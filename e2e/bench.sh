#!/bin/bash
# bench.sh: what muster takes for what users do, and, where a real Slurm is up (SLURM_CONF, Debian's
# commands in /usr/bin), what that takes in the same run, in turn (A B A B). Needs ../shared/bench.
# BENCH_ROUNDS=2, BENCH_PENDING=10000 and BENCH_N=1000 (jobs per mode) shorten it.
# CPU is counted where cgroup v1's cpuacct is there and this runs as root. Figures: wall-clock p50.
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
export PATH=$PATH:/usr/local/go/bin
src=${BENCH_SOURCE:-../shared/bench} rounds=${BENCH_ROUNDS:-2} pending=${BENCH_PENDING:-10000} n=${BENCH_N:-1000}
[ -f "$src/main.go" ] || { echo "bench: $src is not here; nothing is measured"; exit 0; }
dir=$(mktemp -d /tmp/bench.XXXXXX) && chmod 755 "$dir"
out=$dir/results; : >"$out"
root=/sys/fs/cgroup/cpuacct mine=$root/muster-bench.$$ theirs=$root/slurm-bench.$$
pid="" moved=()

# end_supervisors DIR: end, by pid, the supervisors that muster left for that data folder.
end_supervisors() {
	local p i
	for p in $(pgrep -f -- "internal supervisor --dir $1/"); do
		kill "$p" 2>/dev/null
		for i in $(seq 20); do kill -0 "$p" 2>/dev/null || break; sleep .1; done
		kill -KILL "$p" 2>/dev/null
	done
}

end_muster() {
	[ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	end_supervisors "$dir"
	pid=""
}
finish() {
	end_muster
	for p in "${moved[@]}"; do [ -d "/proc/$p" ] && echo "$p" >"$root/cgroup.procs"; done 2>/dev/null
	for g in "$mine" "$theirs"; do
		[ -d "$g" ] || continue
		for _ in $(seq 50); do rmdir "$g" 2>/dev/null && break; while read -r p; do echo "$p" >"$root/cgroup.procs"; done <"$g/cgroup.procs" 2>/dev/null; sleep .1; done
	done
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

(cd "$src" && CGO_ENABLED=0 go build -o "$dir/clusterbench" .) || exit 1
acct=""; [ "$(id -u)" = 0 ] && mkdir "$mine" 2>/dev/null && mkdir "$theirs" 2>/dev/null && acct=yes

# inside GROUP COMMAND...: run with this shell in the group, so that clients count too.
inside() { local g=$1; shift; (
	[ -n "$acct" ] && echo "$BASHPID" >"$g/cgroup.procs" && export CLUSTERBENCH_CPUACCT=$g/cpuacct.usage
	exec "$@"
); }
start_muster() { # DIR ARGS...
	local d=$1; shift
	env -u SLURM_CONF bash -c '[ -n "$1" ] && echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "${acct:+$mine}" \
		"$PWD/bin/muster" dev --data "$d" --socket "$dir/s" "$@" >"$dir/log" 2>&1 &
	pid=$!
}
as_muster() { inside "$mine" env -u SLURM_CONF "PATH=$PWD/bin:$PATH" "MUSTER_SOCKET=$dir/s" "$@"; }
slurm=""
if [ -n "${SLURM_CONF:-}" ] && PATH=/usr/bin:/bin timeout 5 /usr/bin/sinfo -h >/dev/null 2>&1; then
	slurm=yes
	if [ -n "$acct" ]; then
		for c in slurmctld slurmd slurmdbd munged slurmstepd; do
			for p in $(pgrep -x "$c"); do echo "$p" >"$theirs/cgroup.procs" 2>/dev/null && moved+=("$p"); done
		done
	fi
fi
as_slurm() { inside "$theirs" env "PATH=/usr/bin:/bin:/usr/sbin" "SLURM_CONF=${SLURM_CONF:-}" "$@"; }
now() { date +%s%N; }
note() { echo "$1 $2=$3" >>"$out"; }
idle_bytes() { local t=0 p; for p in "$pid" $(pgrep -f -- "internal supervisor --dir $dir/"); do t=$((t + $(awk '/^Rss:/{print $2}' "/proc/$p/smaps_rollup" 2>/dev/null || echo 0))); done; echo "$t"; }

# From nothing to the first job's end, then idle memory and CPU.
from_nothing() {
	local i t0 a b; rm -rf "$dir/d"; t0=$(now)
	start_muster "$dir/d" --hollow 4x16c64g --hollow-exec
	for i in $(seq 500); do as_muster sbatch -Q -W -o /dev/null --wrap true 2>/dev/null && break; sleep .01; done
	note muster first_job_ms $((($(now) - t0) / 1000000))
	sleep 3
	note muster idle_rss_mb "$(awk -v k="$(idle_bytes)" 'BEGIN{printf "%.1f", k/1024}')"
	if [ -n "$acct" ]; then
		a=$(cat "$mine/cpuacct.usage"); sleep 20; b=$(cat "$mine/cpuacct.usage")
		note muster idle_cpu_ms_per_s "$(awk -v a="$a" -v b="$b" 'BEGIN{printf "%.2f", (b-a)/1e6/20}')"
	fi
	end_muster; rm -rf "$dir/d"
}
round() { # WHO
	local who=$1 cb=$dir/clusterbench
	"as_$who" "$cb" submit -n 100 -pn 400 -arrays ""
	"as_$who" "$cb" jobs -n "$n" -modes start,each,array
	"as_$who" "$cb" srun -k 20 -wider "" -p 0
	"as_$who" "$cb" query -n "$pending" -k 10
}

make -s build || exit 1
from_nothing
if [ -n "$slurm" ]; then
	start_muster "$dir/d" --conf "$SLURM_CONF" --hollow conf --hollow-exec
else
	start_muster "$dir/d" --hollow 8x16c64g8gpu:h100 --hollow-exec
fi
for _ in $(seq 100); do as_muster sinfo -h 2>/dev/null | grep -q idle && break; sleep .05; done
for i in $(seq "$rounds"); do
	for who in muster ${slurm:+slurm}; do
		round "$who" 2>>"$dir/errors" | while read -r line; do
			for w in $line; do case $w in *=*) echo "$who $w";; esac; done
		done >>"$out"
		echo "bench: round $i of $who done, load $(cut -d' ' -f1 /proc/loadavg)" >&2
	done
done
# The REST interface: submissions on one kept connection and on eight, and the list of 10,000 jobs.
end_muster
for i in $(seq "$rounds"); do
	"${GO:-go}" test -count=1 -run 'TestBenchREST$' -v -timeout 10m ./e2e -bench-rest=$((n * 2)) 2>>"$dir/errors" | sed -n 's/^\(rest_[a-z0-9_]*=\)/muster \1/p' >>"$out"
done
[ -n "${BENCH_RAW:-}" ] && cp "$out" "$BENCH_RAW"
[ -s "$dir/errors" ] && sort "$dir/errors" | uniq -c | sort -rn | head -5 >&2
awk '
{ split($2, kv, "="); k = $1 " " kv[1]; sum[k] += kv[2]; num[k]++ }
function mean(who, key) { k = who " " key; return num[k] ? sum[k]/num[k] : -1 }
function text(v) { return v < 0 ? "-" : sprintf(v < 10 ? "%.2f" : "%.1f", v) }
# row NAME KEY UNIT CPUKEY SENSE BAR: SENSE < means the bar is a most, > a least.
function row(name, key, unit, cpu, sense, bar,   m, s, r, ok) {
	m = mean("muster", key); s = mean("slurm", key)
	if (m < 0) return
	r = (s > 0 && m > 0) ? sprintf("%.1fx", sense == "<" ? s/m : m/s) : "-"
	ok = bar == "" ? "" : ((sense == "<" ? m <= bar : m >= bar) ? "ok  " : "MISS") " " sense "= " bar
	printf "%-34s %9s %-5s %9s %9s %9s %7s  %s\n", name, text(m), unit, text(mean("muster", cpu)), text(s), text(mean("slurm", cpu)), r, ok
}
END {
	printf "%-34s %9s %-5s %9s %9s %9s %7s  %s\n", "operation", "muster", "unit", "CPU ms", "slurm", "CPU ms", "ratio", "bar"
	row("sbatch, one after the other", "seq_p50_ms", "ms", "seq_cpu_ms", "<", 5)
	row("sbatch, 8 in parallel", "par_per_s", "1/s", "par_cpu_ms", ">", 350)
	row("sbatch to the first line run", "start_p50_ms", "ms", "", "<", 30)
	row("jobs, one sbatch each", "each_per_s", "1/s", "each_cpu_ms", ">", "")
	row("array of jobs", "array_per_s", "1/s", "array_cpu_ms", ">", 250)
	row("array: CPU of a job", "array_cpu_ms", "ms", "", "<", 7)
	row("srun -n1", "n1_p50_ms", "ms", "n1_cpu_ms", "<", 15)
	row("srun -N4 -n16", "wide_p50_ms", "ms", "wide_cpu_ms", "<", 60)
	row("steps in an allocation", "steps_per_s", "1/s", "step_cpu_ms", ">", 80)
	row("squeue, all pending", "squeue_ms", "ms", "squeue_cpu_ms", "<", 80)
	row("squeue -t R", "squeue_run_ms", "ms", "squeue_run_cpu_ms", "<", 8)
	row("sacct -j", "sacct_j_ms", "ms", "sacct_j_cpu_ms", "<", 10)
	row("REST submit, one connection", "rest_1_per_s", "1/s", "", ">", 3000)
	row("REST submit, 8 connections", "rest_8_per_s", "1/s", "", ">", 10000)
	row("disk: 4 KiB to stay", "rest_sync_ms", "ms", "", "<", "")
	row("REST list of 10,000 jobs", "rest_list_ms", "ms", "", "<", 80)
	row("REST list, first byte", "rest_first_ms", "ms", "", "<", 5)
	row("idle memory", "idle_rss_mb", "MB", "", "<", 60)
	row("idle CPU", "idle_cpu_ms_per_s", "ms/s", "", "<", 1)
	row("nothing to first job done", "first_job_ms", "ms", "", "<", 1000)
}' "$out"
