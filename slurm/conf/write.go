package conf

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// File is one of the files of a configuration.
type File struct {
	Name  string // slurm.conf, or that of a file beside it
	Lines []string
}

// Text is the file's content.
func (f *File) Text() string { return strings.Join(f.Lines, "\n") + "\n" }

// Write is a configuration as files, slurm.conf first: Check reads the same from them. Files that would be empty
// are left out.
func Write(cfg *cluster.Config) (out []File) {
	for _, f := range []File{
		{
			"slurm.conf",
			slices.Concat(keyLines(cfg), nodeLines(cfg.Declared), nodeSetLines(cfg.NodeSets),
				partitionLines(cfg.Partitions)),
		},
		{"topology.conf", topologyLines(cfg)},
		{"gres.conf", gresLines(cfg.GRES)},
		{"cgroup.conf", cgroupLines(&cfg.Constrain)},
		{"job_container.conf", containerLines(cfg.PrivateDirs)},
		{"slurmdbd.conf", retentionLines(&cfg.Retention)},
		{plugstackFile, pluginLines(cfg.Containers)},
		{burstFile, burstLines(cfg.Burst)},
		{musterFile, musterLines(cfg)},
	} {
		if f.Name == "slurm.conf" || len(f.Lines) > 0 {
			out = append(out, f)
		}
	}
	return append(out, scriptFiles(cfg)...)
}

// memKeys exclude each other: the last line counts.
var memKeys = [...]struct {
	cpu, node string
	of        func(*cluster.Config) cluster.Mem
}{
	{"defmempercpu", "defmempernode", func(c *cluster.Config) cluster.Mem { return c.DefMem }},
	{"maxmempercpu", "maxmempernode", func(c *cluster.Config) cluster.Mem { return c.MaxMem }},
}

// keyLines are the keys as they were read, in alphabetical order.
func keyLines(cfg *cluster.Config) (out []string) {
	if cfg.Keys == nil {
		return []string{"# no slurm.conf is active yet: muster's own defaults"}
	}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(cfg.Keys)), OfMuster)
	for _, m := range memKeys {
		i, k := slices.Index(keys, m.cpu), slices.Index(keys, m.node)
		if i >= 0 && k >= 0 && (m.of(cfg).Per == cluster.MemPerCPU) == (i < k) {
			keys[i], keys[k] = keys[k], keys[i]
		}
	}
	for _, k := range keys {
		values := []string{cfg.Keys[k]}
		if k == controllerKey {
			values = strings.Split(cfg.Keys[k], ",")
		}
		for _, v := range values {
			out = append(out, Spell(k)+"="+quoted(v))
		}
	}
	return out
}

