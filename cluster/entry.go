package cluster

import (
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
	// System marks the leader's own proposals and reports of nodes.
	System bool `json:"system,omitempty"`
}

// Operator reports whether the identity may act on everybody's jobs and on nodes.
func (id Identity) Operator() bool { return id.System || id.Admin || id.UID == 0 }

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
}

// envelope is what the log holds of an entry; its body is a Command, or not decoded yet.
type envelope[Body any] struct {
	V    int       `json:"v"`
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	By   Identity  `json:"by"`
	Body Body      `json:"body"`
}

// decoders holds an empty command per kind. It is a function so that front-ends, which link this
// package, pay nothing for it at start.
func newCommand(kind string) Command {
	switch kind {
	case "put_blob":
		return &PutBlob{}
	case "submit":
		return &Submit{}
	case "submit_het":
		return &SubmitHet{}
	case "update":
		return &UpdateJob{}
	case "hold":
		return &HoldJobs{}
	case "requeue":
		return &Requeue{}
	case "suspend":
		return &Suspend{}
	case "take_turns":
		return &TakeTurns{}
	case "cancel":
		return &Cancel{}
	case "finish":
		return &Finish{}
	case "decide":
		return &Decide{}
	case "report":
		return &Report{}
	case "expire":
		return &Expire{}
	case "purge":
		return &Purge{}
	case "node_up":
		return &NodeUp{}
	case "node_down":
		return &NodeDown{}
	case "node_quiet":
		return &NodeQuiet{}
	case "node_set":
		return &NodeSet{}
	case "node_create":
		return &NodeCreate{}
	case "node_delete":
		return &NodeDelete{}
	case "node_reboot":
		return &NodeReboot{}
	case "node_reboot_due":
		return &NodeRebootDue{}
	case "reservation_put":
		return &ReservationPut{}
	case "reservation_drop":
		return &ReservationDrop{}
	case "reservations_due":
		return &ReservationsDue{}
	case "partition_set":
		return &PartitionSet{}
	case "configure":
		return &Configure{}
	case "account":
		return &ChangeAccounts{}
	case "decay":
		return &Decay{}
	case "top":
		return &TopJobs{}
	case "trust_init":
		return &TrustInit{}
	case "token_put":
		return &TokenPut{}
	case "token_revoke":
		return &TokenRevoke{}
	case "member_join":
		return &MemberJoin{}
	case "member_revoke":
		return &MemberRevoke{}
	case "member_move":
		return &MemberMove{}
	case "gossip_rotate":
		return &GossipRotate{}
	}
	return nil
}

// Kinds lists every command kind, for fuzzing and documents.
func Kinds() []string {
	return []string{"put_blob", "submit", "update", "hold", "requeue", "suspend", "cancel", "finish", "decide", "report",
		"expire", "purge", "node_up", "node_down", "node_set", "partition_set", "configure",
		"trust_init", "token_put", "token_revoke", "member_join", "member_revoke", "member_move", "gossip_rotate",
		"node_quiet", "node_create", "node_delete", "node_reboot", "node_reboot_due",
		"reservation_put", "reservation_drop", "reservations_due", "account", "decay", "top", "submit_het", "take_turns"}
}

// EncodeEntry writes the entry as one line of JSON.
func EncodeEntry(e Entry) ([]byte, error) {
	b, err := wire.Marshal(envelope[Command]{V: EnvelopeVersion, Kind: e.Cmd.kind(), At: e.At, By: e.By, Body: e.Cmd})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Cmd.kind(), err)
	}
	return b, nil
}

// DecodeEntry reads what EncodeEntry wrote. An unknown version or kind is an error: a server
// that does not know a command must stop, never skip it.
func DecodeEntry(b []byte) (Entry, error) {
	var env envelope[wire.RawMessage]
	if err := wire.Unmarshal(b, &env); err != nil {
		return Entry{}, fmt.Errorf("decode log entry: %w", err)
	}
	if env.V != EnvelopeVersion {
		return Entry{}, fmt.Errorf("log entry has version %d, this binary knows %d", env.V, EnvelopeVersion)
	}
	cmd := newCommand(env.Kind)
	if cmd == nil {
		return Entry{}, fmt.Errorf("log entry has unknown kind %q: it was written by a newer muster", env.Kind)
	}
	if err := wire.Unmarshal(env.Body, cmd); err != nil {
		return Entry{}, fmt.Errorf("decode %s: %w", env.Kind, err)
	}
	return Entry{At: env.At, By: env.By, Cmd: cmd}, nil
}
