package cluster

import (
	"fmt"
	"time"

	"dev.muster/wire"
)

// EnvelopeVersion is the version of the log's envelope.
const EnvelopeVersion = 1

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
	kind  string
	since int // the level
	make  func() Command
}{
	{"put_blob", First, func() Command { return &PutBlob{} }},
	{"submit", First, func() Command { return &Submit{} }},
	{"submit_het", First, func() Command { return &SubmitHet{} }},
	{"update", First, func() Command { return &UpdateJob{} }},
	{"hold", First, func() Command { return &HoldJobs{} }},
	{"requeue", First, func() Command { return &Requeue{} }},
	{"suspend", First, func() Command { return &Suspend{} }},
	{"take_turns", First, func() Command { return &TakeTurns{} }},
	{"cancel", First, func() Command { return &Cancel{} }},
	{"finish", First, func() Command { return &Finish{} }},
	{"decide", First, func() Command { return &Decide{} }},
	{"report", First, func() Command { return &Report{} }},
	{"expire", First, func() Command { return &Expire{} }},
	{"purge", First, func() Command { return &Purge{} }},
	{"node_tell", First, func() Command { return &NodeTell{} }},
	{"node_up", First, func() Command { return &NodeUp{} }},
	{"node_down", First, func() Command { return &NodeDown{} }},
	{"node_quiet", First, func() Command { return &NodeQuiet{} }},
	{"node_set", First, func() Command { return &NodeSet{} }},
	{"node_create", First, func() Command { return &NodeCreate{} }},
	{"node_delete", First, func() Command { return &NodeDelete{} }},
	{"node_reboot", First, func() Command { return &NodeReboot{} }},
	{"node_reboot_due", First, func() Command { return &NodeRebootDue{} }},
	{"reservation_put", First, func() Command { return &ReservationPut{} }},
	{"reservation_drop", First, func() Command { return &ReservationDrop{} }},
	{"reservation_nodes", First, func() Command { return &ReservationNodes{} }},
	{"reservations_due", First, func() Command { return &ReservationsDue{} }},
	{"partition_set", First, func() Command { return &PartitionSet{} }},
	{"configure", First, func() Command { return &Configure{} }},
	{"account", First, func() Command { return &ChangeAccounts{} }},
	{"decay", First, func() Command { return &Decay{} }},
	{"top", First, func() Command { return &TopJobs{} }},
	{"trust_init", First, func() Command { return &TrustInit{} }},
	{"token_put", First, func() Command { return &TokenPut{} }},
	{"token_revoke", First, func() Command { return &TokenRevoke{} }},
	{"member_join", First, func() Command { return &MemberJoin{} }},
	{"member_revoke", First, func() Command { return &MemberRevoke{} }},
	{"member_move", First, func() Command { return &MemberMove{} }},
	{"gossip_rotate", First, func() Command { return &GossipRotate{} }},
	{"remind", First, func() Command { return &Remind{} }},
	{"errands_done", First, func() Command { return &HooksDone{} }},
	{"retain", First, func() Command { return &Retain{} }},
	{"load_history", First, func() Command { return &LoadHistory{} }},
	{"node_power", First, func() Command { return &NodePower{} }},
	{"burnin_done", First, func() Command { return &BurninDone{} }},
	{"amend", First, func() Command { return &AmendJobs{} }},
	{"crontab_put", First, func() Command { return &CrontabPut{} }},
	{"cron_next", First, func() Command { return &CronNext{} }},
	{"peer_put", First, func() Command { return &PeerPut{} }},
	{"peer_drop", First, func() Command { return &PeerDrop{} }},
	{"jwt_key", First, func() Command { return &JWTKey{} }},
	{"jwt_end", First, func() Command { return &JWTEnd{} }},
	{"trigger_set", First, func() Command { return &TriggerSet{} }},
	{"trigger_clear", First, func() Command { return &TriggerClear{} }},
	{"trigger_server", First, func() Command { return &TriggerServer{} }},
	{"triggers_due", First, func() Command { return &TriggersDue{} }},
	{"federation_put", First, func() Command { return &FederationPut{} }},
	{"federation_orders", First, func() Command { return &FederationOrders{} }},
	{"federation_reports", First, func() Command { return &FederationReports{} }},
	{"federation_return", First, func() Command { return &FederationReturn{} }},
	{"federation_away", First, func() Command { return &FederationAway{} }},
	{"federation_parents", First, func() Command { return &FederationParents{} }},
	{"node_resume_due", First, func() Command { return &NodeResumeDue{} }},
	{"session_end", First, func() Command { return &SessionEnd{} }},
	{"audit_note", First, func() Command { return &AuditNote{} }},
	{"checkpoint", First, func() Command { return &CheckpointDone{} }},
	{"hang", First, func() Command { return &HangFound{} }},
	{"straggler", First, func() Command { return &StragglerFound{} }},
	{"swap_node", First, func() Command { return &SwapNode{} }},
	{"raise_level", First, func() Command { return &RaiseLevel{} }},
	{"import_history", First, func() Command { return &ImportHistory{} }},
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
	b, err := wire.Marshal(envelope[Command]{
		V:    EnvelopeVersion,
		Kind: e.Cmd.kind(),
		At:   e.At,
		By:   e.By,
		Body: e.Cmd,
	})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Cmd.kind(), err)
	}
	return b, nil
}

// DecodeEntry reads what EncodeEntry wrote. An unknown version or kind is an error: a server
// that does not know a command must stop, never skip it.
func DecodeEntry(b []byte) (Entry, error) {
	var env envelope[wire.RawMessage]
	if err := wire.UnmarshalStrict(b, &env); err != nil {
		return Entry{}, fmt.Errorf("decode log entry: %w", newer(err))
	}
	if env.V != EnvelopeVersion {
		return Entry{}, fmt.Errorf("log entry has version %d, this binary knows %d", env.V, EnvelopeVersion)
	}
	cmd := newCommand(env.Kind)
	if cmd == nil {
		return Entry{}, fmt.Errorf("log entry has unknown kind %q: %w", env.Kind, ErrNewer)
	}
	if err := wire.UnmarshalStrict(env.Body, cmd); err != nil {
		return Entry{}, fmt.Errorf("decode %s: %w", env.Kind, newer(err))
	}
	if raise, ok := cmd.(*RaiseLevel); ok {
		if err := checkLevel(raise.Level); err != nil {
			return Entry{}, fmt.Errorf("decode %s: %w", env.Kind, err)
		}
	}
	return Entry{At: env.At, By: env.By, Cmd: cmd}, nil
}
