package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/agent/userfile"
	"dev.muster/cluster"
	"dev.muster/durable"
	"dev.muster/wire"
)

// A named container is kept until its job is over on the node: what one step writes into it the
// next one finds. Where the site has them global they are their users', and stay.
//
//	jobs/JOB/NAME/image      what it was made of (kept)
//	jobs/JOB/NAME/up, work   what was written
//	jobs/user_UID@NODE/NAME  a global one

// kept is what a named container was made of.
type kept struct {
	Image  string `json:"image"` // as it was asked for, a path of the user's absolute
	Root   string `json:"root,omitempty"`
	Config Config `json:"config,omitzero"`
}

// JobDir is what a job's named containers have on the disk, to be removed when it is over.
func JobDir(store, job string) string { return filepath.Join(store, "jobs", job) }

// Written is what there is of containers of steps and jobs: what they have written, and which images they use.
func Written(store string) (dirs []string) {
	for _, of := range []string{"jobs", "steps", usesName} {
		list, _ := filepath.Glob(filepath.Join(store, of, "job_*"))
		dirs = append(dirs, list...)
	}
	return dirs
}

// JobOf is the name of the job that such a folder is of.
func JobOf(dir string) string {
	job, _, _ := strings.Cut(filepath.Base(dir), ".step_")
	return job
}

// usersOwn begins the folders of global containers.
const usersOwn = "user_"

// KeptFor is the folder, in jobs, of a named container: of a job, or of the user where names are global.
func (s *Spec) KeptFor(job string, uid uint32, node cluster.NodeName) string {
	if s.Global {
		return fmt.Sprintf("%s%d@%s", usersOwn, uid, node)
	}
	return job
}

// Own is a global container.
type Own struct {
	UID   uint32
	Node  cluster.NodeName // of this machine
	Name  string
	Image string // as it was asked for
	Since time.Time
	dir   string
}

// Owns lists the global containers of this machine.
func Owns(store string) (list []Own, err error) {
	files, err := filepath.Glob(filepath.Join(store, "jobs", usersOwn+"*", "*", keptFile))
	for _, f := range files {
		k, rerr := readKept(f)
		st, serr := os.Stat(f)
		if rerr != nil || serr != nil {
			err = errors.Join(err, rerr, serr)
			continue
		}
		o := Own{Name: path.Base(path.Dir(f)), Image: k.Image, Since: st.ModTime(), dir: path.Dir(f)}
		uid, node, _ := strings.Cut(strings.TrimPrefix(path.Base(path.Dir(o.dir)), usersOwn), "@")
		n, perr := strconv.ParseUint(uid, 10, 32)
		o.UID, o.Node = uint32(n), cluster.NodeName(node)
		if err = errors.Join(err, perr); perr == nil {
			list = append(list, o)
		}
	}
	return list, err
}

// Drop takes a global container away, with all that was written into it.
func (o *Own) Drop() error {
	if err := os.Remove(filepath.Join(o.dir, keptFile)); err != nil { // nobody finds it from now on
		return err
	}
	return userfile.Remove(o.dir)
}

// keptFile says what a named container was made of.
const keptFile = "image"

func (s *Spec) keptAt(job string) string { return filepath.Join(JobDir(s.Store, job), s.Name) }

// Recall finds a named container that an earlier step has made, and has the Spec go by it.
func (s *Spec) Recall(job string) (image Image, found bool, err error) {
	name := "pyxis_" + s.Name // as Pyxis calls it
	text, err := os.ReadFile(filepath.Join(s.keptAt(job), keptFile))
	switch {
	case errors.Is(err, fs.ErrNotExist) && (s.Image == "" || s.NameMode == cluster.ContainerExec):
		const text = "a container with name %q does not exist, and --container-image is not set"
		return Image{}, false, fmt.Errorf(text, name)
	case errors.Is(err, fs.ErrNotExist):
		return Image{}, false, nil
	case err != nil:
		return Image{}, false, err
	case s.NameMode == cluster.ContainerCreate:
		return Image{}, true, fmt.Errorf("error creating container: a container with name %q already exists", name)
	}
	k, err := parseKept(text)
	if err != nil {
		return Image{}, true, fmt.Errorf("read the container %q: %w", s.Name, err)
	}
	s.Image = k.Image
	return Image{Root: k.Root, Config: k.Config}, true, nil
}

func parseKept(text []byte) (k kept, err error) {
	err = wire.Unmarshal(text, &k)
	return k, err
}

// readKept reads what a named container was made of.
func readKept(file string) (kept, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return kept{}, err
	}
	return parseKept(text)
}

// Keep writes down what a named container is made of, before its first step.
func (s *Spec) Keep(job, dir string, image Image) error {
	if IsPath(s.Image) {
		s.Image = s.path(dir)
	}
	at := s.keptAt(job)
	text, err := wire.Marshal(&kept{Image: s.Image, Root: image.Root, Config: image.Config})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	return durable.Swap(filepath.Join(at, keptFile), text, 0o600)
}

// Check refuses what no front-end of ours asks for, and says why a step cannot enter a container
// that runs.
func (s *Spec) Check() error {
	for _, m := range s.Mounts {
		if !path.IsAbs(m.Source) || !path.IsAbs(m.Target) {
			return fmt.Errorf("--container-mounts: %s:%s: both begin with /", m.Source, m.Target)
		}
	}
	if s.Name != "" && !cluster.ContainerName(s.Name) {
		return fmt.Errorf("--container-name=%q: a name has letters, digits and _ - . in it", s.Name)
	}
	return nil
}

// Fits says why a step cannot enter a container that another one runs in.
func (s *Spec) Fits(other *Spec) error {
	switch {
	case s.NameMode == cluster.ContainerNoExec:
		return fmt.Errorf("container %q is running, and no_exec forbids to enter it", s.Name)
	case len(s.Mounts) > 0 && !slices.Equal(s.Mounts, other.Mounts) || s.MountHome && !other.MountHome:
		return fmt.Errorf("container %q is running with other mounts: they cannot be changed", s.Name)
	case len(s.Sent) > 0:
		return fmt.Errorf("container %q is running: no program can be sent into it (--bcast)", s.Name)
	case s.Root != other.Root:
		return fmt.Errorf("container %q is running, and its user is root there or not: that cannot be changed", s.Name)
	case len(s.Unshare) > 0:
		return fmt.Errorf("container %q is running: its namespaces cannot be changed", s.Name)
	case s.Writable && !other.Writable:
		return fmt.Errorf("container %q is running, and cannot be written to", s.Name)
	}
	return nil
}

// usesName is the folder of the steps' images.
const usesName = "uses"
