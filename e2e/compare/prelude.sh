# Functions for the commands of commands.txt (BASH_ENV of each).
unset BASH_ENV

# until N COMMAND: poll a command until it succeeds, N tenths of a second at most.
until_() { local n=$1 i; shift; for ((i = 0; i < n; i++)); do "$@" >/dev/null 2>&1 && return 0; sleep .1; done; return 1; }

state_is() { local s; s=$(squeue -h -t all -o %T -j "$2" 2>/dev/null | sort -u | tr '\n' ' '); [[ $s =~ ^($1)\ $ ]]; }
# state ID STATE: wait until the job is in the state.  fin ID...: until it has ended.
state() { until_ 100 state_is "$2" "$1"; }
all_ended() { ! squeue -h -t all -o %T -j "$1" 2>/dev/null | grep -qE 'PENDING|RUNNING|COMPLETING|SUSPENDED|CONFIGURING|STOPPED|SPECIAL|REQUEUE|SIGNALING|RESIZING'; }
fin() { local j; for j; do until_ 150 all_ended "$j"; done; }
# acct ID: wait until history has the end of the job and of its steps.
acct_ended() { local s; s=$(sacct -n -P -o state -j "$1" 2>/dev/null) && [ -n "$s" ] && ! grep -qE 'PENDING|RUNNING' <<<"$s"; }
acct() { local j; for j; do fin "$j"; until_ 80 acct_ended "$j"; done; }
# whole ID...: the same, and until history has the job's own row in full: Slurm's is filled in seconds later.
acct_whole() { [ -n "$(sacct -n -X -P -o partition -j "$1" 2>/dev/null)" ]; }
whole() { local j; for j; do acct "$j"; until_ 120 acct_whole "$j"; done; }
reason_is() { [[ $(squeue -h -o %r -j "$1") == $2 ]]; }
reason() { until_ 100 reason_is "$1" "$2"; }
file_has() { grep -qs -- "$2" "$1"; }
filled() { until_ 100 file_has "$1" "${2:-.}"; }
sub() { sbatch --parsable "$@"; }
# batch TEXT OPTIONS...: submit a script, wait for its end, print its output.
batch() { local t=$1 j; shift; j=$(printf '#!/bin/bash\n%s\n' "$t" | sbatch --parsable -J batch -o out.%j "$@") || return; fin "$j"; cat "out.$j"; }
# What the environment holds of Slurm's. What muster never sets (SLURM_CONF and the ports that its srun does not
# listen on) is compared once, apart.
vars() { env | grep -vE '^SLURM_(CONF|JOB_START_TIME|SRUN_COMM_PORT|STEP_LAUNCHER_PORT)=' | grep -E "^(SLURM|SRUN|SBATCH|CUDA|ROCR|ZE_|GPU_|TMPDIR|ENVIRONMENT|HOSTNAME)" | sort; }
export -f vars
# held OPTIONS...: a job that stays pending.
held() { sbatch --parsable -H -o /dev/null "$@" --wrap 'sleep 30'; }
as() { local u=$1; shift; setpriv --reuid "$u" --regid "$u" --init-groups env HOME=/tmp USER="$u" LOGNAME="$u" "$@"; }

# have COMMAND: go on only where Debian's command is.  pbs COMMAND ...: that one, or muster's.
have() { [ -x "/usr/bin/$1" ] || exit 0; }
pbs() { if type muster >/dev/null 2>&1; then muster "$@"; else "$@"; fi; }

no_jobs() { [ -z "$(squeue -h 2>/dev/null)" ]; }
idle_nodes() { ! sinfo -h -N -o %T | grep -qv '^idle$'; }
# restore: cancel everything and bring the nodes back. What a command has made that was stopped in its middle goes,
# too: others would run elsewhere or be refused, and look different.
restore() {
	local j n
	j=$(squeue -h -o %A 2>/dev/null | sort -u)
	[ -n "$j" ] && scancel $j >/dev/null 2>&1 && scancel -s KILL $j >/dev/null 2>&1
	until_ 60 no_jobs || { j=$(squeue -h -o %A 2>/dev/null | sort -u); scancel -s KILL $j; scancel -f -s KILL $j; until_ 200 no_jobs; }
	if ! idle_nodes; then
		for n in $(sinfo -h -N -o '%N %T' | awk '$2 ~ /drain|drng|down|fail/ {print $1}' | sort -u); do scontrol update nodename="$n" state=resume; done
		until_ 60 idle_nodes
	fi
	[ -z "$stopped" ] && return
	for n in $(scontrol show -o reservation | grep -o '^ReservationName=[^ ]*'); do scontrol delete "$n"; done
	for n in $(sinfo -a -h -o %R | sort -u | grep -vxE 'debug|train|priority'); do scontrol delete partitionname="$n"; done
	scontrol update nodename='gpu-node-[001-008]' weight=1
} >/dev/null 2>&1
