package cluster

import "strings"

// Container is what the options of Pyxis say of the container that a script or a step runs in.
type Container struct {
	// Image is [USER@][REGISTRY#]IMAGE[:TAG], or a path that begins with / or ./
	Image      string           `json:"image,omitempty" text:"4096"`
	Mounts     []ContainerMount `json:"mounts,omitempty"`
	WorkDir    string           `json:"work_dir,omitempty" text:"4096"` // empty: the image's
	Env        []string         `json:"env,omitempty" text:"65536"`     // the job's that win over the image's
	MountHome  bool             `json:"mount_home,omitempty"`
	Entrypoint bool             `json:"entrypoint,omitempty"` // the image's runs, with the command as its arguments
	Writable   bool             `json:"writable,omitempty"`
	Root       bool             `json:"root,omitempty"`      // the user is root inside
	Name       string           `json:"name,omitempty"`      // of one that the job keeps; empty: the step's alone
	NameMode   string           `json:"name_mode,omitempty"` // ContainerAuto and the like
	// Parts that the user does not want, whatever the site says.
	NoHome       bool `json:"no_home,omitempty"`
	NoEntrypoint bool `json:"no_entrypoint,omitempty"`
	ReadOnly     bool `json:"read_only,omitempty"`
	NoRoot       bool `json:"no_root,omitempty"`
	// Unshare are the namespaces that it does not share with the node: net, ipc, uts.
	Unshare []string `json:"unshare,omitempty" text:"16"`
	// Bundle says that Image is a folder of the OCI's, whose config.json tells what its root is.
	Bundle bool `json:"bundle,omitempty"`
}

// ContainerDefaults is what the site says of containers, where their user says nothing (plugstack.conf).
type ContainerDefaults struct {
	Entrypoint bool `json:"entrypoint,omitempty"` // the image's is run
	// NoBatch refuses containers of batch scripts.
	NoBatch bool `json:"no_batch,omitempty"`
	// Global keeps containers with a name for their user, on the node, not for the job.
	Global bool `json:"global,omitempty"`
}

// Permissions of a step on a container of its name.
const (
	ContainerAuto   = ""        // enter it if it runs, go on with it if it is there, else make it
	ContainerCreate = "create"  // make it: it must not be there
	ContainerExec   = "exec"    // enter it: it must run
	ContainerNoExec = "no_exec" // not enter it: it must not run
)

// ContainerName reports whether a container may be called so: it is the name of a folder, too.
func ContainerName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	whole := strings.Trim(name, letters+"-.") == ""
	return name != "" && len(name) <= 128 && whole && strings.Contains(letters, name[:1])
}

// ContainerSpace reports whether a container may have a namespace of that kind for itself.
func ContainerSpace(kind string) bool {
	return kind == "net" || kind == "ipc" || kind == "uts"
}

// ContainerMount is something of the node that is seen in a container.
type ContainerMount struct {
	Source   string `json:"source" text:"4096"` // of the node, absolute
	Target   string `json:"target" text:"4096"` // in the container, absolute
	ReadOnly bool   `json:"read_only,omitempty"`
	Private  bool   `json:"private,omitempty"` // what the node mounts below it later is not seen
	File     bool   `json:"file,omitempty"`    // x-create=file: what to make if there is no target
	Dir      bool   `json:"dir,omitempty"`     // x-create=dir
}

// WritableContainers reports whether users may write to the images of their containers, on the disks of the nodes
// (ContainerWritable of muster.conf).
func (c *Config) WritableContainers() bool {
	return !strings.EqualFold(c.Keys["containerwritable"], "no")
}

// Squashfs reports whether nodes mount squashfs files of users (ContainerSquashfs of muster.conf).
func (c *Config) Squashfs() bool { return !strings.EqualFold(c.Keys["containersquashfs"], "no") }
