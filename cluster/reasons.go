package cluster

import "strings"

// A ReasonRow explains a word that squeue and scontrol show as a job's reason. Test produces it: FILE/TITLE is a
// scenario of sched/testdata/scenarios, PACKAGE.TestNAME a test.
type ReasonRow struct {
	Word      Reason
	Means, Do string
	Test      string
	Ended     bool // the job has
}

// ReasonRows are all words but those of limits.
func ReasonRows() []ReasonRow {
	at := func(word Reason, what, do, test string) ReasonRow { return ReasonRow{word, what, do, test, false} }
	end := func(word Reason, what, do, test string) ReasonRow { return ReasonRow{word, what, do, test, true} }
	return []ReasonRow{
		at(WaitPriority, "others go first, and it would delay one of them",
			"`muster why JOB` names what would help, often a shorter `--time`", "backfill/a long job does not"),
		at(WaitResources, "it goes first in a partition, and what it asks for is in use",
			"wait for the planned start, or ask for less: `muster why JOB`",
			"backfill/a short job passes the blocked one"),
		at(WaitDependency, "a job that it waits for is not over",
			"wait, or `scontrol update jobid=N dependency=`", "order/a dependency is waited for"),
		at(WaitDependencyNever, "its dependency can not come true any more",
			"`scancel`, or `scontrol update jobid=N dependency=`",
			"order/a dependency that can not come true any more"),
		at(WaitBegin, "its `--begin`, or the pause after a requeue, is not over",
			"wait, or `scontrol update jobid=N starttime=now`", "order/a begin time is waited for"),
		at(WaitHeldUser, "its user holds it", "`scontrol release N`",
			"order/held jobs are passed over, and go on when released"),
		at(WaitHeldAdmin, "an operator holds it", "ask the operators",
			"order/a job on hold that an admin holds says so"),
		at(WaitArrayLimit, "as many tasks of the array run as its `%` allows",
			"`scontrol update jobid=N arraytaskthrottle=M`", "order/no more tasks of an array at once than its limit"),
		at(WaitPartitionTime, "its time limit is above the partition's",
			"`scontrol update jobid=N timelimit=…`, or another partition",
			"order/jobs over a partition's time limit wait"),
		at(WaitPartitionNodes, "it asks for more nodes than the partition has, or allows",
			"fewer nodes, or another partition", "order/jobs over a partition's number of nodes wait"),
		at(WaitPartitionConfig, "the partition's nodes together can not hold its tasks",
			"fewer tasks, or another partition", "reasons/more tasks than the partition holds"),
		at(WaitPartitionDown, "the partition starts nothing", "wait for the operators, or another partition",
			"order/a partition that is down starts nothing"),
		at(WaitPartitionInactive, "the partition starts nothing and takes nothing",
			"wait for the operators, or another partition", "reasons/a partition that is inactive starts nothing"),
		at(WaitNodeNotAvail,
			"nodes of its `--nodelist` are out of service (UnavailableNodes), or it would run into a reservation",
			"leave the nodes open, or ask for less time", "reasons/a node asked for is out of service"),
		at(WaitNodesDown, "all nodes that could run it are out of service",
			"wait for them, or ask for other nodes", "reasons/all nodes that would do are out of service"),
		at(WaitLicenses, "others hold the licenses", "wait; `scontrol show licenses`", "nodes/licenses"),
		at(WaitReservation, "its reservation has not begun", "wait; `scontrol show reservation`",
			"reservations/inside from its begin on"),
		at(WaitResvDeleted, "its reservation is gone, it is held", "an operator's `scontrol release N`",
			"reservations/waiting jobs are held when it is gone"),
		at(WaitSiblings, "another cluster of the federation holds it, or the one that it was made at does not answer",
			"wait; `scontrol show federation` tells which members are there", "cluster.TestFederationLock"),
		at(WaitBurst, "it is about to stage in", "wait", "cluster.TestBurst"),
		at(WaitStageIn, "setup or data_in of burst_buffer.lua runs for it", "wait; `scontrol show burstbuffer`",
			"cluster.TestBurst"),
		at(WaitBurstOperation, "what it had before it was requeued is staged out or torn down", "wait",
			"cluster.TestBurstRequeued"),
		at(WaitRequeueHeld, "`scontrol requeuehold` put it back", "`scontrol release N`", "cluster.TestRequeue"),
		at(WaitLaunchFailedHeld, "no node could launch it",
			"see `muster why N` for the nodes' words, then `scontrol release N`", "cluster.TestLaunchFailed"),
		at("QOSUsageThreshold", "its user has used more than the QOS allows to go on with",
			"another QOS, or wait until usage has faded: `sshare`", "sched.TestUsageThreshold"),
		at("Job's account not permitted to use this partition",
			"AllowAccounts or DenyAccounts of the partition", "another account or partition",
			"reasons/a partition for other accounts"),
		at("Job's QOS not permitted to use this partition", "AllowQos or DenyQos of the partition",
			"another QOS or partition", "reasons/a partition for other QOS"),
		end(EndNonZeroExit, "its script failed", "read its output", "reasons/a script that fails"),
		end(EndTimeLimit, "it ran to its time limit", "ask for more `--time`",
			"backfill/the blocked one starts when it was planned to"),
		end(EndDeadline, "it could not end before its `--deadline`", "a later deadline, or `--time-min`",
			"times/a job that can not end before its deadline is removed as soon as that is certain"),
		end(EndLaunchFailure, "a node could not launch it", "see its output and `scontrol show node`",
			"cluster.TestLaunchOfAllocation"),
		end(EndNodeDown, "one of its nodes died", "submit it again, or `--requeue`", "cluster.TestNodeDown"),
		end(EndBadConstraints, "no set of nodes can ever run it", "ask for what `sinfo` shows",
			"reasons/what can never run ends at once"),
		end(EndOutOfMemory, "it used more memory than it asked for", "ask for more `--mem`",
			"reasons/more memory than there is"),
	}
}

