package cluster

import (
	"cmp"
	"iter"
	"strings"
	"time"

	"github.com/tidwall/btree"
)

// The tables of the state: what they are, and in one list (tableRows) how each is made, copied, written and read.

// tables is the state's content: persistent trees, so that a copy costs microseconds. Each is a row of tableRows; the
// second half is derived from the first and kept in step by putJob and putNode.
type tables struct {
	Index  uint64    // last applied entry
	Now    time.Time // its time
	NextID JobID
	// NextAssoc is the last number given to an association; Decayed is up to when usage has faded.
	NextAssoc AssocID
	Decayed   time.Time
	LastHook  uint64
	Retained  Retained
	restored  *Restored
	level     int
	configs   []ConfigChange // never changed in place
	config    *Config
	books
	arrayTables

	jobs  *btree.Map[JobID, *Job]
	nodes *btree.Map[NodeName, *Node]
	loads *btree.Map[NodeName, *Load]
	blobs *btree.Map[BlobHash, *Blob]
	steps *btree.BTreeG[*Step] // live steps

	ca     *CA
	tokens *btree.Map[string, *Token]
	joined *btree.Map[string, *Member]
	resvs  *btree.Map[string, *Reservation]

	hooks  *btree.Map[uint64, *Hook]
	tested *btree.Map[string, *TestedPart]
	spent  *btree.BTreeG[*SpentKey]

	queue    *btree.BTreeG[queueKey]
	queueAt  *btree.Map[JobID, queueKey] // each pending record's key in queue
	live     *btree.Map[JobID, *Job]     // Starting … Ending
	members  *btree.BTreeG[pairKey]      // array id, record id
	depends  *btree.BTreeG[pairKey]      // parent (job or array id), waiting record
	keys     *btree.BTreeG[submitKey]
	timers   *btree.BTreeG[timerKey]
	timerAt  *btree.Map[JobID, [2]time.Time] // each record's keys in timers
	names    *btree.BTreeG[nameKey]          // not ended
	order    *btree.Map[int, *Node]          // nodes by Order
	listed   *btree.BTreeG[*Node]            // nodes by name
	idle     *btree.Map[BlobHash, *Blob]     // blobs nobody refers to
	timed    *btree.Map[NodeName, *Node]     // nodes with a reboot, or to be resumed at a time
	powers   *btree.Map[NodeName, *Node]     // nodes with a Power
	mute     *btree.Map[NodeName, *Node]     // nodes that are Quiet
	tallies  *btree.BTreeG[*tally]           // what limits are compared with
	leaves   *btree.BTreeG[groupKey]         // nodes by their leaf switches
	cliques  *btree.BTreeG[groupKey]         // and by their NVLink domains
	scale    *Scale                          // nil: to be made
	changes  changeLog
	interned *interned
}

// arrayTables are what derives from the records of arrays.
type arrayTables struct {
	arrays *btree.Map[JobID, arrayCount] // array id → its records, counted
	tasks  *btree.BTreeG[taskKey]        // records by task
	starts *btree.BTreeG[startKey]       // those that have begun, by when
}

// books are the accounts, and what the state knows of users. byOwner and scripts are derived.
type books struct {
	accounts *btree.Map[string, *Account]
	users    *btree.Map[string, *User]
	assocs   *btree.Map[AssocID, *Association]
	qos      *btree.Map[string, *QOS]
	crontabs *btree.Map[uint32, *Crontab] // of users, by number
	clusters *btree.Map[string, *PeerCluster]
	imports  *btree.Map[string, *Import] // by cluster

	tokensOfUsers *UserTokens // nil: no key was made yet
	triggers      *Triggers   // nil: there was never one
	federation    *Federation // nil: this cluster was never in one

	sessions *btree.BTreeG[*EndedSession]
	audits   *btree.BTreeG[*Audit]
	scripts  *btree.BTreeG[heldText] // texts of jobs that have not run, by user

	byOwner *btree.Map[owner, *AssocID]
}

