package cluster

// Container is what the options of Pyxis say of the container that a script or a step runs in.
type Container struct {
	Image      string           `json:"image,omitempty" text:"4096"` // [USER@][REGISTRY#]IMAGE[:TAG], or a path that begins with / or ./
	Mounts     []ContainerMount `json:"mounts,omitempty"`
	WorkDir    string           `json:"work_dir,omitempty" text:"4096"` // empty: the image's
	Env        []string         `json:"env,omitempty" text:"65536"`     // variables of the job that win over the image's
	MountHome  bool             `json:"mount_home,omitempty"`
	Entrypoint bool             `json:"entrypoint,omitempty"` // the image's runs, with the command as its arguments
	Writable   bool             `json:"writable,omitempty"`
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
