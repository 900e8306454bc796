package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"dev.muster/wire"
)

// snapshotVersion is the version of Encode's format.
const snapshotVersion = 1

// maxRecord bounds one line: an array of millions of tasks or a large script fits many times.
const maxRecord = 1 << 30

type snapshotHead struct {
	Version int       `json:"version"`
	Level   int       `json:"level,omitempty" since:"1"`
	Index   uint64    `json:"index"`
	Now     time.Time `json:"now"`
	NextID  JobID     `json:"next_id"`

	NextAssoc AssocID   `json:"next_assoc,omitempty"`
	Decayed   time.Time `json:"decayed,omitzero"`

	LastHook uint64   `json:"last_errand,omitempty"`
	Retained Retained `json:"retained,omitzero"`

	Restored *Restored `json:"restored,omitempty" since:"1"`

	Config  *Config        `json:"config"`
	Configs []ConfigChange `json:"configs,omitempty"` // its history
}

// snapshotRecord is one line behind the head; exactly one field is set.
type snapshotRecord struct {
	Node *Node `json:"node,omitempty"`
	Job  *Job  `json:"job,omitempty"`
	Blob *Blob `json:"blob,omitempty"`
	Step *Step `json:"step,omitempty"`

	Account *Account     `json:"account,omitempty"`
	User    *User        `json:"user,omitempty"`
	Assoc   *Association `json:"assoc,omitempty"`
	QOS     *QOS         `json:"qos,omitempty"`

	CA     *CA     `json:"ca,omitempty"`
	Token  *Token  `json:"token,omitempty"`
	Member *Member `json:"member,omitempty"`

	Reservation *Reservation `json:"reservation,omitempty"`
	Hook        *Hook        `json:"errand,omitempty"`
	Tested      *TestedPart  `json:"tested,omitempty"`
	Crontab     *Crontab     `json:"crontab,omitempty" since:"3"`
	Peer        *PeerCluster `json:"peer,omitempty" since:"3"`
	UserTokens  *UserTokens  `json:"user_tokens,omitempty" since:"4"`
	Triggers    *Triggers    `json:"triggers,omitempty" since:"5"`
	Federation  *Federation  `json:"federation,omitempty" since:"6"`
	Gone        *GoneTasks   `json:"gone,omitempty"`
	Spent       *SpentKey    `json:"spent,omitempty" since:"1"`
}

// Encode writes the snapshot as JSON lines in one order: two servers with the same state write
// the same bytes. What is derived is not written.
func (s *Snapshot) Encode(w io.Writer) error {
	buf := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	var err error
	put := func(v any) bool {
		if err == nil {
			line, err = wire.Append(line[:0], v)
		}
		if err == nil {
			_, err = buf.Write(append(line, '\n'))
		}
		return err == nil
	}
	put(&snapshotHead{
		Version:   snapshotVersion,
		Level:     s.level,
		Index:     s.Index,
		Now:       s.Now,
		NextID:    s.NextID,
		NextAssoc: s.NextAssoc,
		Decayed:   s.Decayed,
		LastHook:  s.LastHook,
		Retained:  s.Retained,
		Restored:  s.restored,
		Config:    s.config,
		Configs:   s.configs,
	})
	if s.ca != nil {
		put(&snapshotRecord{CA: s.ca})
	}
	s.tokens.Scan(func(_ string, k *Token) bool { return put(&snapshotRecord{Token: k}) })
	s.joined.Scan(func(_ string, m *Member) bool { return put(&snapshotRecord{Member: m}) })
	s.accounts.Scan(func(_ string, a *Account) bool { return put(&snapshotRecord{Account: a}) })
	s.users.Scan(func(_ string, u *User) bool { return put(&snapshotRecord{User: u}) })
	s.qos.Scan(func(_ string, q *QOS) bool { return put(&snapshotRecord{QOS: q}) })
	s.assocs.Scan(func(_ AssocID, a *Association) bool { return put(&snapshotRecord{Assoc: a}) })
	s.order.Scan(func(_ int, n *Node) bool { return put(&snapshotRecord{Node: n}) })
	s.resvs.Scan(func(_ string, r *Reservation) bool { return put(&snapshotRecord{Reservation: r}) })
	s.blobs.Scan(func(_ BlobHash, b *Blob) bool { return put(&snapshotRecord{Blob: b}) })
	s.jobs.Scan(func(_ JobID, j *Job) bool { return put(&snapshotRecord{Job: j}) })
	s.arrays.Scan(func(id JobID, c arrayCount) bool {
		return c.gone == nil || put(&snapshotRecord{Gone: s.Gone(id)})
	})
	s.steps.Scan(func(st *Step) bool { return put(&snapshotRecord{Step: st}) })
	s.hooks.Scan(func(_ uint64, e *Hook) bool { return put(&snapshotRecord{Hook: e}) })
	s.tested.Scan(func(_ string, p *TestedPart) bool { return put(&snapshotRecord{Tested: p}) })
	s.crontabs.Scan(func(_ uint32, c *Crontab) bool { return put(&snapshotRecord{Crontab: c}) })
	s.clusters.Scan(func(_ string, p *PeerCluster) bool { return put(&snapshotRecord{Peer: p}) })
	if s.tokensOfUsers != nil {
		put(&snapshotRecord{UserTokens: s.tokensOfUsers})
	}
	if s.triggers != nil {
		put(&snapshotRecord{Triggers: s.triggers})
	}
	if s.federation != nil {
		put(&snapshotRecord{Federation: s.federation})
	}
	s.spent.Scan(func(k *SpentKey) bool { return put(&snapshotRecord{Spent: k}) })
	return errors.Join(err, buf.Flush())
}

