package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster/federation"
)

// A federation is clusters that share jobs: see package federation for the rules. Here are its record, what a job
// carries of it, and the commands by which what other members say comes into the log.

// Federation is the one that this cluster is in, or was.
type Federation struct {
	Record federation.Record `json:"record"`
	Links  []FederationLink  `json:"links,omitempty"`
}

// FederationLink is what is known here of another member.
type FederationLink struct {
	ID federation.ID `json:"id"`
	// Heard is the newest index of its log of which this cluster has taken orders: older ones say nothing any more.
	Heard uint64 `json:"heard,omitempty"`
	Away  bool   `json:"away,omitempty"` // it does not answer
}

// SharedJob is what a job of a federation has besides.
type SharedJob struct {
	Part federation.Part `json:"part"`
	// Asked is what the user said where the specification has what this cluster filled in.
	Asked *AskedOf `json:"asked,omitempty"`
	// Spec tells specifications apart, of a sibling.
	Spec string `json:"spec,omitempty"`
	// Granted is when this cluster was granted the job.
	Granted time.Time `json:"granted,omitzero"`
	// Ran is how the job has ended at another cluster.
	Ran Outcome `json:"ran,omitempty"`
}

// AskedOf are fields of a specification in which each cluster fills in its own where nothing was asked.
type AskedOf struct {
	Partitions []string `json:"partitions,omitempty"`
	Account    string   `json:"account,omitempty"`
	QOS        string   `json:"qos,omitempty"`
	WCKey      string   `json:"wckey,omitempty"`
}

func fillable(s *JobSpec) *AskedOf { return &AskedOf{s.Partitions, s.Account, s.QOS, s.WCKey} }

// AsAsked is the specification of a shared job as its user has asked for it.
func AsAsked(j *Job) JobSpec {
	s := *j.Spec
	if a := j.Fed.Asked; a != nil {
		s.Partitions = a.Partitions
		s.Account = a.Account
		s.QOS = a.QOS
		s.WCKey = a.WCKey
	}
	s.Depends = Depends{} // the origin waits for them
	return s
}

// Federation is the one that this cluster is in, or was; nil: it never was.
func (b *books) Federation() *Federation { return b.federation }

// FederationSelf is this cluster among the members of its federation, nil if it is in none.
func FederationSelf(s *Snapshot) *federation.Member { return selfMember(&s.tables) }

// FederationInactive reports whether this cluster starts nothing, by its state in its federation.
func FederationInactive(s *Snapshot) bool {
	self := FederationSelf(s)
	return self != nil && self.State == federation.Inactive
}

func selfMember(t *tables) *federation.Member {
	if t.federation == nil {
		return nil
	}
	return t.federation.Record.Named(t.config.ClusterName)
}

// Link is what is known of a member.
func (f *Federation) Link(id federation.ID) FederationLink {
	for _, l := range f.Links {
		if l.ID == id {
			return l
		}
	}
	return FederationLink{ID: id}
}

// putFederation replaces the record; it is never changed in place.
func putFederation(t *tx, f *Federation) {
	keepOld(t, &t.federation)
	t.federation = f
}

func putLink(t *tx, l FederationLink) {
	f := *t.federation
	f.Links = slices.DeleteFunc(slices.Clone(f.Links), func(o FederationLink) bool { return o.ID == l.ID })
	f.Links = append(f.Links, l)
	slices.SortFunc(f.Links, func(a, b FederationLink) int { return cmp.Compare(a.ID, b.ID) })
	putFederation(t, &f)
}

// idBase is what the numbers of jobs made here have in their upper bits.
func idBase(t *tables) JobID {
	if m := selfMember(t); m != nil {
		return JobID(m.ID.Number(0))
	}
	return 0
}

// numbered is a job's number in the federation, if there is one.
func numbered(base, local JobID) JobID {
	if base == 0 {
		return local
	}
	return base | local&federation.LocalMask
}

// countedBits are those of a job's number that tell the order of submission.
func countedBits(t *tables) JobID {
	if t.federation == nil {
		return ^JobID(0)
	}
	return federation.LocalMask
}

