package measure

import (
	"context"
	"io/fs"
	"log/slog"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/agent/usage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// Config says what is measured, and who is told.
type Config struct {
	Span time.Duration // of a sample; 0: a minute
	// Work is what runs on which nodes now.
	Work func() ([]Part, []machine.Node)
	// Use is what parts have used so far, in their order.
	Use func([]usage.Target) []Use
	// Progress is how far a job says that it has come; nil: nothing is known.
	Progress func(cluster.NodeName, cluster.JobID) *api.Progress
	GPUs     GPUs  // of these nodes; nil: nobody looks at them
	Sysfs    fs.FS // of this machine; nil for hollow nodes
	Tell     func(context.Context, api.SamplesRequest) (api.SamplesResponse, error)
	Log      *slog.Logger
}

// GPUs tells what GPUs do now: a gpu.Watcher, or a machine.HollowLoad.
type GPUs interface {
	Sample(context.Context) ([]gpu.Load, error)
}

const (
	defaultSpan = time.Minute
	spanParts   = 4 // how often in a span is measured
	gpuTime     = 2 * time.Second
)

// Use is what a part of a step has used; RSS, Read and Written in bytes.
type Use struct {
	CPU                time.Duration
	RSS, Read, Written int64
	Traced             int // processes that a debugger has stopped
}

// Part is a part of a step that is measured, and the GPUs of its job on the node, by the cluster's number.
type Part struct {
	Target usage.Target
	GPUs   []int
}
