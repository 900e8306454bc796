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

// outcomeRow is all that is known of one outcome. What prints or counts outcomes asks it.
type outcomeRow struct {
	name      string // in events and on the page
	state     string // in accounting, where the word is Slurm's
	one, many string // what has become of a job, and of several
	traits    outcomeTraits
}

type outcomeTraits uint8

const (
	ownFailure outcomeTraits = 1 << iota // the job failed, or overran what it had asked for
	lost                                 // the platform ended it
	imposed                              // it was ended from outside: what its processes exit with is not its own
	abrupt                               // its processes are killed without being asked to end
)

var outcomeRows = [outcomes]outcomeRow{
	NoOutcome:  {state: "RUNNING"},
	Completed:  {"completed", "COMPLETED", "has completed", "have completed", 0},
	Failed:     {"failed", "FAILED", "has failed", "have failed", ownFailure},
	Cancelled:  {"cancelled", "CANCELLED", "was cancelled", "were cancelled", imposed},
	TimedOut:   {"timed_out", "TIMEOUT", "has timed out", "have timed out", ownFailure | imposed},
	NodeFailed: {"node_failed", "NODE_FAIL", "was lost with its node", "were lost with their nodes", lost | imposed},
	Preempted:  {"preempted", "PREEMPTED", "was preempted", "were preempted", imposed},
	OutOfMemory: {"out_of_memory", "OUT_OF_MEMORY", "has run out of memory", "have run out of memory",
		ownFailure},
	DeadlineMissed: {"deadline", "DEADLINE", "has missed its deadline", "have missed their deadlines", ownFailure},
	BootFailed: {"boot_failed", "BOOT_FAIL", "was lost when its node started", "were lost when their nodes started",
		lost},
	Requeued: {"requeued", "REQUEUED", "was requeued", "were requeued", 0},
	Resized:  {"resized", "RESIZING", "goes on with other nodes", "go on with other nodes", abrupt},
	Revoked:  {"revoked", "REVOKED", "was revoked", "were revoked", 0},
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
