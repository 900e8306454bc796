package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"dev.muster/wire"
)

// Jobs of a Slurm cluster that this one follows. Their records are in history alone; the state knows how far the
// import has come, so that it goes on where it stopped, on any server.

// TRESList is counts by the names of resources, as cpu=4,mem=2000,gres/gpu=2: what Slurm's database has with numbers
// for names.
type TRESList string

// Count returns the count of a resource.
func (l TRESList) Count(name string) (n uint64, ok bool) {
	for have, count := range l.All() {
		if have == name {
			return count, true
		}
	}
	return 0, false
}

// All yields the resources and their counts in order.
func (l TRESList) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for rest := string(l); rest != ""; {
			var item string
			item, rest, _ = strings.Cut(rest, ",")
			name, text, _ := strings.Cut(item, "=")
			n := uint64(0)
			for _, c := range []byte(text) {
				n = n*10 + uint64(c-'0')
			}
			if !yield(name, n) {
				return
			}
		}
	}
}

// ImportedJob is what Slurm's database had of one run of a job, as far as a job of muster has no place for it. Numbers
// are as they were there.
type ImportedJob struct {
	Cluster string `json:"cluster"`
	Release int    `json:"release"` // of Slurm: 2205, 2605
	Row     uint64 `json:"row"`     // job_db_inx
	Changed int64  `json:"changed"` // mod_time
	SLUID   uint64 `json:"sluid,omitempty"`

	State      uint32 `json:"state,omitempty"`
	Exit       uint32 `json:"exit,omitempty"`
	Derived    uint32 `json:"derived,omitempty"`
	Flags      uint32 `json:"flags,omitempty"`
	Reason     string `json:"reason,omitempty"` // why it waited last
	Eligible   int64  `json:"eligible,omitempty"`
	Start      int64  `json:"start,omitempty"`
	End        int64  `json:"end,omitempty"`
	Suspended  int64  `json:"suspended,omitempty"`
	Limit      uint32 `json:"limit,omitempty"`
	CPUs       uint32 `json:"cpus,omitempty"` // asked for
	Nodes      uint32 `json:"nodes,omitempty"`
	NodeList   string `json:"node_list,omitempty"`
	Assoc      uint32 `json:"assoc,omitempty"`
	QOS        uint32 `json:"qos,omitempty"`
	WCKey      uint32 `json:"wckey,omitempty"`
	Resv       uint32 `json:"resv,omitempty"`
	Partition  string `json:"partition,omitempty"`
	ArrayLimit uint32 `json:"array_limit,omitempty"`

	TRESAlloc TRESList `json:"tres_alloc,omitempty"`
	TRESReq   TRESList `json:"tres_req,omitempty"`

	ImportedTexts
}

// ImportedTexts are what few jobs have, or those of recent releases.
type ImportedTexts struct {
	QOSReq        string `json:"qos_req,omitempty"`
	ResvReq       string `json:"resv_req,omitempty"`
	Extra         string `json:"extra,omitempty"`
	FailedNode    string `json:"failed_node,omitempty"`
	Container     string `json:"container,omitempty"`
	Exclusive     string `json:"exclusive,omitempty"`
	OverSubscribe string `json:"oversubscribe,omitempty"`
}

// ImportedStep is the same of a step.
type ImportedStep struct {
	State     uint32   `json:"state,omitempty"`
	Exit      int32    `json:"exit,omitempty"`
	Start     int64    `json:"start,omitempty"`
	End       int64    `json:"end,omitempty"`
	Suspended int64    `json:"suspended,omitempty"`
	Part      *uint32  `json:"part,omitempty"` // of a heterogeneous step
	Nodes     uint32   `json:"nodes,omitempty"`
	NodeList  string   `json:"node_list,omitempty"`
	Layout    int32    `json:"layout,omitempty"`
	FreqMin   uint32   `json:"freq_min,omitempty"`
	FreqMax   uint32   `json:"freq_max,omitempty"`
	FreqGov   uint32   `json:"freq_gov,omitempty"`
	Freq      float64  `json:"freq,omitempty"`
	Energy    uint64   `json:"energy,omitempty"`
	Limit     *uint32  `json:"limit,omitempty"` // minutes
	Container string   `json:"container,omitempty"`
	WorkDir   string   `json:"work_dir,omitempty"`
	TRESAlloc TRESList `json:"tres_alloc,omitempty"`

	In  ImportedUse `json:"in,omitzero"`
	Out ImportedUse `json:"out,omitzero"`
}