// Decode reads what Encode wrote and derives the rest. What is derived trusts the records: where they do not fit
// together, as in a file that was written over in part, that is an error too.
func Decode(r io.Reader) (_ *State, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decode snapshot: its records do not fit together: %v", p)
		}
	}()
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), maxRecord)
	lines.Scan()
	var head snapshotHead
	if err := errors.Join(lines.Err(), wire.UnmarshalStrict(lines.Bytes(), &head)); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", newer(err))
	}
	if err := checkLevel(head.Level); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	if head.Version != snapshotVersion || head.Config == nil {
		return nil, fmt.Errorf("snapshot has version %d, this binary knows %d", head.Version, snapshotVersion)
	}
	s := NewState()
	s.level = head.Level
	s.Index = head.Index
	s.Now = head.Now
	s.NextID = head.NextID
	s.config = head.Config
	s.NextAssoc = head.NextAssoc
	s.Decayed = head.Decayed
	s.LastHook = head.LastHook
	s.Retained = head.Retained
	s.configs = head.Configs
	s.restored = head.Restored
	var jobs []*Job
	var dec wire.Decoder // many jobs have the same specification
	for lines.Scan() {
		var rec snapshotRecord
		if err := dec.DecodeStrict(lines.Bytes(), &rec); err != nil {
			return nil, fmt.Errorf("decode snapshot: %w", newer(err))
		}
		if rec.Job != nil {
			s.interned.share(rec.Job.Spec)
			s.jobs.Set(rec.Job.ID, rec.Job)
			jobs = append(jobs, rec.Job)
		}
		if rec.Federation != nil {
			s.federation = rec.Federation
		}
		s.regainRecord(&rec)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	for _, j := range jobs {
		s.index(j)
		s.regain(j)
	}
	s.tally()
	for _, j := range jobs { // a heterogeneous job's clocks depend on all its records
		if j.Phase == Ended && j.Het != nil {
			s.unindex(j)
			s.index(j)
		}
	}
	return s, nil
}