// FederationPut makes a federation, changes it, or says that it is no more.
type FederationPut struct {
	Record federation.Record `json:"record"`
}

func (*FederationPut) kind() string { return "federation_put" }

func (c *FederationPut) apply(t *tx) (any, error) {
	if !t.by.Operator() {
		return nil, Errorf(Denied, ErrAccess, "only operators change federations")
	}
	old := t.federation
	if old != nil && old.Record.Name == c.Record.Name && !c.Record.Newer(&old.Record) {
		return nil, nil // it is known, or newer is
	}
	if err := checkFederation(t, &c.Record); err != nil {
		return nil, err
	}
	was := selfMember(t.tables)
	next := &Federation{Record: c.Record}
	if old != nil {
		for _, l := range old.Links {
			if sameMember(&c.Record, &old.Record, l.ID) {
				next.Links = append(next.Links, l)
			}
		}
	}
	putFederation(t, next)
	if was != nil {
		partWith(t, was.ID, &old.Record)
	}
	return nil, nil
}

// sameMember reports whether a number stands for one cluster in two records.
func sameMember(a, b *federation.Record, id federation.ID) bool {
	m := a.Member(id)
	o := b.Member(id)
	return m != nil && o != nil && m.Name == o.Name
}

// checkFederation refuses what is no federation, or none for this cluster.
func checkFederation(t *tx, r *federation.Record) error {
	if err := checkMembers(r); err != nil {
		return err
	}
	self := r.Named(t.config.ClusterName)
	if now := selfMember(t.tables); now != nil && t.federation.Record.Name != r.Name {
		return Errorf(Conflict, "", "cluster %s is in federation %s: it leaves that first "+
			"(sacctmgr modify cluster %s set federation=)", t.config.ClusterName, t.federation.Record.Name, now.Name)
	}
	if self == nil {
		return nil
	}
	for _, m := range r.Members {
		if p, ok := t.PeerCluster(m.Name); m.ID != self.ID && !(ok && p.calls()) {
			return Errorf(NotFound, "", "cluster %s is no peer of %s, which is to share jobs with it: "+
				"muster peer invite and muster peer add make it one", m.Name, t.config.ClusterName)
		}
	}
	return nil
}

// calls reports whether a peer may call, and can be called.
func (p *PeerCluster) calls() bool {
	return p.Send != "" && p.URLs != "" && p.Accept != ""
}

// checkMembers refuses a federation whose name or whose members' numbers cannot be.
func checkMembers(r *federation.Record) error {
	if err := firstError(
		refuseIf(r.Name == "" || strings.ContainsAny(r.Name, ",;: \t\n=") || len(r.Name) > maxPeerText,
			Invalid, "", "%q cannot be the name of a federation", r.Name),
		refuseIf(len(r.Members) > federation.MaxID,
			Invalid, "", "a federation has %d clusters at most", federation.MaxID),
	); err != nil {
		return err
	}
	seen := federation.Set(0)
	for _, m := range r.Members {
		if m.ID < 1 || m.ID > federation.MaxID || seen.Has(m.ID) || r.Named(m.Name).ID != m.ID {
			return Errorf(Invalid, "", "federation %s: number %d of cluster %s is another one's, or not from 1 to %d",
				r.Name, m.ID, m.Name, federation.MaxID)
		}
		seen = seen.With(m.ID)
	}
	return nil
}

// partWith settles the jobs that were shared with clusters that are members no more. Those that a cluster holds which
// has left, or which this one holds of another that did, are the holder's own from now on.
func partWith(t *tx, self federation.ID, old *federation.Record) {
	left := federation.Set(0)
	for _, m := range old.Members {
		if !sameMember(&t.federation.Record, old, m.ID) {
			left = left.With(m.ID)
		}
	}
	if left == 0 {
		return
	}
	if left.Has(self) {
		left = ^federation.Set(0)
	}
	for _, j := range slices.Collect(t.Jobs()) {
		if j.Fed != nil {
			partJob(t, j, left)
		}
	}
	partTerms(t, self, left)
}

