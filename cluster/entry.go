package cluster

import (
	"time"
)

// Identity is who proposes a command: a user by peer credentials, a node, or a server.
type Identity struct {
	UID  uint32   `json:"uid"`
	GID  uint32   `json:"gid"`
	User string   `json:"user,omitempty"`
	Node NodeName `json:"node,omitempty"`
	// Admin marks an operator who is not root: the user who runs the daemons.
	Admin bool `json:"admin,omitempty"`
	// NodeRoot marks root of the machine Node, who may change the nodes that it is, and nothing else.
	NodeRoot bool `json:"node_root,omitempty"`
	// Deputy marks a user whom the books name an operator, in commands about the books and history.
	Deputy bool `json:"deputy,omitempty"`
	// System marks the leader's own proposals and reports of nodes.
	System bool `json:"system,omitempty"`
	// Origin says where the command came from: host:NAME, page:ADDRESS, token:ID@ADDRESS, cluster:NAME@ADDRESS. It is
	// empty for the leader's own proposals and reports of nodes. Entries with an origin are in the audit trail.
	Origin string `json:"origin,omitempty"`
	// Login is the user's name for the audit trail where User is empty. It gives no rights.
	Login string `json:"login,omitempty"`
}

// Operator reports whether the identity may act on everybody's jobs and on nodes.
func (id Identity) Operator() bool {
	return id.System || id.Admin || id.UID == 0
}

// Entry is one command with everything that is not determined by the state: the time and who.
type Entry struct {
	Index uint64 // of the log; set when applied
	At    time.Time
	By    Identity
	Cmd   Command
}

// Command is one row of the table in DESIGN §5. The set is sealed.
type Command interface {
	kind() string
	apply(*tx) (any, error)
}

// Applied is what came of an entry.
type Applied struct {
	Result any
	Err    *Error
	Events []Event
	// Panic is a defect of muster with its stack, "" if there was none. All servers meet it alike and go on,
	// without the command.
	Panic string
}

// Event tells history and watchers of a change. Exactly one field is set. The objects are
// immutable and complete, so that a reader needs no other state.
type Event struct {
	Job  *Job  `json:"job,omitempty"`
	Step *Step `json:"step,omitempty"`
	Node *Node `json:"node,omitempty"`
	// Sized is a job as it was before it gave nodes back: that record of history is over.
	Sized *Job `json:"sized,omitempty"`
	// Purged names a job that left live state.
	Purged JobID `json:"purged,omitempty"`
	// Gone names a node that was deleted.
	Gone NodeName `json:"gone,omitempty"`
	// Resv is a reservation as it is now; with ResvOver it is no more.
	Resv     *Reservation `json:"resv,omitempty"`
	ResvOver bool         `json:"resv_over,omitempty"`
	// At is when it happened, and Idle that the node had no jobs then; of nodes and reservations alone.
	At   time.Time `json:"at,omitzero"`
	Idle bool      `json:"idle,omitempty"`
	// Change tells of a change of the books.
	Change *Transaction `json:"change,omitempty"`
	// Forget says up to where old records of history go, and Load has archived ones that come back.
	Forget []Cutoff   `json:"forget,omitempty"`
	Load   []Archived `json:"load,omitempty"`
	// Audit is a change that the audit trail shows.
	Audit *Audit `json:"audit,omitempty"`
	// Amend is what is said of a job afterwards that is in history alone.
	Amend *AmendedJob `json:"amend,omitempty"`
	// Imported is a record of a Slurm cluster.
	Imported *Imported `json:"-"`
}
