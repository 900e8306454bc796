package agent

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"dev.muster/agent/client"
	"dev.muster/agent/history"
	"dev.muster/agent/machine"
	"dev.muster/agent/server"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Hooks is how the dialect has servers run hooks.
type Hooks = server.Hooks

// LogLevel is what this process logs; scontrol setdebug changes it.
var LogLevel = server.LogLevel

// Config says what this process is.
type Config struct {
	Server, Client bool
	Dir            string // data folder
	Socket         string // local socket
	Version        string
	Load           func() (*cluster.Config, []string, error) // reads the configuration to activate; nil: keep
	Hollow         HollowConfig
	// SampleSpan is for how long each sample of what hardware does stands; 0: a minute.
	SampleSpan time.Duration
	Images     ImageLimits
	NodeName   cluster.NodeName // empty: the host name
	// Say adds what this machine, or its hollow nodes, was told of itself to what it found; nil: nothing.
	Say func(cluster.Inventory) cluster.Inventory
	// Bind is where this process listens for other members, ADDRESS:PORT; empty for a cluster of one
	// process. Advertise is the address they use, if it is another.
	Bind, Advertise string
	Join            []string // servers to join by, with Token
	Token           string
	Login           bool // join as a login host, which runs no jobs
	DeadAfter       time.Duration
	// Mute members take no part in the gossip: a thousand of them in one process would do nothing else.
	Mute bool
	// SnapshotEvery is after how many entries the log is compacted; 0 means some thousands.
	SnapshotEvery uint64
	// Plain answers callers of the port who do not speak TLS; nil: nobody does.
	Plain http.Handler
	// Fatal is told why this process cannot go on, in the midst of its work, and ends it; nil: it panics.
	Fatal func(error)
	// Founded is called once if this process has made a new cluster, with its address.
	Founded  func(addr string)
	Dialect  api.Dialect
	Hooks    Hooks
	PIDEnv   string
	MountEnv string         // see client.Config
	Program  client.Program // this program, as tasks meet it
	Web      WebConfig
	// Supervisor is the command that becomes the supervisor.
	Supervisor []string
	GPU        GPUConfig
	Sysfs      string // where the kernel shows its devices: /sys
	Log        *slog.Logger
	// Started is called once the socket answers.
	Started func()
}

// HollowConfig says which nodes are simulated, and how.
type HollowConfig struct {
	Nodes []machine.Node // none: this machine is the node
	Exec  bool           // steps really run on this machine
	Time  time.Duration  // that a step lasts without
	// Past makes a past for the history of a new cluster, for demonstrations.
	Past history.Past
}

// GPUConfig says how a client looks at its GPUs.
type GPUConfig struct {
	Helper  []string      // the command that becomes the GPU helper (gpu.HelperMain)
	Every   time.Duration // how often it is asked
	Metrics string        // where their load is shown (client.GPUMetrics); "": nowhere
	Jobs    string        // the folder for their jobs; "": none
	Hollow  bool          // those of hollow nodes do something
}

// name is what this machine is called in the cluster.
func (cfg *Config) name() (string, error) {
	if cfg.NodeName != "" {
		return string(cfg.NodeName), nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read host name: %w", err)
	}
	return name, nil
}

// ImageLimits bound the images of containers on a node, in bytes.
type ImageLimits struct {
	Disk int64 // of all; 0: half of their file system
	Size int64 // of one, unpacked; 0: 64 GiB
}