// snapshotRecord is one line behind the head; exactly one field is set. Each is named by a row of tableRows.
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
	Crontab     *Crontab     `json:"crontab,omitempty"`
	Peer        *PeerCluster `json:"peer,omitempty"`
	Import      *Import      `json:"import,omitempty"`
	UserTokens  *UserTokens  `json:"user_tokens,omitempty"`
	Triggers    *Triggers    `json:"triggers,omitempty"`
	Federation  *Federation  `json:"federation,omitempty"`
	Gone        *GoneTasks   `json:"gone,omitempty"`
	Spent       *SpentKey    `json:"spent,omitempty"`

	EndedSession *EndedSession `json:"ended_session,omitempty"`
	Audit        *Audit        `json:"audit,omitempty"`
}

// tableRow is one table: where it is, and how snapshots hold it.
type tableRow struct {
	name   string
	tree   anyTree // nil: a single value
	stored stored  // nil: derived from other tables
	// loose: contents of the table may differ and say the same, so that tests compare more than its keys or less
	// (sameDerived).
	loose bool
}

// anyTree is a table whatever it holds: byKey or ordered.
type anyTree interface {
	make(t *tables)
	copy(t *tables)
	keys(t *tables) any
}

// stored is how a table is part of snapshots whatever it holds: records.
type stored interface {
	write(t *tables, put func(any) bool)
	holds(r *snapshotRecord) bool
	take(t *tables, r *snapshotRecord)
}

