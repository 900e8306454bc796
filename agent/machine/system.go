package machine

import (
	"fmt"
	"os"
	"time"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// Limits of what is well on a machine. Less memory, CPUs or GPUs than before is for the servers to find.
const (
	diskNote   = 0.05 // of a file system that is free
	diskDrain  = 0.01
	diskSlack  = 0.01        // that must be free above a limit for its fault to end
	clockNote  = time.Second // by which the clock may be off
	clockEvery = time.Minute // between comparisons with a server's
)

// disk is a file system that jobs or the client write to.
type disk struct {
	path     string
	free     float64 // of what users may write
	readOnly bool
}

// fileSystem looks at the one that a path is on; not ok if that cannot be told.
func fileSystem(path string) (d disk, id unix.Fsid, ok bool) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil || st.Blocks == 0 {
		return d, id, false
	}
	d = disk{path: path, free: 1, readOnly: st.Flags&unix.ST_RDONLY != 0}
	if all := st.Blocks - st.Bfree + st.Bavail; all > 0 {
		d.free = float64(st.Bavail) / float64(all)
	}
	return d, st.Fsid, true
}

// system judges the machine's own parts.
type system struct {
	paths    []string             // on the file systems that are looked at
	writable map[string]bool      // once seen so
	had      map[faultKey]float64 // limits that were passed
}

type faultKey struct{ part, cause string }

// newSystem looks at the root, at where jobs put temporary files and at the client's own folder.
func newSystem(own string) *system {
	return &system{paths: []string{"/", os.TempDir(), own}, writable: map[string]bool{}, had: map[faultKey]float64{}}
}

// disks are the file systems, each once.
func (s *system) disks() (out []disk) {
	seen := map[unix.Fsid]bool{}
	for _, p := range s.paths {
		if d, id, ok := fileSystem(p); ok && !seen[id] {
			seen[id] = true
			out = append(out, d)
		}
	}
	return out
}

// judge says what is wrong with the file systems and the clock, which is so much ahead of a server's. A file system
// that was read-only from the beginning is meant to be.
func (s *system) judge(disks []disk, ahead time.Duration) (out []cluster.Fault) {
	add := func(part, cause, text string, action cluster.FaultAction) {
		out = append(out, cluster.Fault{
			Kind: cluster.FaultSystem, Part: part, Cause: cause, Text: text, Action: action, Passing: true,
		})
	}
	for _, d := range disks {
		s.writable[d.path] = s.writable[d.path] || !d.readOnly
		switch {
		case d.readOnly && s.writable[d.path]:
			add(d.path, "read-only", d.path+": the file system has become read-only", cluster.FaultDrain)
		case d.readOnly:
		case s.passes(faultKey{d.path, "no space"}, d.free, diskDrain):
			add(d.path, "no space", fmt.Sprintf("%s: less than %g %% free", d.path, 100*diskDrain), cluster.FaultDrain)
		case s.passes(faultKey{d.path, "little space"}, d.free, diskNote):
			add(d.path, "little space", fmt.Sprintf("%s: less than %g %% free", d.path, 100*diskNote),
				cluster.FaultNote)
		}
	}
	if max(ahead, -ahead) > clockNote {
		add("clock", "off", fmt.Sprintf("clock off by more than %v against the servers", clockNote), cluster.FaultNote)
	}
	return out
}

// passes reports whether too little is free; once it was, more must be for that to end.
func (s *system) passes(key faultKey, free, limit float64) bool {
	if s.had[key] != 0 {
		limit += diskSlack
	}
	if free < limit {
		s.had[key] = limit
		return true
	}
	delete(s.had, key)
	return false
}