// partJob settles one job with clusters that have left.
func partJob(t *tx, j *Job, left federation.Set) {
	p := j.Fed.Part
	n := *j
	fed := *j.Fed
	n.Fed = &fed
	switch alone := left.Has(p.Self); {
	case !p.IsOrigin() && (alone || left.Has(p.Origin)):
		if j.Phase == Pending && !p.Mine() {
			revoke(t, &n)
			return
		}
		n.Fed = nil
	case p.IsOrigin() && p.Holder != 0 && p.Holder != p.Self && left.Has(p.Holder):
		if j.Phase == Pending {
			revoke(t, &n)
			return
		}
	case p.IsOrigin() && alone:
		n.Fed = nil
	default:
		fed.Part.Viable = p.Viable &^ left
		fed.Part.Active = p.Active &^ left
		if fed.Part == p {
			return
		}
	}
	t.putJob(&n)
	t.tell(&n)
}

// ViableFor is where in the federation a job may run that is submitted here; none: it is in no federation, or stays
// here.
func ViableFor(s *Snapshot, spec *JobSpec) (viable federation.Set, err error) {
	self := FederationSelf(s)
	if self == nil {
		return 0, nil
	}
	if !self.State.Takes() {
		return 0, Errorf(Unavailable, ErrSubmissions, "cluster %s takes no jobs now: its fedstate in federation %s "+
			"is not ACTIVE; sbatch -M names another one", self.Name, s.federation.Record.Name)
	}
	for _, m := range s.federation.Record.Members {
		if m.State.Takes() && wanted(spec, &m) {
			viable = viable.With(m.ID)
		}
	}
	stays := ""
	switch {
	case spec.Array != nil:
		stays = "job arrays"
	case spec.Kind != Batch:
		stays = "jobs of salloc and srun"
	case spec.Cron != nil:
		stays = "jobs of crontabs"
	}
	switch {
	case viable == 0:
		return 0, Errorf(Invalid, ErrFedFeature, "no cluster of federation %s has the features %s, is named by "+
			"--clusters and takes jobs: sacctmgr show federation", s.federation.Record.Name,
			spec.Layout.Clone().Features)
	case stays != "" && !viable.Has(self.ID):
		return 0, Errorf(Invalid, ErrUnsupported, "%s run at the cluster where they are submitted, and %s is none of "+
			"those wanted: submit it there (-M)", stays, self.Name)
	case stays != "":
		return 0, nil
	}
	return viable, nil
}

// wanted reports whether a job may go to a member: by --clusters and --cluster-constraint.
func wanted(spec *JobSpec, m *federation.Member) bool {
	if spec.Layout == nil {
		return true
	}
	if names := spec.Clusters; names != "" && !strings.EqualFold(names, "all") {
		is := func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), m.Name) }
		if !slices.ContainsFunc(strings.Split(names, ","), is) {
			return false
		}
	}
	list, none := strings.CutPrefix(spec.Features, "!")
	return list == "" || m.Fits(strings.Split(list, ","), none)
}

// setPlaces changes where a job may run that waits and is shared; n is a copy. A member that has it already keeps it,
// also if that takes no new ones.
func (p *Patch) setPlaces(t *tx, n *Job) error {
	if p.Features == nil && p.Clusters == nil {
		return nil
	}
	if n.Fed == nil || !n.Fed.Part.IsOrigin() || t.federation == nil {
		return Errorf(Invalid, "", "clusters of a federation do not share the job: it runs where it is")
	}
	if n.Fed.Part.Holder != 0 {
		return Errorf(Conflict, ErrNotPending, "job %d has begun", n.ID)
	}
	record := &t.federation.Record
	part := n.Fed.Part
	if err := checkClusters(record, p.Clusters); err != nil {
		return err
	}
	s := n.Spec
	set(&s.Features, p.Features)
	set(&s.Clusters, p.Clusters)
	viable := federation.Set(0)
	for _, m := range record.Members {
		if wanted(s, &m) && (m.State.Takes() || part.Viable.Has(m.ID)) {
			viable = viable.With(m.ID)
		}
	}
	if viable == 0 {
		return Errorf(Invalid, ErrFedFeature, "no cluster of federation %s has the features %s, is named and takes "+
			"jobs: sacctmgr show federation", record.Name, s.Features)
	}
	part.Active = part.Active.Without(part.Self) | viable&federation.SetOf(part.Self)
	part.Viable = viable
	n.Fed = withPart(n, part).Fed
	return nil
}