// A LimitRow explains the words of a limit of associations or QOS.
type LimitRow struct {
	Name      string
	Words     []Reason
	Means, Do string
}

// LimitRows are all limits.
func LimitRows() (out []LimitRow) {
	for _, r := range limitTable() {
		what, do := limitMeaning(r.what)
		out = append(out, LimitRow{r.name, limitWords(&r), what, do})
	}
	return out
}

// limitWords lists the words of a limit, of those on resources for CPUs, memory, nodes and GPUs.
func limitWords(r *limitRow) (out []Reason) {
	kinds := []string{""}
	if strings.Contains(r.word, "*") {
		kinds = []string{"cpu", "mem", "node", "gres/gpu"}
	}
	for _, qos := range r.places() {
		for _, k := range kinds {
			out = append(out, r.reason(qos, k))
		}
	}
	return out
}

// places are where a limit may stand: false in an association, true in a QOS.
func (r *limitRow) places() (out []bool) {
	ofQOS := r.whose == scopeUser || r.whose == scopeAccount || r.what == ofLeast
	if !ofQOS {
		out = append(out, false)
	}
	if r.whose != scopeAssoc {
		out = append(out, true)
	}
	return out
}

// limitMeanings say what limits count, and what helps.
var limitMeanings = [...]struct {
	of       measure
	what, do string
}{
	{ofSubmits, "jobs in the queue and running", "refused at submission: wait until some are over"},
	{ofRunning, "jobs that run", "wait until one is over"},
	{ofWall, "the job's time limit", "ask for less `--time`"},
	{ofJob, "what the job asks for", "ask for less"},
	{ofNode, "what the job asks for on each node", "ask for less, or for more nodes"},
	{ofLeast, "what the job asks for is too little", "ask for more, or another QOS"},
	{ofJobMins, "what the job asks for, times its time limit", "ask for less, or less `--time`"},
	{
		ofHeld, "what running jobs hold, with what the job asks for",
		"wait until some are over, or ask for less",
	},
	{ofRunMins, "what running jobs hold, times the minutes left to them", "wait, or ask for less `--time`"},
}

// limitMeaning says what a limit counts, and what helps.
func limitMeaning(m measure) (what, do string) {
	for _, row := range limitMeanings {
		if row.of == m {
			return row.what, row.do
		}
	}
	return "what was used up", "wait until usage has faded, or another account"
}