// regained are what records may be of, and how each is put into its table.
var regained = [...]struct {
	is  func(*snapshotRecord) bool
	put func(*tables, *snapshotRecord)
}{
	{func(r *snapshotRecord) bool { return r.CA != nil }, func(t *tables, r *snapshotRecord) { t.ca = r.CA }},
	{
		func(r *snapshotRecord) bool { return r.Token != nil },
		func(t *tables, r *snapshotRecord) { t.tokens.Set(r.Token.ID, r.Token) },
	},
	{
		func(r *snapshotRecord) bool { return r.Member != nil },
		func(t *tables, r *snapshotRecord) { t.joined.Set(r.Member.Name, r.Member) },
	},
	{
		func(r *snapshotRecord) bool { return r.Reservation != nil },
		func(t *tables, r *snapshotRecord) { t.resvs.Set(r.Reservation.Name, r.Reservation) },
	},
	{
		func(r *snapshotRecord) bool { return r.Account != nil },
		func(t *tables, r *snapshotRecord) { t.accounts.Set(r.Account.Name, r.Account) },
	},
	{
		func(r *snapshotRecord) bool { return r.User != nil },
		func(t *tables, r *snapshotRecord) { t.users.Set(r.User.Name, r.User) },
	},
	{
		func(r *snapshotRecord) bool { return r.QOS != nil },
		func(t *tables, r *snapshotRecord) { t.qos.Set(r.QOS.Name, r.QOS) },
	},
	{func(r *snapshotRecord) bool { return r.Assoc != nil }, func(t *tables, r *snapshotRecord) {
		a := r.Assoc
		t.assocs.Set(a.ID, a)
		t.byOwner.Set(ownerOf(a.Account, a.User, a.Partition), &a.ID)
	}},
	{
		func(r *snapshotRecord) bool { return r.Node != nil },
		func(t *tables, r *snapshotRecord) { t.setNode(nil, r.Node) },
	},
	{func(r *snapshotRecord) bool { return r.Blob != nil }, func(t *tables, r *snapshotRecord) { t.setBlob(r.Blob) }},
	{
		func(r *snapshotRecord) bool { return r.Hook != nil },
		func(t *tables, r *snapshotRecord) { t.hooks.Set(r.Hook.ID, r.Hook) },
	},
	{func(r *snapshotRecord) bool { return r.Gone != nil }, func(t *tables, r *snapshotRecord) {
		g := r.Gone
		t.arrays.Set(g.Array, arrayCount{ok: g.OK, failed: g.Failed, gone: g})
	}},
	{
		func(r *snapshotRecord) bool { return r.Tested != nil },
		func(t *tables, r *snapshotRecord) { t.tested.Set(r.Tested.ID, r.Tested) },
	},
	{
		func(r *snapshotRecord) bool { return r.Crontab != nil },
		func(t *tables, r *snapshotRecord) { t.crontabs.Set(r.Crontab.UID, r.Crontab) },
	},
	{
		func(r *snapshotRecord) bool { return r.Peer != nil },
		func(t *tables, r *snapshotRecord) { t.clusters.Set(strings.ToLower(r.Peer.Name), r.Peer) },
	},
	{
		func(r *snapshotRecord) bool { return r.UserTokens != nil },
		func(t *tables, r *snapshotRecord) { t.tokensOfUsers = r.UserTokens },
	},
	{
		func(r *snapshotRecord) bool { return r.Triggers != nil },
		func(t *tables, r *snapshotRecord) { t.triggers = r.Triggers },
	},
	{func(r *snapshotRecord) bool { return r.Spent != nil }, func(t *tables, r *snapshotRecord) { t.spent.Set(r.Spent) }},
	{func(r *snapshotRecord) bool { return r.Step != nil }, func(t *tables, r *snapshotRecord) { t.steps.Set(r.Step) }},
}

// regainRecord puts a decoded record in its table; jobs are indexed when all are there.
func (t *tables) regainRecord(rec *snapshotRecord) {
	for i := range regained {
		if regained[i].is(rec) {
			regained[i].put(t, rec)
			return
		}
	}
}

// regain adds a decoded job's shares to the loads.
func (t *tables) regain(j *Job) {
	if !j.holds() || j.Alloc == nil {
		return
	}
	for _, sh := range j.HeldShares() {
		l := *t.Load(sh.Node)
		if j.HoldsCPUs() {
			l.Give(sh.CPUs, j.Alloc.Over > 0)
		}
		l.addGPUs(&sh)
		l.MemMB += sh.MemMB
		l.Jobs = append(l.Jobs, j.ID)
		l.Closed = max(l.Closed, closes(j.Spec))
		t.loads.Set(sh.Node, &l)
	}
}