// tableRows are all tables, those that snapshots hold first, in the order in which they are written. It is a table
// without code, so that front-ends, which link this package, pay nothing for it at start.
//
// Derived tables are kept in step by hand, since one record changes several tables: replaceJob, setNode and setBlob
// do. The same functions derive them again when a snapshot is read.
var tableRows = [...]tableRow{
	{
		name: "authority",
		stored: &records[CA]{
			func(r *snapshotRecord) **CA { return &r.CA },
			func(t *tables) iter.Seq[*CA] { return single(t.ca) },
			func(t *tables, v *CA) { t.ca = v },
		},
	},
	{
		name: "tokens",
		tree: &byKey[string, *Token]{func(t *tables) **btree.Map[string, *Token] { return &t.tokens }},
		stored: &records[Token]{
			func(r *snapshotRecord) **Token { return &r.Token },
			(*tables).Tokens,
			func(t *tables, k *Token) { t.tokens.Set(k.ID, k) },
		},
	},
	{
		name: "members",
		tree: &byKey[string, *Member]{func(t *tables) **btree.Map[string, *Member] { return &t.joined }},
		stored: &records[Member]{
			func(r *snapshotRecord) **Member { return &r.Member },
			(*tables).MemberList,
			func(t *tables, m *Member) { t.joined.Set(m.Name, m) },
		},
	},
	{
		name: "accounts",
		tree: &byKey[string, *Account]{func(t *tables) **btree.Map[string, *Account] { return &t.accounts }},
		stored: &records[Account]{
			func(r *snapshotRecord) **Account { return &r.Account },
			(*tables).Accounts,
			func(t *tables, a *Account) { t.accounts.Set(a.Name, a) },
		},
	},
	{
		name: "users",
		tree: &byKey[string, *User]{func(t *tables) **btree.Map[string, *User] { return &t.users }},
		stored: &records[User]{
			func(r *snapshotRecord) **User { return &r.User },
			(*tables).Users,
			func(t *tables, u *User) { t.users.Set(u.Name, u) },
		},
	},
	{
		name: "qos",
		tree: &byKey[string, *QOS]{func(t *tables) **btree.Map[string, *QOS] { return &t.qos }},
		stored: &records[QOS]{
			func(r *snapshotRecord) **QOS { return &r.QOS },
			(*tables).QOSes,
			func(t *tables, q *QOS) { t.qos.Set(q.Name, q) },
		},
	},
	{
		name: "associations",
		tree: &byKey[AssocID, *Association]{func(t *tables) **btree.Map[AssocID, *Association] { return &t.assocs }},
		stored: &records[Association]{
			func(r *snapshotRecord) **Association { return &r.Assoc },
			(*tables).Assocs,
			func(t *tables, a *Association) {
				t.assocs.Set(a.ID, a)
				t.byOwner.Set(ownerOf(a.Account, a.User, a.Partition), &a.ID)
			},
		},
	},
	// Nodes are written in the order in which they became known.
	{
		name: "nodes",
		tree: &byKey[NodeName, *Node]{func(t *tables) **btree.Map[NodeName, *Node] { return &t.nodes }},
		stored: &records[Node]{
			func(r *snapshotRecord) **Node { return &r.Node },
			func(t *tables) iter.Seq[*Node] { return valuesOf(t.order) },
			func(t *tables, n *Node) { t.setNode(nil, n) },
		},
	},
	{
		name: "reservations",
		tree: &byKey[string, *Reservation]{func(t *tables) **btree.Map[string, *Reservation] { return &t.resvs }},
		stored: &records[Reservation]{
			func(r *snapshotRecord) **Reservation { return &r.Reservation },
			func(t *tables) iter.Seq[*Reservation] { return valuesOf(t.resvs) },
			func(t *tables, r *Reservation) { t.resvs.Set(r.Name, r) },
		},
	},
	{
		name: "stored texts",
		tree: &byKey[BlobHash, *Blob]{func(t *tables) **btree.Map[BlobHash, *Blob] { return &t.blobs }},
		stored: &records[Blob]{
			func(r *snapshotRecord) **Blob { return &r.Blob },
			func(t *tables) iter.Seq[*Blob] { return valuesOf(t.blobs) },
			(*tables).setBlob,
		},
	},
	// Tables that derive from jobs are made when all records are there: see Decode.
	{
		name: "jobs",
		tree: &byKey[JobID, *Job]{func(t *tables) **btree.Map[JobID, *Job] { return &t.jobs }},
		stored: &records[Job]{
			func(r *snapshotRecord) **Job { return &r.Job },
			(*tables).Jobs,
			func(t *tables, j *Job) {
				t.interned.share(j.Spec)
				t.jobs.Set(j.ID, j)
			},
		},
	},
	// Arrays are counted again; only what is known of tasks without a record is stored.
	{
		name: "arrays",
		tree: &byKey[JobID, arrayCount]{func(t *tables) **btree.Map[JobID, arrayCount] { return &t.arrays }},
		stored: &records[GoneTasks]{
			func(r *snapshotRecord) **GoneTasks { return &r.Gone },
			goneTasks,
			func(t *tables, g *GoneTasks) {
				t.arrays.Set(g.Array, arrayCount{ok: g.OK, failed: g.Failed, gone: g})
			},
		},
	},
	{
		name: "steps",
		tree: &ordered[*Step]{func(t *tables) **btree.BTreeG[*Step] { return &t.steps }, stepLess},
		stored: &records[Step]{
			func(r *snapshotRecord) **Step { return &r.Step },
			func(t *tables) iter.Seq[*Step] { return t.steps.Scan },
			func(t *tables, s *Step) { t.steps.Set(s) },
		},
	},
	{
		name: "hooks",
		tree: &byKey[uint64, *Hook]{func(t *tables) **btree.Map[uint64, *Hook] { return &t.hooks }},
		stored: &records[Hook]{
			func(r *snapshotRecord) **Hook { return &r.Hook },
			(*tables).Hooks,
			func(t *tables, h *Hook) { t.hooks.Set(h.ID, h) },
		},
	},
	{
		name: "tested parts",
		tree: &byKey[string, *TestedPart]{func(t *tables) **btree.Map[string, *TestedPart] { return &t.tested }},
		stored: &records[TestedPart]{
			func(r *snapshotRecord) **TestedPart { return &r.Tested },
			func(t *tables) iter.Seq[*TestedPart] { return valuesOf(t.tested) },
			func(t *tables, p *TestedPart) { t.tested.Set(p.ID, p) },
		},
	},
	{
		name: "crontabs",
		tree: &byKey[uint32, *Crontab]{func(t *tables) **btree.Map[uint32, *Crontab] { return &t.crontabs }},
		stored: &records[Crontab]{
			func(r *snapshotRecord) **Crontab { return &r.Crontab },
			func(t *tables) iter.Seq[*Crontab] { return valuesOf(t.crontabs) },
			func(t *tables, c *Crontab) { t.crontabs.Set(c.UID, c) },
		},
	},
	{
		name: "imports",
		tree: &byKey[string, *Import]{func(t *tables) **btree.Map[string, *Import] { return &t.imports }},
		stored: &records[Import]{
			func(r *snapshotRecord) **Import { return &r.Import },
			func(t *tables) iter.Seq[*Import] { return t.Imports() },
			func(t *tables, i *Import) { t.imports.Set(i.Cluster, i) },
		},
	},
	{
		name: "clusters",
		tree: &byKey[string, *PeerCluster]{func(t *tables) **btree.Map[string, *PeerCluster] { return &t.clusters }},
		stored: &records[PeerCluster]{
			func(r *snapshotRecord) **PeerCluster { return &r.Peer },
			(*tables).PeerClusters,
			func(t *tables, p *PeerCluster) { t.clusters.Set(strings.ToLower(p.Name), p) },
		},
	},
	{
		name: "users' tokens",
		stored: &records[UserTokens]{
			func(r *snapshotRecord) **UserTokens { return &r.UserTokens },
			func(t *tables) iter.Seq[*UserTokens] { return single(t.tokensOfUsers) },
			func(t *tables, v *UserTokens) { t.tokensOfUsers = v },
		},
	},
	{
		name: "triggers",
		stored: &records[Triggers]{
			func(r *snapshotRecord) **Triggers { return &r.Triggers },
			func(t *tables) iter.Seq[*Triggers] { return single(t.triggers) },
			func(t *tables, v *Triggers) { t.triggers = v },
		},
	},
	{
		name: "federation",
		stored: &records[Federation]{
			func(r *snapshotRecord) **Federation { return &r.Federation },
			func(t *tables) iter.Seq[*Federation] { return single(t.federation) },
			func(t *tables, v *Federation) { t.federation = v },
		},
	},
	{
		name: "spent keys",
		tree: &ordered[*SpentKey]{func(t *tables) **btree.BTreeG[*SpentKey] { return &t.spent }, spentLess},
		stored: &records[SpentKey]{
			func(r *snapshotRecord) **SpentKey { return &r.Spent },
			func(t *tables) iter.Seq[*SpentKey] { return t.spent.Scan },
			func(t *tables, k *SpentKey) { t.spent.Set(k) },
		},
	},
	{
		name: "ended sessions",
		tree: &ordered[*EndedSession]{func(t *tables) **btree.BTreeG[*EndedSession] { return &t.sessions }, endedLess},
		stored: &records[EndedSession]{
			func(r *snapshotRecord) **EndedSession { return &r.EndedSession },
			func(t *tables) iter.Seq[*EndedSession] { return t.sessions.Scan },
			func(t *tables, e *EndedSession) { t.sessions.Set(e) },
		},
	},
	{
		name: "audits",
		tree: &ordered[*Audit]{func(t *tables) **btree.BTreeG[*Audit] { return &t.audits }, auditLess},
		stored: &records[Audit]{
			func(r *snapshotRecord) **Audit { return &r.Audit },
			func(t *tables) iter.Seq[*Audit] { return t.audits.Scan },
			func(t *tables, a *Audit) { t.audits.Set(a) },
		},
	},

	// Derived, and the same when derived again.
	{name: "owners", tree: &byKey[owner, *AssocID]{func(t *tables) **btree.Map[owner, *AssocID] { return &t.byOwner }}},
	{name: "queue", tree: &ordered[queueKey]{func(t *tables) **btree.BTreeG[queueKey] { return &t.queue }, queueLess}},
	{name: "places", tree: &byKey[JobID, queueKey]{func(t *tables) **btree.Map[JobID, queueKey] { return &t.queueAt }}},
	{name: "live", tree: &byKey[JobID, *Job]{func(t *tables) **btree.Map[JobID, *Job] { return &t.live }}},
	{
		name: "members of arrays",
		tree: &ordered[pairKey]{func(t *tables) **btree.BTreeG[pairKey] { return &t.members }, pairLess},
	},
	{
		name: "tasks of arrays",
		tree: &ordered[taskKey]{func(t *tables) **btree.BTreeG[taskKey] { return &t.tasks }, taskLess},
	},
	{
		name: "starts of arrays",
		tree: &ordered[startKey]{func(t *tables) **btree.BTreeG[startKey] { return &t.starts }, startLess},
	},
	{
		name: "dependents",
		tree: &ordered[pairKey]{func(t *tables) **btree.BTreeG[pairKey] { return &t.depends }, pairLess},
	},
	{
		name: "submissions",
		tree: &ordered[submitKey]{func(t *tables) **btree.BTreeG[submitKey] { return &t.keys }, submitKeyLess},
	},
	{name: "names", tree: &ordered[nameKey]{func(t *tables) **btree.BTreeG[nameKey] { return &t.names }, nameLess}},
	{name: "order", tree: &byKey[int, *Node]{func(t *tables) **btree.Map[int, *Node] { return &t.order }}},
	{
		name: "idle texts",
		tree: &byKey[BlobHash, *Blob]{func(t *tables) **btree.Map[BlobHash, *Blob] { return &t.idle }},
	},
	{
		name: "timed",
		tree: &byKey[NodeName, *Node]{func(t *tables) **btree.Map[NodeName, *Node] { return &t.timed }},
	},
	{name: "powers", tree: &byKey[NodeName, *Node]{func(t *tables) **btree.Map[NodeName, *Node] { return &t.powers }}},
	{name: "mute", tree: &byKey[NodeName, *Node]{func(t *tables) **btree.Map[NodeName, *Node] { return &t.mute }}},
	{
		name: "leaves",
		tree: &ordered[groupKey]{func(t *tables) **btree.BTreeG[groupKey] { return &t.leaves }, groupLess},
	},
	{
		name: "cliques",
		tree: &ordered[groupKey]{func(t *tables) **btree.BTreeG[groupKey] { return &t.cliques }, groupLess},
	},
	{
		name: "held texts",
		tree: &ordered[heldText]{func(t *tables) **btree.BTreeG[heldText] { return &t.scripts }, heldLess},
	},

	// Derived, and compared by more than their keys or by less: a node is listed by its name, an empty load is as none,
	// a timer that has passed does nothing, and sums have a check of their own (checkTallies).
	{
		name:  "listed",
		tree:  &ordered[*Node]{func(t *tables) **btree.BTreeG[*Node] { return &t.listed }, nodeLess},
		loose: true,
	},
	{
		name:  "loads",
		tree:  &byKey[NodeName, *Load]{func(t *tables) **btree.Map[NodeName, *Load] { return &t.loads }},
		loose: true,
	},
	{
		name:  "timers",
		tree:  &ordered[timerKey]{func(t *tables) **btree.BTreeG[timerKey] { return &t.timers }, timerLess},
		loose: true,
	},
	{
		name:  "times",
		tree:  &byKey[JobID, [2]time.Time]{func(t *tables) **btree.Map[JobID, [2]time.Time] { return &t.timerAt }},
		loose: true,
	},
	{
		name:  "tallies",
		tree:  &ordered[*tally]{func(t *tables) **btree.BTreeG[*tally] { return &t.tallies }, scopeLess},
		loose: true,
	},
}