// ImportedUse is what the tasks of a step took in, or gave out. Max, Min and Tot are left out where they are as Ave,
// and MinNode and MinTask where they are as MaxNode and MaxTask.
type ImportedUse struct {
	Ave     TRESList  `json:"ave,omitempty"`
	Max     *TRESList `json:"max,omitempty"`
	MaxNode TRESList  `json:"max_node,omitempty"`
	MaxTask TRESList  `json:"max_task,omitempty"`
	Min     *TRESList `json:"min,omitempty"`
	MinNode *TRESList `json:"min_node,omitempty"`
	MinTask *TRESList `json:"min_task,omitempty"`
	Tot     *TRESList `json:"tot,omitempty"`
}

// Bounds of an import.
const (
	MaxImportedRow   = 128 << 10 // bytes of a record
	MaxImportedBatch = 4 << 20   // bytes of the records of one command
	MaxImports       = 100       // clusters
	maxImportWord    = 64
	maxImportedNodes = 1 << 17
	maxImportedTime  = 1 << 34 // seconds since 1970
)

// Import is how far the history of a Slurm cluster is taken.
type Import struct {
	Cluster string `json:"cluster"`
	Release int    `json:"release"`
	// Source is the mark of the dump, Passed how many of its jobs are passed; Over says that all are.
	Source string `json:"source"`
	Passed int64  `json:"passed"`
	Over   bool   `json:"over,omitempty"`
	// Newest is when the newest of the jobs changed that were in dumps before this one, and in this one so far.
	Newest    int64 `json:"newest"`
	NewestNow int64 `json:"newest_now"`
	// Highest is the highest number of a job.
	Highest JobID `json:"highest"`
	// Jobs and Steps count what was sent, Refused what could not be taken.
	Jobs    int64 `json:"jobs"`
	Steps   int64 `json:"steps"`
	Refused int64 `json:"refused,omitempty"`

	At time.Time `json:"at"`
	By uint32    `json:"by"`
}

// Imports yields how far the histories of other clusters are taken, by the names of these.
func (b *books) Imports() iter.Seq[*Import] { return valuesOf(b.imports) }

// ImportHistory puts records of a Slurm cluster into history. Those that history has are not taken twice.
type ImportHistory struct {
	Import Import `json:"import"`
	// From is what Import.Passed was before.
	From int64 `json:"from"`
	// Gap is how many numbers are left free above Highest.
	Gap JobID `json:"gap,omitempty"`
	// Jobs and Steps are records. Fields of them that a server does not know stay in its history as they are.
	Jobs  []wire.RawMessage `json:"jobs,omitempty" text:"-"`
	Steps []wire.RawMessage `json:"steps,omitempty" text:"-"`
	// Resvs are times of reservations that are over.
	Resvs []wire.RawMessage `json:"resvs,omitempty" text:"-"`
}

// Imported is a record that came from a Slurm cluster, and its text: one of the three.
type Imported struct {
	Job  *Job
	Step *Step
	Resv *ResvSpan
	Text []byte
}

func (*ImportHistory) kind() string { return "import_history" }