// checkClusters refuses names of clusters that are in no federation; nil: none are given.
func checkClusters(record *federation.Record, names *string) error {
	if names == nil || *names == "" || strings.EqualFold(*names, "all") {
		return nil
	}
	for name := range strings.SplitSeq(*names, ",") {
		if record.Named(strings.TrimSpace(name)) == nil {
			return Errorf(NotFound, ErrClusterName, "cluster %q is not in federation %s", name, record.Name)
		}
	}
	return nil
}

// shares is what a job carries that is to be shared.
func shares(t *tx, c *Submit) (*SharedJob, error) {
	self := selfMember(t.tables)
	if c.Viable == 0 || self == nil || c.Dead != "" {
		return nil, nil
	}
	if s := c.Spec; s.Kind != Batch || s.Array != nil {
		return nil, Errorf(Invalid, ErrUnsupported, "only batch jobs that are no arrays are shared by clusters")
	}
	part := federation.Part{
		Self:   self.ID,
		Origin: self.ID,
		Viable: c.Viable,
		Active: c.Viable & federation.SetOf(self.ID),
	}
	return &SharedJob{Part: part, Asked: fillable(c.Spec)}, nil
}

// revoke ends a record of a job that another cluster has; n is a copy.
func revoke(t *tx, n *Job) {
	t.end(n, Revoked, NoReason)
	t.putJob(n)
	t.ended(n)
}

// Elsewhere reports whether a job waits here only for what another cluster makes of it.
func Elsewhere(j *Job) bool {
	return j.Fed != nil && j.Phase == Pending && j.Fed.Part.IsOrigin() && j.Fed.Part.Away()
}

// heldElsewhere reports whether another cluster holds a job of this one.
func heldElsewhere(j *Job) bool {
	return Elsewhere(j) && j.Fed.Part.Holder != 0
}

// begunAnywhere reports whether a job has begun, here or elsewhere.
func begunAnywhere(j *Job) bool {
	return j.Phase > Pending || heldElsewhere(j) && j.Fed.Part.Begun
}

// RanAs is how a job has ended, wherever it ran.
func RanAs(j *Job) Outcome {
	if j.Fed != nil && j.Fed.Ran != NoOutcome {
		return j.Fed.Ran
	}
	return j.Outcome
}

// owes reports whether the origin is yet to hear of a job's end: so long it stays.
func owes(t *tables, j *Job) bool {
	if j.Fed == nil || !j.Fed.Part.Owes(j.Phase == Ended && j.Outcome != Revoked) {
		return false
	}
	return t.federation != nil && t.federation.Record.Member(j.Fed.Part.Origin) != nil
}

// shareWait is why a shared job cannot start here now.
func shareWait(t *tables, j *Job) Reason {
	switch p := &j.Fed.Part; {
	case p.Away():
		return WaitSiblings
	case p.IsOrigin() || p.Mine() || t.federation == nil:
		return NoReason
	case t.federation.Link(p.Origin).Away:
		return WaitSiblings
	}
	return NoReason
}

// withPart is the job with another part.
func withPart(j *Job, p federation.Part) *Job {
	n := *j
	fed := *j.Fed
	fed.Part = p
	n.Fed = &fed
	return &n
}

// fedAgain is what a shared job carries when it waits again.
func fedAgain(j *Job) *SharedJob {
	if j.Fed == nil {
		return nil
	}
	fed := *j.Fed
	fed.Part = fed.Part.Again()
	fed.Ran = NoOutcome
	return &fed
}

