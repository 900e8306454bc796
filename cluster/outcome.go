package cluster

// Outcome is how a job or step ended.
type Outcome uint8

// The outcomes. NoOutcome while a job lives. They are numbers in the log: new ones come last.
const (
	NoOutcome Outcome = iota
	Completed
	Failed
	Cancelled
	TimedOut
	NodeFailed
	Preempted
	OutOfMemory
	DeadlineMissed
	BootFailed
	Requeued // an attempt ended because the job was requeued
	Resized  // the job goes on with other nodes
	Revoked  // another cluster of the federation has run the job, or it is over
	outcomes
)

// outcomeRow is all that is known of one outcome. All code that prints or counts outcomes asks it.
type outcomeRow struct {
	name         string // in events and on the page
	state, short string // in accounting and in lists, where the words are Slurm's
	number       uint32 // in Slurm's database
	one, many    string // what has become of a job, and of several
	means        string // what the state means, for manuals
	traits       outcomeTraits
}

type outcomeTraits uint8

const (
	ownFailure outcomeTraits = 1 << iota // the job failed, or overran what it had asked for
	lost                                 // the platform ended it
	imposed                              // it was ended from outside: what its processes exit with is not its own
	abrupt                               // its processes are killed without being asked to end
)

var outcomeRows = [outcomes]outcomeRow{
	NoOutcome: {state: "RUNNING"},
	Completed: {
		"completed", "COMPLETED", "CD", 3, "has completed", "have completed",
		"its script or command ended with code 0", 0,
	},
	Failed: {
		"failed", "FAILED", "F", 5, "has failed", "have failed",
		"it ended with another code", ownFailure,
	},
	Cancelled: {
		"cancelled", "CANCELLED", "CA", 4, "was cancelled", "were cancelled",
		"its user or an operator ended it", imposed,
	},
	TimedOut: {
		"timed_out", "TIMEOUT", "TO", 6, "has timed out", "have timed out",
		"it ran to its time limit", ownFailure | imposed,
	},
	NodeFailed: {
		"node_failed", "NODE_FAIL", "NF", 7, "was lost with its node", "were lost with their nodes",
		"a node of it was lost", lost | imposed,
	},
	Preempted: {
		"preempted", "PREEMPTED", "PR", 8, "was preempted", "were preempted",
		"it had to make room for another", imposed,
	},
	OutOfMemory: {
		"out_of_memory", "OUT_OF_MEMORY", "OOM", 11, "has run out of memory", "have run out of memory",
		"it needed more memory than it had", ownFailure,
	},
	DeadlineMissed: {
		"deadline", "DEADLINE", "DL", 10, "has missed its deadline", "have missed their deadlines",
		"it could not end in time", ownFailure,
	},
	BootFailed: {
		"boot_failed", "BOOT_FAIL", "BF", 9, "was lost when its node started", "were lost when their nodes started",
		"a node of it did not boot", lost,
	},
	Requeued: {
		"requeued", "REQUEUED", "RQ", 1 << 10, "was requeued", "were requeued",
		"it was put back into the queue", 0,
	},
	Resized: {
		"resized", "RESIZING", "RS", 1 << 13, "goes on with other nodes", "go on with other nodes",
		"its size is being changed", abrupt,
	},
	Revoked: {
		"revoked", "REVOKED", "RV", 1 << 19, "was revoked", "were revoked",
		"another cluster of the federation has it, or had it", 0,
	},
}

// Outcomes are all that a job that has ended can have.
func Outcomes() []Outcome {
	var list []Outcome
	for o := Completed; o < outcomes; o++ {
		list = append(list, o)
	}
	return list
}

func (o Outcome) row() outcomeRow {
	if o >= outcomes {
		return outcomeRow{} // of a newer version
	}
	return outcomeRows[o]
}

// String is the outcome's name in events and on the page; "" while the job lives.
func (o Outcome) String() string { return o.row().name }

// State is the job's state in accounting, in Slurm's word.
func (o Outcome) State() string { return o.row().state }

// Short is the letters that stand for the state in lists.
func (o Outcome) Short() string { return o.row().short }

// Means says in a manual what the state means.
func (o Outcome) Means() string { return o.row().means }

// Number is the number of the state in Slurm's database and for its scripts.
func (o Outcome) Number() uint32 { return o.row().number }

// NumberedOutcome finds an outcome by the number of a state in Slurm's database, of which bits above the eighth are
// flags; ok is false for a state that is none.
func NumberedOutcome(state uint32) (o Outcome, ok bool) {
	for _, flag := range [...]Outcome{Revoked, Requeued, Resized} {
		if state&outcomeRows[flag].number != 0 {
			return flag, true
		}
	}
	for o := Completed; o < outcomes; o++ {
		if outcomeRows[o].number == state {
			return o, true
		}
	}
	return NoOutcome, false
}

// Phrase says what has become of a job, or of several: "has failed", "have failed".
func (o Outcome) Phrase(several bool) string {
	if several {
		return o.row().many
	}
	return o.row().one
}

// Failure reports whether the job did not do what it was for, by its own fault or the platform's.
func (o Outcome) Failure() bool {
	return o.has(ownFailure) || o.has(lost)
}

// OwnFailure reports whether the job failed, or overran what it had asked for.
func (o Outcome) OwnFailure() bool { return o.has(ownFailure) }

// Lost reports whether the platform ended the job.
func (o Outcome) Lost() bool { return o.has(lost) }

// Imposed reports whether the job was ended from outside, so that its processes' exit codes are not its own.
func (o Outcome) Imposed() bool { return o.has(imposed) }

// Gentle reports whether processes are asked to end before they are killed. Those on nodes that a job has
// given up are not: the rest of it goes on.
func (o Outcome) Gentle() bool { return !o.has(abrupt) }

func (o Outcome) has(t outcomeTraits) bool { return o.row().traits&t != 0 }
