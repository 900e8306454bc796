// Package conf reads Slurm's configuration files into a cluster.Config. It reports unknown settings
// with file and line, and goes on.
package conf

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
)

// maxIncludes bounds nested Include lines, maxLine the bytes of a line.
const (
	maxIncludes = 16
	maxLine     = 1 << 20
)

// besideFile is one that is read with the slurm.conf beside it.
type besideFile struct {
	name  string
	line  func(r *reader, file string, n int, ps []pair) // of one with lines of Key=Value
	whole func(r *reader, file string) error             // of any other
}

// besides lists the files that are read with the slurm.conf beside them. It is a function so that commands that read
// none pay nothing.
func besides() []besideFile {
	return []besideFile{
		{"topology.conf", (*reader).topologyLine, nil}, {"topology.yaml", nil, (*reader).topologyYAML},
		{"gres.conf", (*reader).gresLine, nil}, {"cgroup.conf", (*reader).cgroupLine, nil},
		{"job_container.conf", (*reader).containerLine, nil}, {"slurmdbd.conf", (*reader).dbdLine, nil},
		{"acct_gather.conf", unreadLine("energy of GPUs is always measured; muster samples JOB shows profiles"), nil},
		{"helpers.conf", unreadLine("features are set by scontrol update nodename=N activefeatures=LIST"), nil},
		{"mpi.conf", unreadLine("muster serves PMI-1, PMI-2 and PMIx itself, see docs/mpi.md"), nil},
		{"namespace.yaml", nil, unreadFile("job_container.conf sets folders of a job's own")},
		{"resources.yaml", nil, unreadFile("licenses are set by Licenses= in slurm.conf")},
		{plugstackFile, nil, plugstack}, {"oci.conf", nil, ociConf},
		{submitScript, nil, readScript}, {cliScript, nil, readScript},
		{burstFile, burstLine, nil}, {burstScript, nil, readScript},
		{musterFile, musterLine, nil},
	}
}

// Beside reports whether a file of this name is read with the slurm.conf beside it.
func Beside(name string) bool {
	for _, f := range besides() {
		if f.name == name {
			return true
		}
	}
	return false
}

// secretKeys are not kept: all users see the configuration, and muster has no use for them.
const secretKeys = " accountingstoragepass jobcomppass storagepass "

// Load reads slurm.conf and, beside it, topology.conf or topology.yaml, gres.conf, cgroup.conf, job_container.conf,
// slurmdbd.conf, plugstack.conf, burst_buffer.conf, muster.conf and the scripts in Lua if they are there. The notes
// say what was not understood or has no effect.
func Load(file string) (*cluster.Config, []string, error) {
	cfg, notes, _, err := Check(file)
	return cfg, notes, err
}

// Check is Load, which also tells of the keys that change nothing because nothing is missing without them.
func Check(file string) (config *cluster.Config, notes, fine []string, err error) {
	config, notes, fine, refused, err := Inspect(file)
	if err := cmp.Or(err, errors.Join(refused...)); err != nil {
		return nil, nil, nil, err
	}
	return config, notes, fine, nil
}

// Inspect is Check for a preview: it returns the settings that muster refuses instead of failing on them. The
// configuration is then the rest, and must not be applied.
func Inspect(file string) (config *cluster.Config, notes, fine []string, refused []error, err error) {
	cfg := cluster.DefaultConfig()
	cfg.Partitions, cfg.Keys = nil, map[string]string{}
	cfg.Priority = cluster.PriorityConfig{
		MaxAge: 7 * 24 * time.Hour, HalfLife: 7 * 24 * time.Hour, CalcPeriod: 5 * time.Minute, Dampening: 1,
	}
	cfg.Preempt.Reorders = 1
	cfg.Power = cluster.PowerConfig{Leaving: 30 * time.Second, ResumeRate: 300, SuspendRate: 60}
	r := &reader{cfg: &cfg, placed: map[cluster.NodeName]cluster.IDSet{}}
	if err := r.read(file, r.slurmLine, 0); err != nil {
		return nil, nil, nil, nil, err
	}
	dir := path.Dir(file)
	for _, f := range besides() {
		p := path.Join(dir, f.name)
		if f.name == plugstackFile {
			p = plugstackAt(r, file)
		}
		if _, err = os.Stat(p); err == nil {
			if f.whole != nil {
				err = f.whole(r, p)
			} else {
				err = r.read(p, func(file string, n int, ps []pair) { f.line(r, file, n, ps) }, 0)
			}
			if err != nil {
				return nil, nil, nil, nil, err
			}
		}
	}
	r.finish()
	settleMuster(r)
	slices.Sort(r.notes)
	return &cfg, r.notes, r.fine, r.refused, nil
}