// trees yields the tables that are trees.
func trees(yield func(anyTree) bool) {
	for i := range tableRows {
		if x := tableRows[i].tree; x != nil && !yield(x) {
			return
		}
	}
}

// byKey is a table of values by their keys.
type byKey[K cmp.Ordered, V any] struct {
	of func(*tables) **btree.Map[K, V]
}

func (k *byKey[K, V]) make(t *tables) { *k.of(t) = btree.NewMap[K, V](degree) }

func (k *byKey[K, V]) copy(t *tables) { *k.of(t) = (*k.of(t)).Copy() }

func (k *byKey[K, V]) keys(t *tables) any { return (*k.of(t)).Keys() }

// ordered is a table of items that are their own keys.
type ordered[T any] struct {
	of   func(*tables) **btree.BTreeG[T]
	less func(a, b T) bool
}

func (o *ordered[T]) make(t *tables) { *o.of(t) = newOrdered(o.less) }

func (o *ordered[T]) copy(t *tables) { *o.of(t) = (*o.of(t)).Copy() }

func (o *ordered[T]) keys(t *tables) any { return (*o.of(t)).Items() }

// degree is how wide the trees are.
const degree = 32

func newOrdered[T any](less func(a, b T) bool) *btree.BTreeG[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: degree})
}

