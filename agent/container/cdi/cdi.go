// Package cdi reads what a node's files of the Container Device Interface say that a container must have
// for its GPUs: files of the driver, links to them, and variables. A vendor's tool writes them
// (nvidia-ctk cdi generate). Devices it leaves out: a container has the node's /dev, and the job's cgroup
// says which of it may be used. The format is that of
// https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md.
package cdi

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Dirs are where a node has its files; those of a later one replace those of an earlier one.
var Dirs = []string{"/etc/cdi", "/var/run/cdi"}

// kind is that of the devices that take more than what is in /dev: AMD's need no files of the node.
const kind = "nvidia.com/gpu"

// Edits are what a container must have.
type Edits struct {
	Env    []string
	Mounts []Mount
	Links  []Link
	// Folders have libraries: programs must look for them there.
	Folders []string
}

// Mount puts a file or folder of the node into the container.
type Mount struct {
	Host      string   `yaml:"hostPath"`
	Container string   `yaml:"containerPath"`
	Options   []string `yaml:"options"`
}

// Link is a link in the container.
type Link struct{ To, At string }

// spec is one file, as far as it is of use here.
type spec struct {
	Version string `yaml:"cdiVersion"`
	Kind    string `yaml:"kind"`
	Edits   struct {
		Env    []string `yaml:"env"`
		Mounts []Mount  `yaml:"mounts"`
		Hooks  []hook   `yaml:"hooks"`
	} `yaml:"containerEdits"`
}

// hook is a program that other runtimes run; those that only make links are done without.
type hook struct {
	Args []string `yaml:"args"`
}

// Read reads what the files in folders say for all GPUs. Nothing is what a node without such files has.
func Read(dirs []string) (Edits, error) {
	var out Edits
	s, err := find(dirs)
	out.add(s)
	slices.Sort(out.Folders)
	out.Folders = slices.Compact(out.Folders)
	return out, err
}

// find is the file that counts; an empty one if there is none.
func find(dirs []string) (*spec, error) {
	for _, dir := range slices.Backward(dirs) {
		files, _ := filepath.Glob(filepath.Join(dir, "*.[jy]*")) // .json and .yaml, sorted
		for _, file := range files {
			s, err := read(file)
			if s != nil || err != nil {
				return cmp.Or(s, &spec{}), err
			}
		}
	}
	return &spec{}, nil
}

// read reads a file, nil for one that is not of the kind. It ignores faults of other kinds.
func read(file string) (*spec, error) {
	text, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(text, []byte(kind)) {
		return nil, err
	}
	s := &spec{}
	err = yaml.Unmarshal(text, s) // JSON is YAML
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	case s.Kind != kind:
		return nil, nil
	case s.Version == "":
		return nil, fmt.Errorf("%s: cdiVersion is missing", file)
	}
	return s, nil
}

// add takes over what a file says.
func (e *Edits) add(s *spec) {
	e.Env = append(e.Env, s.Edits.Env...)
	e.Env = slices.DeleteFunc(e.Env, func(v string) bool {
		return strings.HasPrefix(v, "NVIDIA_VISIBLE_DEVICES=") // it says "void", for another runtime
	})
	for _, m := range s.Edits.Mounts {
		m.Container = cmp.Or(m.Container, m.Host)
		e.Mounts = append(e.Mounts, m)
		e.library(m)
	}
	for _, h := range s.Edits.Hooks {
		e.hook(h.Args)
	}
}

// library adds the links by which programs ask for a library, as the node has them: elsewhere ldconfig makes
// them in the container.
func (e *Edits) library(m Mount) {
	dir, base := path.Split(m.Container)
	stem, _, ok := strings.Cut(base, ".so.")
	if !ok {
		return
	}
	e.Folders = append(e.Folders, path.Clean(dir))
	list, _ := filepath.Glob(filepath.Join(filepath.Dir(m.Host), stem+".so*"))
	for _, l := range list {
		if to, _ := os.Readlink(l); to == filepath.Base(m.Host) {
			e.Links = append(e.Links, Link{base, path.Join(dir, filepath.Base(l))})
		}
	}
}

// hook does in our way what NVIDIA's hooks do: links, and folders of libraries.
func (e *Edits) hook(args []string) {
	var option string
	for _, value := range args {
		switch option {
		case "--link":
			if to, at, ok := strings.Cut(value, "::"); ok {
				e.Links = append(e.Links, Link{to, at})
			}
		case "--folder":
			e.Folders = append(e.Folders, value)
		}
		option = value
	}
}

// Flag reports whether a mount has an option.
func (m Mount) Flag(name string) bool { return slices.Contains(m.Options, name) }
