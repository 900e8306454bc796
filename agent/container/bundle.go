package container

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"dev.muster/agent/container/enroot"
	"dev.muster/agent/userfile"
	"dev.muster/wire"
)

// An OCI runtime bundle is a folder with a root file system, and a config.json that says how it is to be run. Of
// it, muster uses the root, the mounts, the variables and the folder, as Slurm's --container does; the program is the
// job's.

// bundle is what it says.
type bundle struct {
	Root     string // its root file system
	ReadOnly bool
	Env      []string
	Dir      string
	Mounts   []enroot.Mount
	Hooks    bool // it has hooks, which are not run
}

// runtimeSpec is what is read of a config.json.
type runtimeSpec struct {
	Version string `json:"ociVersion"`
	Root    struct {
		Path     string `json:"path"`
		Readonly bool   `json:"readonly"`
	} `json:"root"`
	Process struct {
		Env []string `json:"env"`
		Cwd string   `json:"cwd"`
	} `json:"process"`
	Mounts []bundleMount  `json:"mounts"`
	Hooks  map[string]any `json:"hooks"`
}

type bundleMount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options"`
}

// readBundle reads a bundle, with the rights that the caller has now.
func readBundle(dir string) (*bundle, error) {
	file := filepath.Join(dir, "config.json")
	f, err := userfile.OpenRegular(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var text []byte
	var b *bundle
	if info, _ := f.Stat(); info == nil || info.Size() > maxInside {
		err = errors.New("it is no small file")
	} else if text, err = io.ReadAll(io.LimitReader(f, maxInside)); err == nil {
		b, err = parseBundle(dir, text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

func parseBundle(dir string, text []byte) (*bundle, error) {
	var s runtimeSpec
	if err := wire.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	if s.Root.Path == "" {
		return nil, errors.New("it names no root (root.path): it is no bundle of the OCI")
	}
	b := &bundle{Root: seenFrom(dir, s.Root.Path), ReadOnly: s.Root.Readonly, Hooks: len(s.Hooks) > 0,
		Env: s.Process.Env, Dir: s.Process.Cwd}
	if b.Dir != "" && !filepath.IsAbs(b.Dir) {
		return nil, fmt.Errorf("process.cwd is %q, which does not begin with /", b.Dir)
	}
	for i := range s.Mounts {
		m := &s.Mounts[i]
		kind := m.kind()
		if kind == ours {
			continue
		}
		at := enroot.Mount{Source: seenFrom(dir, m.Source), Target: m.Destination, Type: kind, Flags: m.Options,
			Where: fmt.Sprintf("config.json: mounts[%d]", i)}
		if kind == "" || !filepath.IsAbs(m.Destination) {
			return nil, fmt.Errorf("%s: a mount of type %q at %q: only folders and files (bind) and tmpfs are "+
				"mounted, at a path that begins with /", at.Where, m.Type, m.Destination)
		}
		b.Mounts = append(b.Mounts, at)
	}
	return b, nil
}

// ours is the kind of a mount that each container has anyway.
const ours = "ours"

// kinds are those of mounts, by what a bundle calls them.
var kinds = map[string]string{"": "none", "none": "none", "bind": "none", "tmpfs": "tmpfs", "proc": ours, "sysfs": ours,
	"devpts": ours, "mqueue": ours, "cgroup": ours, "cgroup2": ours, "devtmpfs": ours}

// memory are the folders that each container has in memory, or of the node.
var memory = []string{"/dev", "/dev/shm", "/tmp", "/var/tmp", "/run"}

func (m *bundleMount) kind() string {
	if slices.Contains(m.Options, "bind") || slices.Contains(m.Options, "rbind") {
		return "none"
	}
	kind := kinds[m.Type]
	if kind == "tmpfs" && slices.Contains(memory, filepath.Clean(m.Destination)) {
		return ours
	}
	return kind
}

// seenFrom is a path as seen from a folder.
func seenFrom(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