func (c *ImportHistory) apply(t *tx) (any, error) {
	name := c.Import.Cluster
	before, known := t.imports.Get(name)
	if !known {
		before = &Import{}
	}
	goesOn := known && before.Source == c.Import.Source && !before.Over
	at := int64(0)
	if goesOn {
		at = before.Passed
	}
	size := textSize(c.Jobs) + textSize(c.Steps) + textSize(c.Resvs)
	if err := firstError(
		refuseIf(!t.by.Operator(),
			Denied, ErrAccess, "only operators may import history"),
		refuseIf(name == "" || checkWords(name, c.Import.Source) != nil,
			Invalid, "", "import: %q cannot be the name of a cluster, or %q the mark of a dump", name,
			c.Import.Source),
		refuseIf(!known && t.imports.Len() >= MaxImports,
			Invalid, "", "import: history has jobs of %d clusters: that is the most", MaxImports),
		refuseIf(size > MaxImportedBatch,
			Invalid, "", "import: %d bytes at once: the most are %d", size, MaxImportedBatch),
		refuseIf(c.From != at || c.Import.Passed < at,
			Conflict, "", "import of %s: %d jobs of the dump are taken, not %d: another import is under way", name, at,
			c.From),
	); err != nil {
		return nil, err
	}
	events, err := c.events()
	if err != nil {
		return nil, err
	}
	if err := c.raiseNextID(t); err != nil {
		return nil, err
	}
	now := c.Import
	now.Jobs = before.Jobs + int64(len(c.Jobs))
	now.Steps = before.Steps + int64(len(c.Steps))
	now.Refused += before.Refused
	now.Highest = max(now.Highest, before.Highest)
	now.Newest = before.Newest
	if goesOn {
		now.NewestNow = max(now.NewestNow, before.NewestNow)
	}
	if now.Over {
		now.Newest = max(now.Newest, now.NewestNow)
	}
	now.At = t.at
	now.By = t.by.UID
	putValue(t, t.imports, name, &now)
	t.events = append(t.events, events...)
	return nil, nil
}

// raiseNextID keeps the numbers of new jobs above those of the other cluster, with a gap for those that it gives
// meanwhile.
func (c *ImportHistory) raiseNextID(t *tx) error {
	next := uint64(c.Import.Highest) + 1 + uint64(c.Gap)
	if c.Gap == 0 || next <= uint64(t.NextID) {
		return nil
	}
	if next > uint64(t.config.MaxJobID) {
		return Errorf(Conflict, "", "import of %s: new jobs would begin at number %d, and MaxJobId is %d: "+
			"raise MaxJobId in slurm.conf or give a smaller --id-gap", c.Import.Cluster, next, t.config.MaxJobID)
	}
	keepOld(t, &t.NextID)
	t.NextID = JobID(next)
	return nil
}

// events decodes and checks the records.
func (c *ImportHistory) events() (out []Event, err error) {
	out = make([]Event, 0, len(c.Jobs)+len(c.Steps)+len(c.Resvs))
	var dec wire.Decoder
	for _, text := range c.Jobs {
		j := &Job{}
		if err = dec.Decode(text, j); err == nil {
			err = CheckImported(c.Import.Cluster, j, nil, len(text))
		}
		if err != nil {
			return nil, Errorf(Invalid, "", "import: job %d: %v", j.ID, err)
		}
		out = append(out, Event{Imported: &Imported{Job: j, Text: text}})
	}
	for _, text := range c.Steps {
		s := &Step{}
		if err = dec.Decode(text, s); err == nil {
			err = CheckImported(c.Import.Cluster, nil, s, len(text))
		}
		if err != nil {
			return nil, Errorf(Invalid, "", "import: step %d of job %d: %v", s.ID.Step, s.ID.Job, err)
		}
		out = append(out, Event{Imported: &Imported{Step: s, Text: text}})
	}
	for _, text := range c.Resvs {
		r := &ResvSpan{}
		if err = dec.Decode(text, r); err == nil {
			err = CheckImportedResv(r, len(text))
		}
		if err != nil {
			return nil, Errorf(Invalid, "", "import: reservation %.64q: %v", r.Name, err)
		}
		out = append(out, Event{Imported: &Imported{Resv: r, Text: text}})
	}
	return out, nil
}

// CheckImportedResv reports why a time of a reservation cannot be taken over, with so many bytes as text.
func CheckImportedResv(r *ResvSpan, size int) error {
	switch {
	case size > MaxImportedRow:
		return fmt.Errorf("it has %d bytes: the most are %d", size, MaxImportedRow)
	case r.Name == "" || len(r.Nodes) > maxImportedNodes:
		return fmt.Errorf("it has name %.64q and %d nodes", r.Name, len(r.Nodes))
	case r.From <= 0 || r.To <= r.From || r.To > maxImportedTime:
		return fmt.Errorf("it cannot last from %d to %d", r.From, r.To)
	}
	return cmp.Or(checkWords(r.Name), checkTexts(r.Users...), checkTexts(r.Accounts...))
}