// file reads lines: comments, continuation by a backslash, Include.
func (r *reader) read(file string, each func(string, int, []pair), depth int) error {
	if depth > maxIncludes {
		return fmt.Errorf("%s: more than %d nested Include lines", file, maxIncludes)
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	n, text := 0, ""
	for more := true; more; {
		line := ""
		if more = lines.Scan(); more {
			n++
			line = lines.Text()
		}
		if i := strings.IndexByte(line, '#'); i >= 0 {
			line = line[:i]
		}
		if rest, ok := strings.CutSuffix(strings.TrimRight(line, " \t"), `\`); ok {
			text += rest + " "
			continue
		}
		text += line
		words := strings.Fields(text)
		text = ""
		if len(words) == 0 {
			continue
		}
		if strings.EqualFold(words[0], "include") && len(words) > 1 {
			p := words[1]
			if !path.IsAbs(p) {
				p = path.Join(path.Dir(file), p)
			}
			if err := r.read(p, each, depth+1); err != nil {
				return fmt.Errorf("%s:%d: Include: %w", file, n, err)
			}
			continue
		}
		each(file, n, r.pairs(file, n, words))
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s:%d: read configuration, of lines of at most %d bytes: %w", file, n+1, maxLine, err)
	}
	return nil
}

func (r *reader) slurmLine(file string, n int, ps []pair) {
	if len(ps) == 0 {
		return
	}
	switch ps[0].key {
	case "nodename":
		r.nodeLine(file, n, ps)
	case "partitionname":
		r.partitionLine(file, n, ps)
	case "nodeset":
		r.nodeSetLine(file, n, ps)
	case "downnodes":
		r.downNodes(file, n, ps)
	case "frontendname":
		r.note(file, n, "%s lines have no effect: each node runs its own client", ps[0].typed)
	default:
		if meant := lineMeant(ps); meant != "" {
			r.note(file, n, "%s "+noKey+"slurm.conf: do you mean %s? The line is ignored", ps[0].typed, meant)
			return
		}
		for _, p := range ps {
			r.key(file, n, p)
		}
	}
}

// controllerKey names the servers, one a line: NAME or NAME(ADDRESS).
const controllerKey = "slurmctldhost"

// Controllers are the addresses of the servers that a configuration names. They listen on muster's own
// port unless the address says another one: SlurmctldPort is that of another protocol.
func Controllers(cfg *cluster.Config) (out []string) {
	for host := range strings.SplitSeq(cfg.Keys[controllerKey], ",") {
		name, addr, ok := strings.Cut(strings.TrimSpace(host), "(")
		if ok {
			name = strings.TrimSuffix(addr, ")")
		}
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

// finish settles what depends on all lines.
func (r *reader) finish() {
	if r.interactive {
		r.cfg.InteractiveStep = cmp.Or(r.interactiveOptions, "--interactive --preserve-env --pty $SHELL")
	}
	cfg := r.cfg
	r.settleDown()
	r.settleNodeSets()
	r.checkPartitions()
	r.settleTopology()
	r.settleContainers()
	settlePriority(&cfg.Priority)
	if len(cfg.Partitions) == 0 {
		cfg.Partitions = cluster.DefaultConfig().Partitions
	}
	r.settlePreempt()
	r.settleRetention()
	r.settleJobComp()
	settleScripts(r)
	settleBurst(r)
	for _, p := range cfg.Partitions {
		if p.Default {
			return
		}
	}
	if len(cfg.Partitions) == 1 {
		cfg.Partitions[0].Default = true
	}
}
