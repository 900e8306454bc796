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
	{"put_blob", 0, func() Command { return &PutBlob{} }},
	{"submit", 0, func() Command { return &Submit{} }},
	{"submit_het", 0, func() Command { return &SubmitHet{} }},
	{"update", 0, func() Command { return &UpdateJob{} }},
	{"hold", 0, func() Command { return &HoldJobs{} }},
	{"requeue", 0, func() Command { return &Requeue{} }},
	{"suspend", 0, func() Command { return &Suspend{} }},
	{"take_turns", 0, func() Command { return &TakeTurns{} }},
	{"cancel", 0, func() Command { return &Cancel{} }},
	{"finish", 0, func() Command { return &Finish{} }},
	{"decide", 0, func() Command { return &Decide{} }},
	{"report", 0, func() Command { return &Report{} }},
	{"expire", 0, func() Command { return &Expire{} }},
	{"purge", 0, func() Command { return &Purge{} }},
	{"node_tell", 1, func() Command { return &NodeTell{} }},
	{"node_up", 0, func() Command { return &NodeUp{} }},
	{"node_down", 0, func() Command { return &NodeDown{} }},
	{"node_quiet", 0, func() Command { return &NodeQuiet{} }},
	{"node_set", 0, func() Command { return &NodeSet{} }},
	{"node_create", 0, func() Command { return &NodeCreate{} }},
	{"node_delete", 0, func() Command { return &NodeDelete{} }},
	{"node_reboot", 0, func() Command { return &NodeReboot{} }},
	{"node_reboot_due", 0, func() Command { return &NodeRebootDue{} }},
	{"reservation_put", 0, func() Command { return &ReservationPut{} }},
	{"reservation_drop", 0, func() Command { return &ReservationDrop{} }},
	{"reservation_nodes", 0, func() Command { return &ReservationNodes{} }},
	{"reservations_due", 0, func() Command { return &ReservationsDue{} }},
	{"partition_set", 0, func() Command { return &PartitionSet{} }},
	{"configure", 0, func() Command { return &Configure{} }},
	{"account", 0, func() Command { return &ChangeAccounts{} }},
	{"decay", 0, func() Command { return &Decay{} }},
	{"top", 0, func() Command { return &TopJobs{} }},
	{"trust_init", 0, func() Command { return &TrustInit{} }},
	{"token_put", 0, func() Command { return &TokenPut{} }},
	{"token_revoke", 0, func() Command { return &TokenRevoke{} }},
	{"member_join", 0, func() Command { return &MemberJoin{} }},
	{"member_revoke", 0, func() Command { return &MemberRevoke{} }},
	{"member_move", 0, func() Command { return &MemberMove{} }},
	{"gossip_rotate", 0, func() Command { return &GossipRotate{} }},
	{"remind", 0, func() Command { return &Remind{} }},
	{"errands_done", 0, func() Command { return &HooksDone{} }},
	{"retain", 0, func() Command { return &Retain{} }},
	{"load_history", 0, func() Command { return &LoadHistory{} }},
	{"node_power", 0, func() Command { return &NodePower{} }},
	{"burnin_done", 0, func() Command { return &BurninDone{} }},
	{"amend", 0, func() Command { return &AmendJobs{} }},
	{"crontab_put", 3, func() Command { return &CrontabPut{} }},
	{"cron_next", 3, func() Command { return &CronNext{} }},
	{"peer_put", 3, func() Command { return &PeerPut{} }},
	{"peer_drop", 3, func() Command { return &PeerDrop{} }},
	{"jwt_key", LevelTokens, func() Command { return &JWTKey{} }},
	{"jwt_end", LevelTokens, func() Command { return &JWTEnd{} }},
	{"trigger_set", LevelTriggers, func() Command { return &TriggerSet{} }},
	{"trigger_clear", LevelTriggers, func() Command { return &TriggerClear{} }},
	{"trigger_server", LevelTriggers, func() Command { return &TriggerServer{} }},
	{"triggers_due", LevelTriggers, func() Command { return &TriggersDue{} }},
	{"federation_put", LevelFederation, func() Command { return &FederationPut{} }},
	{"federation_orders", LevelFederation, func() Command { return &FederationOrders{} }},
	{"federation_reports", LevelFederation, func() Command { return &FederationReports{} }},
	{"federation_return", LevelFederation, func() Command { return &FederationReturn{} }},
	{"federation_away", LevelFederation, func() Command { return &FederationAway{} }},
	{"federation_parents", LevelParents, func() Command { return &FederationParents{} }},
	{"node_resume_due", LevelParents, func() Command { return &NodeResumeDue{} }},
	{"session_end", LevelSecurity, func() Command { return &SessionEnd{} }},
	{"audit_note", LevelSecurity, func() Command { return &AuditNote{} }},
	{"raise_level", 1, func() Command { return &RaiseLevel{} }},
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
