# Functions for the ways to end (BASH_ENV, behind those of ../prelude.sh).

# preempt: a job of a higher tier takes the node, until both are over.
preempt() {
	local p
	p=$(sbatch --parsable -o /dev/null -p priority -w "$N" --exclusive --mem=0 --wrap 'sleep 60')
	until_ 400 state_is RUNNING "$p"
	scancel "$J" 2>/dev/null
	scancel "$p"
	fin "$p"
}
# over ID: the job holds nothing any more.
over() {
	local s
	s=$(squeue -h -t all -o %T -j "$1" 2>&1) || { [[ $s == *"Invalid job id"* ]]; return; }
	! grep -qE 'RUNNING|COMPLETING|SUSPENDED|CONFIGURING|STOPPED|SPECIAL|REQUEUE|PENDING|SIGNALING|RESIZING' <<<"$s"
}
# both_told ID: the records of both tasks are under the array's id, as the reference has them in the end.
both_told() { [ "$(sacct -n -X -P -o jobid -j "$1" | grep -c _)" = 2 ]; }
# rows ID: its records, once they are whole.
rows() {
	until_ 150 acct_ended "$1"
	[ "$SHAPE" = array ] && until_ 150 both_told "$1"
	sacct -n -P -D -o jobid,state,exitcode -j "$1"
}
