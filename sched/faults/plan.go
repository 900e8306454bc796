package faults

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Plan is what is assumed of a cluster, a job and its faults.
type Plan struct {
	Nodes, GPUs  int           // of the job, without spares; of each node
	Reserve      int           // nodes that the cluster has beside those
	Spares       int           // of the job, where it has any: of the reserve
	Days         int           // of the faults
	Seed         int64         // of their times and places
	Checkpoint   time.Duration // of training between two checkpoints
	Stall        time.Duration // for which training stands still at each checkpoint
	Warm, Cold   time.Duration // from the launch to the first step: on nodes that run the job already, and on others
	GPUSeen      time.Duration // until the servers know of a fault of a GPU
	NodeSeen     time.Duration // until they take a node for down
	HangSeen     time.Duration // until a hang is found, where the job has a rule for it
	HangTimeout  time.Duration // until the program itself gives up, where it has none
	CrashSeen    time.Duration // until all ranks of a program that fails are over
	Teardown     time.Duration // until nodes are clean of a job that has ended
	Repair       time.Duration // until a node that has failed serves again
	PassInterval time.Duration // between passes of the scheduler
}

// Usual is the plan of Llama 3's training, with assumptions.
func Usual() Plan {
	return Plan{
		Nodes: 2048, GPUs: 8, Reserve: 64, Spares: 32, Days: 54, Seed: 1,
		Checkpoint: 5 * time.Minute, Stall: time.Second,
		Warm: time.Minute, Cold: 5 * time.Minute,
		GPUSeen: 10 * time.Second, NodeSeen: time.Minute, HangSeen: 30 * time.Second, HangTimeout: 10 * time.Minute,
		CrashSeen: 15 * time.Second, Teardown: 30 * time.Second, Repair: 24 * time.Hour, PassInterval: time.Second,
	}
}

// option is a value of a plan that can be set.
type option struct {
	name string
	at   func(*Plan) any // *int, *int64 or *time.Duration
}

var options = [...]option{
	{"nodes", func(p *Plan) any { return &p.Nodes }},
	{"gpus", func(p *Plan) any { return &p.GPUs }},
	{"reserve", func(p *Plan) any { return &p.Reserve }},
	{"spares", func(p *Plan) any { return &p.Spares }},
	{"days", func(p *Plan) any { return &p.Days }},
	{"seed", func(p *Plan) any { return &p.Seed }},
	{"checkpoint", func(p *Plan) any { return &p.Checkpoint }},
	{"stall", func(p *Plan) any { return &p.Stall }},
	{"warm", func(p *Plan) any { return &p.Warm }},
	{"cold", func(p *Plan) any { return &p.Cold }},
	{"gpu-seen", func(p *Plan) any { return &p.GPUSeen }},
	{"node-seen", func(p *Plan) any { return &p.NodeSeen }},
	{"hang-seen", func(p *Plan) any { return &p.HangSeen }},
	{"hang-timeout", func(p *Plan) any { return &p.HangTimeout }},
	{"crash-seen", func(p *Plan) any { return &p.CrashSeen }},
	{"teardown", func(p *Plan) any { return &p.Teardown }},
	{"repair", func(p *Plan) any { return &p.Repair }},
}

// Names lists what Set takes.
func Names() string {
	names := make([]string, len(options))
	for i := range options {
		names[i] = options[i].name
	}
	return strings.Join(names, ", ")
}

// Set changes a plan by NAME=VALUE,... and reports what it cannot take.
func (p *Plan) Set(list string) error {
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
		if err := p.set(name, value); err != nil {
			return fmt.Errorf("--assume: %w", err)
		}
	}
	if err := p.check(); err != nil {
		return fmt.Errorf("--assume: %w", err)
	}
	return nil
}

// set changes one value.
func (p *Plan) set(name, value string) (err error) {
	for i := range options {
		if options[i].name != name {
			continue
		}
		switch at := options[i].at(p).(type) {
		case *int:
			*at, err = strconv.Atoi(value)
		case *int64:
			*at, err = strconv.ParseInt(value, 10, 64)
		case *time.Duration:
			*at, err = time.ParseDuration(value)
		}
		if err != nil {
			return fmt.Errorf("%s=%s: want a number, or a time such as 90s, 10m or 24h", name, value)
		}
		return nil
	}
	return fmt.Errorf("%q is not known: want NAME=VALUE,... of %s", name, Names())
}

// Bounds of a plan.
const (
	maxNodes = 20_000
	maxGPUs  = 64
	maxDays  = 3660
	maxTime  = 30 * 24 * time.Hour
)

// refuse returns an error if something is wrong.
func refuse(wrong bool, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// check refuses what cannot be simulated.
func (p *Plan) check() error {
	all := p.Nodes + p.Reserve
	err := cmp.Or(
		refuse(p.Nodes < 1 || p.Reserve < 0 || all > maxNodes, "%d nodes and %d in reserve: want 1 to %d together",
			p.Nodes, p.Reserve, maxNodes),
		refuse(p.GPUs < 1 || p.GPUs > maxGPUs, "gpus=%d: want 1 to %d", p.GPUs, maxGPUs),
		refuse(p.Spares < 1 || p.Spares > p.Reserve, "spares=%d: want 1 to the %d nodes of reserve", p.Spares,
			p.Reserve),
		refuse(p.Days < 1 || p.Days > maxDays, "days=%d: want 1 to %d", p.Days, maxDays),
		refuse(p.Checkpoint < time.Second, "checkpoint=%v: want 1s at least", p.Checkpoint),
	)
	for i := range options {
		at, _ := options[i].at(p).(*time.Duration)
		took := *cmp.Or(at, new(time.Duration))
		err = cmp.Or(err, refuse(took < 0 || took > maxTime, "%s=%v: want 0s to %v", options[i].name, took, maxTime))
	}
	return err
}
