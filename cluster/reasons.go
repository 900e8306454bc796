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
		at(WaitPriority, "other jobs have higher priority, and starting this one would delay them",
			"`muster why JOB` names changes that help, often a shorter `--time`", "backfill/a long job does not"),
		at(WaitResources, "it is the next job of its partition, and the resources that it needs are in use",
			"wait for the planned start, or request less: see `muster why JOB`",
			"backfill/a short job passes the blocked one"),
		at(WaitDependency, "a job that it depends on has not ended",
			"wait, or `scontrol update jobid=N dependency=`", "order/a dependency is waited for"),
		at(WaitDependencyNever, "its dependency can no longer be satisfied",
			"`scancel`, or `scontrol update jobid=N dependency=`",
			"order/a dependency that cannot come true any more"),
		at(WaitBegin, "its `--begin` time, or the pause after a requeue, has not passed",
			"wait, or `scontrol update jobid=N starttime=now`", "order/a begin time is waited for"),
		at(WaitHeldUser, "its user has put it on hold", "`scontrol release N`",
			"order/held jobs are passed over, and go on when released"),
		at(WaitHeldAdmin, "an operator has put it on hold", "ask an operator",
			"order/a job on hold that an admin holds says so"),
		at(WaitArrayLimit, "the array already runs as many tasks as its `%` limit allows",
			"`scontrol update jobid=N arraytaskthrottle=M`",
			"order/no more tasks of an array at once than its limit"),
		at(WaitPartitionTime, "its time limit exceeds that of the partition",
			"`scontrol update jobid=N timelimit=…`, or another partition",
			"order/jobs over a partition's time limit wait"),
		at(WaitPartitionNodes, "it requests more nodes than the partition has or allows",
			"request fewer nodes, or another partition", "order/jobs over a partition's number of nodes wait"),
		at(WaitPartitionConfig, "the nodes of the partition cannot hold all of its tasks",
			"request fewer tasks, or another partition", "reasons/more tasks than the partition holds"),
		at(WaitPartitionDown, "the partition does not start jobs", "wait, or use another partition",
			"order/a partition that is down starts nothing"),
		at(WaitPartitionInactive, "the partition neither accepts nor starts jobs",
			"wait, or use another partition", "reasons/a partition that is inactive starts nothing"),
		at(WaitNodeNotAvail,
			"nodes of its `--nodelist` are out of service (UnavailableNodes), or it would overlap a reservation",
			"do not name nodes, or request less time", "reasons/a node asked for is out of service"),
		at(WaitNodesDown, "all nodes that could run it are out of service",
			"wait, or request other nodes", "reasons/all nodes that would do are out of service"),
		at(WaitLicenses, "other jobs hold the licenses", "wait; see `scontrol show licenses`", "nodes/licenses"),
		at(WaitReservation, "its reservation has not started", "wait; see `scontrol show reservation`",
			"reservations/inside from its begin on"),
		at(WaitResvDeleted, "its reservation was deleted, and the job is on hold",
			"ask an operator for `scontrol release N`",
			"reservations/waiting jobs are held when it is gone"),
		at(WaitSiblings, "another cluster of the federation is starting it, or its origin cluster is unreachable",
			"wait; `scontrol show federation` lists the members that are reachable", "cluster.TestFederationLock"),
		at(WaitBurst, "its burst buffer is about to be staged in", "wait", "cluster.TestBurst"),
		at(WaitStageIn, "the setup or data_in function of burst_buffer.lua is running for it",
			"wait; see `scontrol show burstbuffer`",
			"cluster.TestBurst"),
		at(WaitBurstOperation, "the burst buffer of its previous run is being staged out or torn down", "wait",
			"cluster.TestBurstRequeued"),
		at(WaitRequeueHeld, "it was requeued on hold by `scontrol requeuehold`", "`scontrol release N`",
			"cluster.TestRequeue"),
		at(WaitLaunchFailedHeld, "no node was able to launch it",
			"see `muster why N` for the cause, then `scontrol release N`", "cluster.TestLaunchFailed"),
		at("QOSUsageThreshold", "its user is below the fair share that the QOS requires",
			"use another QOS, or wait until usage has decayed: see `sshare`", "sched.TestUsageThreshold"),
		at("Job's account not permitted to use this partition",
			"AllowAccounts or DenyAccounts of the partition excludes its account", "use another account or partition",
			"reasons/a partition for other accounts"),
		at("Job's QOS not permitted to use this partition", "AllowQos or DenyQos of the partition excludes its QOS",
			"use another QOS or partition", "reasons/a partition for other QOS"),
		end(EndNonZeroExit, "its script failed", "read its output", "reasons/a script that fails"),
		end(EndTimeLimit, "it reached its time limit", "request more `--time`",
			"backfill/the blocked one starts when it was planned to"),
		end(EndDeadline, "it could not end before its `--deadline`", "set a later deadline, or `--time-min`",
			"times/a job that cannot end before its deadline is removed as soon as that is certain"),
		end(EndLaunchFailure, "a node failed to launch it", "see its output and `scontrol show node`",
			"cluster.TestLaunchOfAllocation"),
		end(EndNodeDown, "one of its nodes failed", "resubmit it, or submit with `--requeue`",
			"cluster.TestNodeDown"),
		end(EndBadConstraints, "no set of nodes can ever run it", "request what `sinfo` shows",
			"reasons/what can never run ends at once"),
		end(EndOutOfMemory, "it used more memory than it requested", "request more `--mem`",
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
	{ofSubmits, "pending and running jobs", "submissions are refused: wait until some jobs end"},
	{ofRunning, "running jobs", "wait until one ends"},
	{ofWall, "the time limit of the job", "request less `--time`"},
	{ofJob, "the resources that the job requests", "request less"},
	{ofNode, "the resources that the job requests per node", "request less, or more nodes"},
	{ofLeast, "the resources that the job requests, as a minimum", "request more, or another QOS"},
	{ofJobMins, "the requested resources times the time limit", "request less, or less `--time`"},
	{
		ofHeld, "the resources of running jobs and of the job itself",
		"wait until some jobs end, or request less",
	},
	{ofRunMins, "the resources of running jobs times their remaining minutes", "wait, or request less `--time`"},
}

// limitMeaning says what a limit counts, and what helps.
func limitMeaning(m measure) (what, do string) {
	for _, row := range limitMeanings {
		if row.of == m {
			return row.what, row.do
		}
	}
	return "past usage", "wait until usage has decayed, or use another account"
}
