package step

import (
	"path/filepath"
	"strings"
)

// Private says which folders of the machine a job has for itself alone: a mount namespace of its own, made before
// its first process and joined by every other one.
type Private struct {
	Base   string   `json:"base"`             // what the job's folders hold lies below Base/ID.JobName()
	Make   bool     `json:"make,omitempty"`   // make Base if it is not there
	Dirs   []string `json:"dirs"`             // absolute; /dev/shm becomes a file system in memory
	Shared bool     `json:"shared,omitempty"` // what the machine mounts later appears in the job
	// Init is a program that is run as root in the new namespace, before the folders are replaced; Env its variables.
	Init string   `json:"init,omitempty"`
	Env  []string `json:"env,omitempty"`
}

// MemoryDir is the folder that is a file system in memory, in jobs as on the machine.
const MemoryDir = "/dev/shm"

// JobName names the job's attempt on its node: what its cgroup and its private folders are called.
func (id ID) JobName() string {
	job, _ := id.GroupPath()
	return job
}

// SeenAs is what a job sees in place of a folder.
func SeenAs(top, dir string) string {
	return filepath.Join(top, strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-"))
}

// Holder is the innermost of the job's own folders that a path lies in, and where that is on the machine; "" if it
// is in memory.
func (p *Private) Holder(id ID, path string) (dir, at string) {
	for _, d := range p.Dirs {
		if strings.HasPrefix(path, d+"/") && len(d) > len(dir) {
			dir = d
		}
	}
	if dir == "" || dir == MemoryDir {
		return dir, ""
	}
	return dir, SeenAs(filepath.Join(p.Base, id.JobName()), dir)
}