// records are how snapshots hold a table: a record for each of its values.
type records[V any] struct {
	field func(*snapshotRecord) **V
	all   func(*tables) iter.Seq[*V] // in the order of the table
	put   func(*tables, *V)          // puts one that was read into the table, with what derives from it
}

// write hands out a record for each value, until put is content with none.
func (s *records[V]) write(t *tables, put func(any) bool) {
	for v := range s.all(t) {
		r := &snapshotRecord{}
		*s.field(r) = v
		if !put(r) {
			return
		}
	}
}

// holds reports whether a record is one of this table.
func (s *records[V]) holds(r *snapshotRecord) bool { return *s.field(r) != nil }

// take puts the value of such a record into the table.
func (s *records[V]) take(t *tables, r *snapshotRecord) { s.put(t, *s.field(r)) }

// single yields a value, if there is one.
func single[V any](v *V) iter.Seq[*V] {
	return func(yield func(*V) bool) {
		if v != nil {
			yield(v)
		}
	}
}

// goneTasks yields what is known of tasks without a record.
func goneTasks(t *tables) iter.Seq[*GoneTasks] {
	return func(yield func(*GoneTasks) bool) {
		t.arrays.Scan(func(id JobID, c arrayCount) bool { return c.gone == nil || yield(t.Gone(id)) })
	}
}

