// Package container runs steps in container images without any other tool on the node. It has two
// halves. Package images fetches them from registries and
// keeps them unpacked, in a process of its own. The root (root.go, mounts.go,
// inside.go) is made by the thread that launches a step: a mount namespace in which the image is
// what "/" means. cluster.Container has the options; docs/containers.md describes them for users.
package container

import (
	"errors"

	"dev.muster/agent/container/enroot"
	"dev.muster/cluster"
)

// Spec is a container that a node shall make for its part of a step.
type Spec struct {
	cluster.Container
	Store string `json:"store"`           // the folder of the Store
	Limit int64  `json:"limit,omitempty"` // bytes of all images; 0: half of the file system
	Most  int64  `json:"most,omitempty"`  // bytes that one image may unpack to; 0: 64 GiB
	Self  string `json:"self"`            // muster's program, which is put into the container
	Names string `json:"names,omitempty"` // the names it answers to, separated by blanks
	Sock  string `json:"sock,omitempty"`  // the daemon's socket
	User  string `json:"user"`
	Group string `json:"group,omitempty"`
	Home  string `json:"home,omitempty"`
	Shell string `json:"shell,omitempty"`
	// Save is the file that the container is saved to when the step is over; "": none.
	Save string `json:"save,omitempty"`
	// Scripts are files of the node that the user may read, to be seen in place.
	Scripts []string `json:"scripts,omitempty"`
	// Sent are files of the user's that were put on the node for the step's tasks, to be seen in place.
	Sent []string `json:"sent,omitempty"`
	// First says that the node is the step's first, which tells how far its image is; Terminal that it is told
	// on a terminal.
	First    bool `json:"first,omitempty"`
	Terminal bool `json:"terminal,omitempty"`
	// Global says that a container with a name is its user's on the node, not the job's.
	Global bool `json:"global,omitempty"`
	// NoSquashfs refuses squashfs files of users.
	NoSquashfs bool `json:"no_squashfs,omitempty"`
	// NoWritable refuses containers that may be written to.
	NoWritable bool `json:"no_writable,omitempty"`
	// Site is what the node's files of enroot say.
	Site *enroot.Site `json:"site,omitempty"`
}

// Defaults has the site's say where the user has said nothing.
func (s *Spec) Defaults(site *enroot.Site, cfg cluster.ContainerDefaults) {
	s.Site, s.Global = site, cfg.Global
	for _, d := range []struct {
		to          *bool
		no, usually bool
	}{
		{&s.MountHome, s.NoHome, site.MountHome},
		{&s.Writable, s.ReadOnly, site.Writable},
		{&s.Root, s.NoRoot, site.Root},
		{&s.Entrypoint, s.NoEntrypoint, cfg.Entrypoint},
	} {
		*d.to = *d.to || d.usually && !d.no
	}
}

// Helper is how the process is started that fetches images.
func (s *Spec) Helper() []string { return []string{s.Self, "internal", "image"} }

// Prefetch is the helper's word for an image that is wanted later: DIRECTORY and a Request stand behind it. It
// reports faults on its error output.
const Prefetch = "prefetch"

// Config is what an image says of the programs in it.
type Config struct {
	Env        []string `json:"env,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	WorkDir    string   `json:"work_dir,omitempty"`

	libs []string // folders of the driver's libraries, once the container is made
	// hooked are the variables that hooks have set, and dropped those that they took away.
	hooked, dropped []string
}

// Request asks the helper for an image.
type Request struct {
	Store  string   `json:"store"`
	Limit  int64    `json:"limit,omitempty"`
	Most   int64    `json:"most,omitempty"`
	Image  string   `json:"image"`
	File   *File    `json:"file,omitempty"` // the image in files; nil: it is of a registry
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
	Home   string   `json:"home,omitempty"`   // where the user's credentials are looked for
	Enroot string   `json:"enroot,omitempty"` // ENROOT_CONFIG_PATH
	Docker string   `json:"docker,omitempty"` // DOCKER_CONFIG
	HTTP   bool     `json:"http,omitempty"`   // registries may be asked without TLS
	Meter  int      `json:"meter,omitempty"`  // the descriptor that is told how far it is; 0: none
	Daemon string   `json:"daemon,omitempty"` // the socket of the node's daemon, which asks other nodes
}

// Reply is what the helper has to say.
type Reply struct {
	Root   string `json:"root,omitempty"` // the unpacked image
	Config Config `json:"config,omitzero"`
	Error  string `json:"error,omitempty"`
}

// Image is where the files of a container come from.
type Image struct {
	Root   string // an unpacked image of the store; else "", and the step's image is a path of the user's
	Config Config
	Told   bool // Config has all: nothing of it is in the image's own files
}

var (
	errOld  = errors.New("containers take Linux 5.12")
	errLoop = errors.New("it goes through too many links, or through links of /proc")
)

// errAsRoot is why an ordinary user's daemon runs no containers.
var errAsRoot = errors.New("the node's daemon does not run as root: only root may mount an image")

// A File is an image in files of a user's.
type File struct {
	Path, Tag string
	// Packed says that it is a layout or an archive, which is unpacked into the store; else it is mounted as it is.
	Packed bool
}
