package cluster

import (
	"cmp"
	"strconv"
)

// All servers keep a job's request as long as the job, like its script and environment. Each text of it is bounded
// elsewhere; these bounds are for lists.
const (
	maxSpecBytes  = 2 << 20  // of one job
	freeSpecBytes = 16 << 10 // of a job for which the user's others do not count
	maxKinds      = 64       // of generic resources that one request may name
	perElement    = 24       // what an element of a list takes besides its texts, about
	// perDepend is likewise what a dependency counts for. It has a place among those of the job that it names, and each
	// end of such a job looks at all of those that wait for it.
	perDepend = 512
)

// CheckNew refuses a job that is too large, or that one of its partitions is closed to.
func CheckNew(s *Snapshot, spec *JobSpec) error {
	if err := checkBulk(s, spec); err != nil {
		return err
	}
	return CheckEntry(s, spec)
}

// checkBulk refuses a job that asks for more than all of its user's jobs may.
func checkBulk(s *Snapshot, spec *JobSpec) error {
	size := spec.bytes()
	if size > maxSpecBytes {
		return Errorf(Invalid, ErrTooBig, "arguments, lists and options of the job have %d bytes, more than %d: "+
			"have the script read them from a file", size, maxSpecBytes)
	}
	return checkBulkOf(s, spec.UID, spec.User, size)
}

// checkBulkOf refuses to keep so many bytes more of a user's jobs, besides scripts and environments.
func checkBulkOf(s *Snapshot, uid uint32, user string, size int) error {
	most := s.config.MaxUserScriptBytes()
	if uid == 0 || most < 0 || size <= freeSpecBytes {
		return nil
	}
	seen := map[*JobSpec]bool{} // tasks of an array have one
	sum := int64(size)
	for j := range s.Jobs() {
		if j.Spec.UID == uid && !seen[j.Spec] {
			seen[j.Spec] = true
			sum += int64(j.Spec.bytes())
		}
	}
	if sum <= most {
		return nil
	}
	return Errorf(Unavailable, ErrTooBig,
		"the jobs of user %s would have %d bytes of arguments, lists and options, more than "+
			"MaxUserScriptBytes=%d: wait until some have ended, or have scripts read them from files",
		cmp.Or(user, strconv.FormatUint(uint64(uid), 10)), sum, most)
}

// bytes is about how many bytes what a job asks for takes, but for its script and environment.
func (s *JobSpec) bytes() int {
	n := lengths(s.Name, s.User, s.Group, s.Account, s.QOS, s.WCKey, s.Reservation, s.Comment, s.AdminComment,
		s.MCSLabel, s.Command, s.SubmitLine, s.SubmitHost, s.SubmitDir, s.WorkDir, s.Stdin, s.Stdout, s.Stderr,
		s.Export, s.MailUser, s.Notify)
	n += sizeOf(s.Partitions) + sizeOf(s.Args) + sizeOf(s.MailType) + perElement*len(s.Groups)
	for _, d := range s.Depends.Terms {
		n += perDepend + len(d.Type)
	}
	for _, l := range s.Rlimits {
		n += perElement + len(l.Name)
	}
	if s.Array != nil {
		n += len(s.Array.Text)
	}
	if r := s.Resilience; r != nil {
		n += lengths(r.Hang, r.CheckpointFile, string(r.Restart), string(r.Straggler))
	}
	if s.Cron != nil {
		n += len(s.Cron.When)
	}
	if p := s.Prefetch; p != nil {
		n += lengths(p.Image, p.Enroot, p.Docker)
	}
	return n + s.Layout.bytes() + s.Inside.bytes()
}

func (l *Layout) bytes() int {
	if l == nil {
		return 0
	}
	n := lengths(l.Constraint, l.Distribution, l.Hint, l.CPUBind, l.GPUBind, l.MemBind, l.GRESFlags, l.GPUFreq,
		l.CPUFreq, l.Network, l.Profile, l.AcctgFreq, l.BurstBuffer, l.Features, l.Clusters, l.Prefer, l.Licenses,
		l.Power, l.Extra)
	for g := range eachOf(l.PerNode, l.PerJob, l.PerSocket, l.PerTask) {
		n += 2*perElement + len(g.Name) + len(g.Type)
	}
	return n + sizeOf(l.NodeList) + sizeOf(l.Exclude)
}

func (c *Container) bytes() int {
	if c == nil {
		return 0
	}
	n := lengths(c.Image, c.WorkDir, c.Name, c.NameMode) + sizeOf(c.Env) + sizeOf(c.Unshare)
	for _, m := range c.Mounts {
		n += 2*perElement + len(m.Source) + len(m.Target)
	}
	return n
}

// bytes is about how many bytes a patch adds to a job in lists.
func (p *Patch) bytes() int {
	l := Layout{PerNode: valueOf(p.PerNode), PerJob: valueOf(p.PerJob), NodeList: valueOf(p.NodeList),
		Exclude: valueOf(p.Exclude)}
	n := sizeOf(p.Partitions) + sizeOf(p.MailType) + l.bytes()
	if p.Depends != nil {
		n += perDepend * len(p.Depends.Terms)
	}
	return n
}

// checkBulk refuses a change after which a user's jobs would ask for too much.
func (c *UpdateJob) checkBulk(s *Snapshot) error {
	size := c.Patch.bytes()
	if size > maxSpecBytes {
		return Errorf(Invalid, ErrTooBig, "the lists of the change have %d bytes, more than %d", size, maxSpecBytes)
	}
	if size <= freeSpecBytes {
		return nil
	}
	found := s.Find(c.Ref)
	if len(found) == 0 {
		return nil
	}
	of := found[0].Spec
	return checkBulkOf(s, of.UID, of.User, size*len(found))
}

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func lengths(texts ...string) (n int) {
	for _, t := range texts {
		n += len(t)
	}
	return n
}

func sizeOf[T ~string](list []T) int {
	n := perElement * len(list)
	for _, t := range list {
		n += len(t)
	}
	return n
}