func nodeLess(a, b *Node) bool { return CompareNodes(a.Name, b.Name) < 0 }

// queueKey is a pending record's place in the queue; see queueLess.
type queueKey struct {
	tier      int
	prio      uint32
	submitted time.Time
	id        JobID
}

// pairKey relates two jobs: array and member, or parent and dependent.
type pairKey struct{ a, b JobID }

func pairLess(x, y pairKey) bool {
	if x.a != y.a {
		return x.a < y.a
	}
	return x.b < y.b
}

// timerKey is when the clock alone may change a job.
type timerKey struct {
	at time.Time
	id JobID
}

func timerLess(x, y timerKey) bool {
	if c := x.at.Compare(y.at); c != 0 {
		return c < 0
	}
	return x.id < y.id
}

// nameKey finds jobs of one user and name, for singleton.
type nameKey struct {
	uid  uint32
	name string
	id   JobID
}

func nameLess(x, y nameKey) bool {
	if c := cmp.Compare(x.uid, y.uid); c != 0 {
		return c < 0
	}
	if c := cmp.Compare(x.name, y.name); c != 0 {
		return c < 0
	}
	return x.id < y.id
}

func stepLess(x, y *Step) bool {
	if x.ID.Job != y.ID.Job {
		return x.ID.Job < y.ID.Job
	}
	return x.ID.Step < y.ID.Step
}

func valuesOf[K cmp.Ordered, V any](m *btree.Map[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		m.Scan(func(_ K, v V) bool { return yield(v) })
	}
}