// unless is a number's text, none if it is what would be without.
func unless[N int | int64 | cluster.MemMB](n, without N) string {
	if n == without {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// nodeLines has a line for nodes that follow each other and are alike.
func nodeLines(nodes []cluster.Node) (out []string) {
	for len(nodes) > 0 {
		n, names := 1, []cluster.NodeName{nodes[0].Name}
		for n < len(nodes) && alike(nodes[0], nodes[n]) {
			names = append(names, nodes[n].Name)
			n++
		}
		out, nodes = append(out, word("NodeName", hosts(names))[1:]+nodeWords(&nodes[0])), nodes[n:]
	}
	return out
}

func alike(a, b cluster.Node) bool {
	a.Name, a.Inventory.Host = b.Name, b.Inventory.Host
	return reflect.DeepEqual(a, b)
}

// nodeWords are what a NodeName line says of a node.
func nodeWords(n *cluster.Node) string {
	inv := &n.Inventory
	return strings.Join([]string{word("CPUs", strconv.Itoa(inv.CPUs)),
		word("Sockets", unless(inv.Sockets, 1)), word("CoresPerSocket", strconv.Itoa(inv.CoresPerSocket)),
		word("ThreadsPerCore", unless(inv.ThreadsPerCore, 1)), word("RealMemory", unless(inv.MemMB, 1)),
		word("TmpDisk", unless(inv.TmpMB, 0)),
		word("Weight", unless(inv.Weight, 1)), word("Feature", strings.Join(inv.Features, ",")),
		word("Topology", inv.Topology), word("Gres", gresText(inv)),
		word("CpuSpecList", inv.SpecCPUs.String()), word("MemSpecLimit", unless(inv.SpecMemMB, 0)),
		word("State", stateWord(n)), word("Reason", n.Reason)}, "")
}

// gresText is Gres= of a node.
func gresText(inv *cluster.Inventory) string {
	var out []string
	if text := gpuText(inv.GPUs); text != "" {
		out = append(out, text)
	}
	for _, g := range cluster.CountedIn(inv.Shared) {
		out = append(out, g.Declaration())
	}
	return strings.Join(out, ",")
}

// gpuText has GPUs of one type that follow each other in one word.
func gpuText(gpus []cluster.GPU) string {
	var out []string
	for i := 0; i < len(gpus); {
		n := 1
		for i+n < len(gpus) && gpus[i+n].Type == gpus[i].Type {
			n++
		}
		out = append(out, strings.ReplaceAll(fmt.Sprintf("gpu:%s:%d", gpus[i].Type, n), "::", ":"))
		i += n
	}
	return strings.Join(out, ",")
}

// secondsText is a time as a number of seconds, none for nil.
func secondsText(d *time.Duration) string {
	switch {
	case d == nil:
		return ""
	case *d >= cluster.Unlimited:
		return "INFINITE"
	}
	return strconv.Itoa(int(*d / time.Second))
}

// OverTimeText is for how many minutes jobs of a partition may go on after their time limit; none: what is said where
// the cluster's setting counts.
func OverTimeText(p *cluster.Partition, none string) string {
	switch {
	case p.OverTimeLimit == nil:
		return none
	case *p.OverTimeLimit >= cluster.Unlimited:
		return "UNLIMITED"
	}
	return strconv.Itoa(int(*p.OverTimeLimit / time.Minute))
}

func yesText(b bool) string {
	if b {
		return "YES"
	}
	return ""
}

// timeText is a time as slurm.conf has it, none for 0.
func timeText(d time.Duration) string {
	switch s := int(d / time.Second); {
	case d == 0:
		return ""
	case d == cluster.Unlimited:
		return "UNLIMITED"
	default:
		return fmt.Sprintf("%d-%02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
	}
}

func partitionLines(list []cluster.Partition) (out []string) {
	for i := range list {
		p := &list[i]
		words := []string{word("PartitionName", p.Name)}
		for _, k := range PartitionKeys() {
			if k.text != nil {
				words = append(words, word(k.Name, k.text(p)))
			}
		}
		out = append(out, line(words...))
	}
	return out
}

func topologyLines(cfg *cluster.Config) (out []string) {
	for _, s := range cfg.Topology {
		out = append(out,
			line(word("SwitchName", s.Name), word("Switches", hosts(s.Switches)),
				word("Nodes", cmp.Or(s.NodesText, hosts(cluster.Named(s.Nodes, s.Joined))))))
	}
	for _, b := range cfg.Blocks {
		out = append(out,
			line(word("BlockName", b.Name),
				word("Nodes", cmp.Or(b.NodesText, hosts(cluster.Named(b.Nodes, b.Joined))))))
	}
	if len(cfg.BlockSizes) > 0 {
		out = append(out, "BlockSizes="+numbers(cfg.BlockSizes))
	}
	return out
}

func numbers(list []int) string {
	text := make([]string, len(list))
	for i, n := range list {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}

func gresLines(list []cluster.GRESLine) (out []string) {
	for i := range list {
		l := &list[i]
		files := "File"
		if l.Multiple {
			files = "MultipleFiles"
		}
		out = append(out, line(word("NodeName", hosts(l.Nodes)), word("AutoDetect", l.AutoDetect), word("Name", l.Name), word("Type", l.Type), word(files, hosts(l.Files)),
			word("Count", unless(l.Count, 0)), word("Cores", l.Cores.String()), word("Links", numbers(l.Links)), word("Flags", strings.Join(l.Flags, ","))))
	}
	return out
}

// cgroupLines are the keys of cgroup.conf that say no: all else holds without it.
func cgroupLines(c *cluster.Constrain) (out []string) {
	for _, k := range []struct {
		key string
		no  bool
	}{{"ConstrainCores", c.NoCores}, {"ConstrainDevices", c.NoDevices}, {"ConstrainRAMSpace", c.NoMemory}} {
		if k.no {
			out = append(out, k.key+"=no")
		}
	}
	return out
}

// containerLines are job_container.conf: every row says all that it has.
func containerLines(list []cluster.PrivateDirs) (out []string) {
	for i := range list {
		p := &list[i]
		out = append(out, line(word("NodeName", hosts(p.Nodes)), word("AutoBasePath",
			strconv.FormatBool(p.Make)), word("BasePath", cmp.Or(p.Base, "none")),
			word("Dirs", strings.Join(p.Dirs, ",")), word("Shared", strconv.FormatBool(p.Shared)), word("InitScript", p.Init)))
	}
	return out
}

func retentionLines(keep *cluster.Retention) (out []string) {
	for _, rule := range keep.Rules {
		for _, k := range retentionKeys {
			switch {
			case k.kind == rule.Kind && !k.archive:
				out = append(out, fmt.Sprintf("%s=%d%s", k.key, rule.Age.N, rule.Age.Unit))
			case k.kind == rule.Kind && rule.Archive:
				out = append(out, k.key+"=yes")
			}
		}
	}
	if keep.Dir != "" {
		out = append(out, "ArchiveDir="+quoted(keep.Dir))
	}
	return out
}

// Difference is what is another in one configuration than in an older one, line by line: - what goes, + what comes.
func Difference(old, now *cluster.Config) (out []string) {
	type change struct{ file, name, sign, text string }
	var list []change
	was, is := map[string]bool{}, map[string]bool{}
	each := func(cfg *cluster.Config, do func(file, line string)) {
		for _, f := range Write(cfg) {
			for _, l := range f.Lines {
				if !strings.HasPrefix(l, "#") {
					do(f.Name, l)
				}
			}
		}
	}
	each(old, func(_, l string) { was[l] = true })
	each(now, func(_, l string) { is[l] = true })
	note := func(sign string, there map[string]bool) func(file, line string) {
		return func(file, line string) {
			name, _, _ := strings.Cut(line, " ")
			if key, _, _ := strings.Cut(name, "="); file == "slurm.conf" && key != "PartitionName" && key != "NodeName" {
				name = key
			}
			if !there[line] {
				list = append(list, change{file, name, sign, line})
			}
		}
	}
	each(old, note("-", is))
	each(now, note("+", was))
	order := []string{
		"slurm.conf", "topology.conf", "gres.conf", "cgroup.conf", "job_container.conf", "slurmdbd.conf",
		plugstackFile,
	}
	slices.SortStableFunc(list, func(a, b change) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.file), slices.Index(order, b.file)),
			cmp.Compare(strings.ToLower(a.name), strings.ToLower(b.name)), cmp.Compare(b.sign, a.sign))
	})
	for _, c := range list {
		out = append(out, c.sign+" "+c.text)
	}
	return out
}
