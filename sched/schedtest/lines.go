package schedtest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// Machine is a node as in the reference: 2 sockets of 8 cores, 8 GPUs, half of them at each socket.
func Machine(features ...string) cluster.Inventory {
	inv := cluster.Inventory{
		Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1, CPUs: 16, MemMB: 64000, Weight: 1,
		Features: features,
	}
	for i := range 8 {
		inv.GPUs = append(inv.GPUs, cluster.GPU{
			Index: i, Minor: i, Type: "h100", Cores: cluster.RangeIDSet(i/4*8, i/4*8+7),
		})
	}
	return inv
}

// Named is n1 … with as many nodes as there are inventories, under a configuration.
func Named(t testing.TB, change func(*cluster.Config), nodes ...cluster.Inventory) *Testbed {
	b := Empty(t)
	cfg := StrictOrder()
	if change != nil {
		change(&cfg)
	}
	b.Apply(&cluster.Configure{Config: &cfg})
	for i, inv := range nodes {
		b.Apply(&cluster.NodeUp{Name: Numbered(i + 1), Inventory: inv})
	}
	return b
}

// Numbered is the name n1 and so on.
func Numbered(i int) cluster.NodeName { return cluster.NodeName(fmt.Sprintf("n%d", i)) }

// Names is those of some nodes.
func Names(from, to int) (out []cluster.NodeName) {
	for i := from; i <= to; i++ {
		out = append(out, Numbered(i))
	}
	return out
}

// Ask sets a spec from words like sbatch's options, those that matter here.
func Ask(t testing.TB, line string) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) {
		for _, w := range strings.Fields(line) {
			key, val, _ := strings.Cut(w, "=")
			if len(w) > 2 && w[1] != '-' {
				key = w[:2]
				val = w[2:]
			}
			if set := setters[key]; set != nil {
				set(s, value{t, val})
			} else if !setNamed(s, key, value{t, val}) {
				t.Fatalf("the test does not know %s", w)
			}
		}
	}
}

// value is what one word says behind its option.
type value struct {
	t    testing.TB
	text string
}

func (v value) number() (n int) {
	if _, err := fmt.Sscan(v.text, &n); err != nil {
		v.t.Fatalf("%s: %v", v.text, err)
	}
	return n
}

func (v value) gpus() []cluster.GRES { return []cluster.GRES{{Name: "gpu", Count: int64(v.number())}} }

// counted reads NAME:COUNT.
func (v value) counted() cluster.GRES {
	name, count, _ := strings.Cut(v.text, ":")
	return cluster.GRES{Name: name, Count: int64(value{v.t, count}.number())}
}

func (v value) nodes() (out []cluster.NodeName) {
	for _, n := range strings.Split(v.text, ",") {
		out = append(out, cluster.NodeName(n))
	}
	return out
}

// setNamed sets the field of a spec that has the name of the option, whatever its case: --spread-segments is
// SpreadSegments.
func setNamed(s *cluster.JobSpec, option string, v value) bool {
	name := strings.ReplaceAll(option, "-", "")
	field := reflect.ValueOf(s).Elem().FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
	if !field.IsValid() {
		return false
	}
	switch to := field.Addr().Interface().(type) {
	case *bool:
		*to = true
	case *int:
		*to = v.number()
	case *string:
		*to = v.text
	default:
		return false
	}
	return true
}

// setters are by option: those whose names or values are not those of the field.
var setters = map[string]func(*cluster.JobSpec, value){
	"-N": func(s *cluster.JobSpec, v value) {
		if n, _ := fmt.Sscanf(v.text, "%d-%d", &s.MinNodes, &s.MaxNodes); n == 1 {
			s.MaxNodes = s.MinNodes
		}
	},
	"-S":                  func(s *cluster.JobSpec, v value) { s.CoreSpec = new(v.number()) },
	"--thread-spec":       func(s *cluster.JobSpec, v value) { s.ThreadSpec = new(v.number()) },
	"-n":                  func(s *cluster.JobSpec, v value) { s.Tasks = v.number() },
	"-c":                  func(s *cluster.JobSpec, v value) { s.CPUsPerTask = v.number() },
	"-w":                  func(s *cluster.JobSpec, v value) { s.NodeList = v.nodes() },
	"-x":                  func(s *cluster.JobSpec, v value) { s.Exclude = v.nodes() },
	"-p":                  func(s *cluster.JobSpec, v value) { s.Partitions = strings.Split(v.text, ",") },
	"-m":                  func(s *cluster.JobSpec, v value) { s.Distribution = v.text },
	"-C":                  func(s *cluster.JobSpec, v value) { s.Constraint = v.text },
	"--exclusive":         func(s *cluster.JobSpec, _ value) { s.Sharing = cluster.ShareExclusive },
	"--gpus":              func(s *cluster.JobSpec, v value) { s.PerJob = v.gpus() },
	"--gres":              func(s *cluster.JobSpec, v value) { s.PerNode = append(s.PerNode, v.counted()) },
	"--gpus-per-node":     func(s *cluster.JobSpec, v value) { s.PerNode = v.gpus() },
	"--gpus-per-task":     func(s *cluster.JobSpec, v value) { s.PerTask = v.gpus() },
	"--gpus-per-socket":   func(s *cluster.JobSpec, v value) { s.PerSocket = v.gpus() },
	"--ntasks-per-socket": func(s *cluster.JobSpec, v value) { s.TasksPerSocket = v.number() },
	"--ntasks-per-core":   func(s *cluster.JobSpec, v value) { s.TasksPerCore = v.number() },
	"--ntasks-per-gpu":    func(s *cluster.JobSpec, v value) { s.TasksPerGPU = v.number() },
	"--ntasks-per-node":   func(s *cluster.JobSpec, v value) { s.TasksPerNode = v.number() },
	"--spread-job":        func(s *cluster.JobSpec, _ value) { s.Spread = true },
}

// TwoLeaves is the reference's topology: two leaves of four nodes under a spine.
func TwoLeaves(cfg *cluster.Config) {
	cfg.Topology = []cluster.Switch{
		{Name: "spine", Switches: []string{"leaf1", "leaf2"}}, {Name: "leaf1", Nodes: Names(1, 4)},
		{Name: "leaf2", Nodes: Names(5, 8)},
	}
}

// Eight is eight nodes in two racks.
func Eight(t testing.TB, cfg func(*cluster.Config)) *Testbed {
	var nodes []cluster.Inventory
	for i := range 8 {
		rack := "rack1"
		if i >= 4 {
			rack = "rack2"
		}
		nodes = append(nodes, Machine("h100", rack))
	}
	return Named(t, cfg, nodes...)
}

// Got tells a job's shares as node cpus[/gpus].
func (b *Testbed) Got(id cluster.JobID) string {
	j, _ := b.S.Job(id)
	if j.Alloc == nil {
		return "waits " + string(j.Wait)
	}
	var out []string
	for _, sh := range j.Alloc.Shares {
		text := fmt.Sprintf("%s %s", sh.Node, sh.CPUs)
		if !sh.GPUs.Empty() {
			text += "/" + sh.GPUs.String()
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}
