package cluster

import (
	"errors"
	"fmt"
	"time"

	"dev.muster/wire"
)

// EnvelopeVersion is the version of the log's envelope.
const EnvelopeVersion = 1

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
}

// Operator reports whether the identity may act on everybody's jobs and on nodes.
func (id Identity) Operator() bool { return id.System || id.Admin || id.UID == 0 }

// keepsBooks reports whether the identity may change the books and history, all but the levels of users.
func (t *tables) keepsBooks(id Identity) bool {
	return id.Operator() || id.Deputy || t.isAdmin(id.User)
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
	// Amend is what is said of a job afterwards that is in history alone.
	Amend *AmendedJob `json:"amend,omitempty"`
}

// envelope is what the log holds of an entry; its body is a Command, or not decoded yet.
type envelope[Body any] struct {
	V    int       `json:"v"`
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	By   Identity  `json:"by"`
	Body Body      `json:"body"`
}

// commands has an empty command of each kind: a table without code, so that front-ends, which link this package, pay
// nothing for it at start.
var commands = [...]struct {
	kind string
	make func() Command
}{
	{"put_blob", func() Command { return &PutBlob{} }},
	{"submit", func() Command { return &Submit{} }},
	{"submit_het", func() Command { return &SubmitHet{} }},
	{"update", func() Command { return &UpdateJob{} }},
	{"hold", func() Command { return &HoldJobs{} }},
	{"requeue", func() Command { return &Requeue{} }},
	{"suspend", func() Command { return &Suspend{} }},
	{"take_turns", func() Command { return &TakeTurns{} }},
	{"cancel", func() Command { return &Cancel{} }},
	{"finish", func() Command { return &Finish{} }},
	{"decide", func() Command { return &Decide{} }},
	{"report", func() Command { return &Report{} }},
	{"expire", func() Command { return &Expire{} }},
	{"purge", func() Command { return &Purge{} }},
	{"node_tell", func() Command { return &NodeTell{} }},
	{"node_up", func() Command { return &NodeUp{} }},
	{"node_down", func() Command { return &NodeDown{} }},
	{"node_quiet", func() Command { return &NodeQuiet{} }},
	{"node_set", func() Command { return &NodeSet{} }},
	{"node_create", func() Command { return &NodeCreate{} }},
	{"node_delete", func() Command { return &NodeDelete{} }},
	{"node_reboot", func() Command { return &NodeReboot{} }},
	{"node_reboot_due", func() Command { return &NodeRebootDue{} }},
	{"reservation_put", func() Command { return &ReservationPut{} }},
	{"reservation_drop", func() Command { return &ReservationDrop{} }},
	{"reservation_nodes", func() Command { return &ReservationNodes{} }},
	{"reservations_due", func() Command { return &ReservationsDue{} }},
	{"partition_set", func() Command { return &PartitionSet{} }},
	{"configure", func() Command { return &Configure{} }},
	{"account", func() Command { return &ChangeAccounts{} }},
	{"decay", func() Command { return &Decay{} }},
	{"top", func() Command { return &TopJobs{} }},
	{"trust_init", func() Command { return &TrustInit{} }},
	{"token_put", func() Command { return &TokenPut{} }},
	{"token_revoke", func() Command { return &TokenRevoke{} }},
	{"member_join", func() Command { return &MemberJoin{} }},
	{"member_revoke", func() Command { return &MemberRevoke{} }},
	{"member_move", func() Command { return &MemberMove{} }},
	{"gossip_rotate", func() Command { return &GossipRotate{} }},
	{"remind", func() Command { return &Remind{} }},
	{"errands_done", func() Command { return &ErrandsDone{} }},
	{"retain", func() Command { return &Retain{} }},
	{"load_history", func() Command { return &LoadHistory{} }},
	{"node_power", func() Command { return &NodePower{} }},
	{"burnin_done", func() Command { return &BurninDone{} }},
	{"amend", func() Command { return &AmendJobs{} }},
}

func newCommand(kind string) Command {
	for i := range commands {
		if commands[i].kind == kind {
			return commands[i].make()
		}
	}
	return nil
}

// Kinds lists every command kind, for fuzzing and documents.
func Kinds() []string {
	out := make([]string, len(commands))
	for i := range commands {
		out[i] = commands[i].kind
	}
	return out
}

// EncodeEntry writes the entry as one line of JSON.
func EncodeEntry(e Entry) ([]byte, error) {
	b, err := wire.Marshal(envelope[Command]{V: EnvelopeVersion, Kind: e.Cmd.kind(), At: e.At, By: e.By, Body: e.Cmd})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Cmd.kind(), err)
	}
	return b, nil
}

// ErrNewer says that a command is not known here.
var ErrNewer = errors.New("it was written by a newer muster")

// DecodeEntry reads what EncodeEntry wrote. An unknown version or kind is an error: a server
// that does not know a command must stop, never skip it.
func DecodeEntry(b []byte) (Entry, error) {
	var env envelope[wire.RawMessage]
	if err := wire.UnmarshalStrict(b, &env); err != nil {
		return Entry{}, fmt.Errorf("decode log entry: %w", err)
	}
	if env.V != EnvelopeVersion {
		return Entry{}, fmt.Errorf("log entry has version %d, this binary knows %d", env.V, EnvelopeVersion)
	}
	cmd := newCommand(env.Kind)
	if cmd == nil {
		return Entry{}, fmt.Errorf("log entry has unknown kind %q: %w", env.Kind, ErrNewer)
	}
	if err := wire.UnmarshalStrict(env.Body, cmd); err != nil {
		return Entry{}, fmt.Errorf("decode %s: %w", env.Kind, err)
	}
	return Entry{At: env.At, By: env.By, Cmd: cmd}, nil
}