// begins is what a job carries that starts here.
func begins(t *tx, j *Job, alloc *Alloc) (*SharedJob, error) {
	if err := t.mayShare(j, alloc); err != nil || j.Fed == nil {
		return nil, err
	}
	part, ok := j.Fed.Part.Take()
	if !ok {
		return nil, Errorf(Conflict, ErrBusy, "job %d is held by another cluster of the federation", j.ID)
	}
	return withPart(j, part).Fed, nil
}

// asks has a job that is to start here ask its origin first, if it must; false: it may start.
func asks(t *tx, d Decision) bool {
	j, ok := t.jobs.Get(d.Job)
	if !ok || j.Fed == nil || j.Phase != Pending || j.Fed.Part.IsOrigin() || j.Fed.Part.Mine() {
		return false
	}
	if p := j.Fed.Part; !p.Asks && !p.Away() {
		p.Asks = true
		n := withPart(j, p)
		n.Wait = WaitSiblings
		n.WaitNote = ""
		t.putJob(n)
		t.tell(n)
	}
	return true
}

// DropAsked leaves out starts for which the origin was asked, and has not answered. asks says that there is a start
// for which an origin must be asked.
func DropAsked(s *Snapshot, ds []Decision) (_ []Decision, asks bool) {
	if s.federation == nil {
		return ds, false
	}
	left := slices.DeleteFunc(ds, func(d Decision) bool {
		j, ok := s.jobs.Get(d.Job)
		if !ok || d.Start == nil || j.Fed == nil || j.Fed.Part.IsOrigin() || j.Fed.Part.Mine() {
			return false
		}
		asks = true
		return j.Fed.Part.Asks
	})
	return left, asks
}

// PlaceOf names the cluster of the federation where something is done to a job, "" if that is here: by its number,
// and what runs elsewhere where it runs. runs: it can only be done to what runs.
func PlaceOf(s *Snapshot, id JobID, runs bool) string {
	self := FederationSelf(s)
	origin := federation.Of(uint32(id))
	if self == nil || origin == 0 {
		return ""
	}
	j, ok := s.jobs.Get(id)
	if ok && isHere(j) {
		return ""
	}
	at := origin
	if origin == self.ID {
		if !runs || !ok || !begunElsewhere(j) {
			return ""
		}
		at = j.Fed.Part.Holder
	}
	if m := s.federation.Record.Member(at); m != nil {
		return m.Name
	}
	return ""
}

// isHere reports whether a job is this cluster's own, or runs here.
func isHere(j *Job) bool {
	if j.Fed == nil {
		return true
	}
	return j.holds() && j.Fed.Part.Mine()
}

// begunElsewhere reports whether a job runs at another cluster that has it.
func begunElsewhere(j *Job) bool {
	return heldElsewhere(j) && j.Fed.Part.Begun
}

// dropSibling takes a job that waits away from one cluster where it may run.
func dropSibling(t *tx, c *Cancel, jobs []*Job, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	j := jobs[0]
	if j.Fed == nil || !j.Fed.Part.IsOrigin() {
		return nil, Errorf(Invalid, ErrUnsupported, "job %d is shared by no clusters: scancel ends it", j.ID)
	}
	if err := firstError(
		refuseIf(j.Phase != Pending || j.Fed.Part.Holder != 0,
			Conflict, ErrNotPending, "job %d has begun", j.ID),
		refuseIf(!j.Fed.Part.Viable.Has(c.Sibling),
			NotFound, ErrJobID, "job %d is not to run at cluster %d of the federation", j.ID, c.Sibling),
		refuseIf(j.Fed.Part.Viable.Without(c.Sibling) == 0,
			Conflict, "", "job %d is to run at that cluster alone: scancel ends it", j.ID),
	); err != nil {
		return nil, err
	}
	part := j.Fed.Part
	part.Viable = part.Viable.Without(c.Sibling)
	n := withPart(j, part)
	t.putJob(n)
	t.tell(n)
	return []JobID{n.ID}, nil
}