// CheckImported reports why a record cannot be taken over: a job's, or a step's, with so many bytes as text.
func CheckImported(from string, j *Job, s *Step, size int) error {
	if size > MaxImportedRow {
		return fmt.Errorf("it has %d bytes: the most are %d", size, MaxImportedRow)
	}
	if s != nil {
		return checkImportedStep(s)
	}
	if j.Imported == nil || j.Spec == nil || j.Imported.Cluster != from {
		return fmt.Errorf("it is not of cluster %s", from)
	}
	i := j.Imported
	shares := 0
	if j.Alloc != nil {
		shares = len(j.Alloc.Shares)
	}
	if j.ID == 0 || shares > maxImportedNodes {
		return fmt.Errorf("it has number %d and %d nodes", j.ID, shares)
	}
	switch j.Phase {
	case Pending, Running, Suspended, Ended:
	default:
		return fmt.Errorf("it is in phase %d", j.Phase)
	}
	if (j.Phase == Ended) != (j.Outcome != NoOutcome && !j.Ended.IsZero()) {
		return errors.New("whether it is over is not clear")
	}
	for _, at := range [...]int64{j.Submitted.Unix(), i.Changed, i.Start, i.End, i.Suspended} {
		if at < 0 || at > maxImportedTime {
			return fmt.Errorf("time %d is not possible", at)
		}
	}
	sp := j.Spec
	return cmp.Or(
		checkWords(sp.User, sp.Account, sp.QOS, sp.WCKey),
		checkTexts(sp.Name, sp.Comment, sp.AdminComment, j.SystemComment, sp.SubmitLine, sp.WorkDir),
		checkTRES(i.TRESAlloc), checkTRES(i.TRESReq))
}

func checkImportedStep(s *Step) error {
	if s.Imported == nil || s.ID.Job == 0 {
		return errors.New("it is not of a job of another cluster")
	}
	i := s.Imported
	for _, at := range [...]int64{i.Start, i.End, i.Suspended} {
		if at < 0 || at > maxImportedTime {
			return fmt.Errorf("time %d is not possible", at)
		}
	}
	if len(s.Shares) > maxImportedNodes {
		return fmt.Errorf("it has %d nodes", len(s.Shares))
	}
	return cmp.Or(checkTexts(s.Name, s.SubmitLine), checkTRES(i.TRESAlloc), checkTRES(i.In.Ave), checkTRES(i.Out.Ave))
}

// checkWords refuses texts that cannot be names.
func checkWords(words ...string) error {
	for _, w := range words {
		if len(w) > 4*maxImportWord || strings.ContainsFunc(w, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%.64q cannot be a name", w)
		}
	}
	return checkTexts(words...)
}

// checkTexts refuses texts that are not UTF-8 or have control characters but tabs and ends of lines.
func checkTexts(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%.64q is not UTF-8", text)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
			return fmt.Errorf("%.64q has control characters", text)
		}
	}
	return nil
}

// checkTRES refuses what is not NAME=COUNT,…
func checkTRES(l TRESList) error {
	for rest := string(l); rest != ""; {
		var item string
		item, rest, _ = strings.Cut(rest, ",")
		name, count, _ := strings.Cut(item, "=")
		if name == "" || count == "" || len(count) > 20 || strings.Trim(count, "0123456789") != "" {
			return fmt.Errorf("%.64q is not a count of a resource", item)
		}
	}
	return nil
}

func textSize(list []wire.RawMessage) (n int) {
	for _, text := range list {
		n += len(text)
	}
	return n
}

// importedFootprint is what a job of another cluster leaves in history for reports, once it is over.
func importedFootprint(j *Job) (f Footprint) {
	if j.Phase != Ended || j.Started.IsZero() || j.Ended.Before(j.Started) {
		return f
	}
	f.Class = UsageClass{
		Account:     j.Spec.Account,
		User:        j.Spec.User,
		UID:         j.Spec.UID,
		GID:         j.Spec.GID,
		Partition:   j.Imported.Partition,
		WCKey:       strings.TrimPrefix(j.Spec.WCKey, WCKeyDefault),
		QOS:         j.Spec.QOS,
		Reservation: j.Spec.Reservation,
		Outcome:     j.Outcome,
	}
	for name, n := range j.Imported.TRESAlloc.All() {
		if n < 1<<50 { // others are not known
			f.Class.TRES = append(f.Class.TRES, Amount{name, float64(n)})
		}
	}
	f.Runs = runsOf(j)
	return f
}
