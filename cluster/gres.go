package cluster

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// GRESLine is one line of gres.conf. Its GPUs are compared with those that the node finds; they are
// never added to them.
type GRESLine struct {
	At         string     `json:"at"`              // gres.conf:3
	Nodes      []NodeName `json:"nodes,omitempty"` // none: all
	AutoDetect string     `json:"auto_detect,omitempty"`
	Name       string     `json:"name,omitempty"` // gpu, mps, shard …; empty: the line has only AutoDetect
	Type       string     `json:"type,omitempty"`
	Files      []string   `json:"files,omitempty"`
	Multiple   bool       `json:"multiple,omitempty"` // the files together are one device (MultipleFiles)
	Count      int        `json:"count,omitempty"`    // 0: that of the files
	Cores      IDSet      `json:"cores,omitzero"`     // cores, not CPUs
	Links      []int      `json:"links,omitempty"`
	Flags      []string   `json:"flags,omitempty"`
	any        bool       // GPUs of other types count, too
}

// autoOff is the AutoDetect that wants only what lines name.
const autoOff = "off"

// declared is what gres.conf and slurm.conf say of one node.
type declared struct {
	auto  string
	lines []GRESLine // of GPUs
	types []string   // of its Gres=
	// limits is what its NodeName line declares; 0: not declared. Jobs get nothing that the node finds beyond it.
	limits Hardware
	// shared are what other jobs may have of the same GPUs (shards, MPS shares), and what is counted.
	shared []GRES
}

// declaredOf collects what a configuration says of a node's GPUs. AutoDetect of the node's own goes before that of all.
func (c *Config) declaredOf(name NodeName) declared {
	i := slices.IndexFunc(c.Declared, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return c.declaredWith(name, nil)
	}
	return c.declaredWith(name, &c.Declared[i].Inventory)
}

// declaredWith is declaredOf with what the node's own line says; nil if it has none.
func (c *Config) declaredWith(name NodeName, line *Inventory) declared {
	var d declared
	own := false
	for _, l := range c.GRES {
		if len(l.Nodes) > 0 && !slices.Contains(l.Nodes, name) {
			continue
		}
		if l.AutoDetect != "" && (len(l.Nodes) > 0 || !own) {
			d.auto = strings.ToLower(l.AutoDetect)
			own = len(l.Nodes) > 0
		}
		if strings.EqualFold(l.Name, "gpu") {
			d.lines = append(d.lines, l)
		}
		if l.Name != "" && !strings.EqualFold(l.Name, "gpu") {
			d.share(l.shared())
		}
	}
	if line != nil {
		d.types = typesOf(line.GPUs)
		d.override(line.Shared)
	}
	return d
}

// shared is what a line has of a resource that is no GPU.
func (l *GRESLine) shared() GRES {
	g := GRES{Name: l.Name, Count: int64(max(l.Count, len(l.Files), 1))}
	if name := strings.ToLower(l.Name); slices.Contains(PartNames, name) {
		g.Name = name
		return g
	}
	g.Type = l.Type
	g.Unconsumed = slices.Contains(l.Flags, "no_consume")
	return g
}

// override has the counts of the node's own line (Gres=) go before those of gres.conf.
func (d *declared) override(own []GRES) {
	for _, g := range own {
		d.shared = slices.DeleteFunc(d.shared, func(o GRES) bool { return compareKinds(o, g) == 0 })
		d.shared = append(d.shared, g)
	}
}

// limitBy takes a node's own line for a limit on what it finds. A line that leaves out CPUs= or RealMemory= has 1 of
// it, as in Slurm, where such a line is of no use; here it says nothing.
func (d *declared) limitBy(said *Inventory) {
	if said.CPUs > 1 {
		d.limits.CPUs = said.CPUs
	}
	if said.MemMB > 1 {
		d.limits.MemMB = said.MemMB
	}
	if len(d.lines) > 0 || d.auto == autoOff {
		return // gres.conf says more
	}
	for _, g := range said.GPUs {
		i := slices.IndexFunc(d.lines, func(l GRESLine) bool { return l.Type == g.Type })
		if i < 0 {
			d.lines = append(d.lines, GRESLine{At: "Gres=" + gpuWords(said.GPUs), Name: "gpu", Type: g.Type, any: true})
			i = len(d.lines) - 1
		}
		d.lines[i].Count++
	}
}

// gpuWords writes GPUs as Gres= has them.
func gpuWords(gpus []GPU) string {
	var words []string
	for _, kind := range typesOf(gpus) {
		n := len(slices.DeleteFunc(slices.Clone(gpus), func(g GPU) bool { return g.Type != kind }))
		words = append(words, fmt.Sprintf("gpu:%s:%d", kind, n))
	}
	untyped := len(slices.DeleteFunc(slices.Clone(gpus), func(g GPU) bool { return g.Type != "" }))
	if untyped > 0 {
		words = append(words, fmt.Sprintf("gpu:%d", untyped))
	}
	return strings.Join(words, ",")
}

// limit leaves of what a node has found what its line says. A line with a CPU for each core of several threads means
// the whole machine.
func (h *Hardware) limit(inv *Inventory) {
	eachCore := h.CPUs*max(inv.ThreadsPerCore, 1) == inv.CPUs
	if eachCore {
		h.CPUs = 0
	}
	if h.CPUs > 0 {
		inv.CPUs = min(inv.CPUs, h.CPUs)
	}
	if h.MemMB > 0 {
		inv.MemMB = min(inv.MemMB, h.MemMB)
	}
}

// typesOf are the types of GPUs that have one, each once.
func typesOf(gpus []GPU) (types []string) {
	for _, g := range gpus {
		if g.Type != "" && !slices.Contains(types, g.Type) {
			types = append(types, g.Type)
		}
	}
	return types
}

// share adds up shares of the same name.
func (d *declared) share(g GRES) {
	i := slices.IndexFunc(d.shared, func(o GRES) bool { return compareKinds(o, g) == 0 })
	if i < 0 {
		d.shared = append(d.shared, g)
		return
	}
	d.shared[i].Count += g.Count
}

// fits reports whether a type that a configuration names can be this GPU's: it is its type, or part of the product's
// name with underscores for blanks, as gres.conf(5) has it (nvidia_h100_80gb_hbm3, a100-sxm4-40gb, tesla). A slice
// is named with its profile.
func (g *GPU) fits(kind string) bool {
	kind = strings.ToLower(kind)
	long := strings.ReplaceAll(strings.ToLower(g.Model), " ", "_")
	if g.MIG != nil {
		name, ok := strings.CutSuffix(kind, g.MIG.Profile)
		name = strings.TrimRight(name, "_")
		return kind == strings.ToLower(g.Type) || ok && name != "" && strings.Contains(long, name)
	}
	return kind == strings.ToLower(g.Type) || kind != "" && strings.Contains(long, kind)
}

// at reports whether a device file is the GPU's, or that of the GPU that it is a slice of.
func (g *GPU) at(file string) bool {
	for _, prefix := range []string{"nvidia", "renderD"} {
		if n, ok := strings.CutPrefix(path.Base(file), prefix); ok && strconv.Itoa(g.Minor) == n {
			return true
		}
	}
	return false
}

// match is a comparison under way.
type match struct {
	gpus  []GPU
	named []bool // by some line
	cores int    // CPUs of a core
	notes []string
}

// compare brings together the GPUs that a node found and what is declared of it: the type names and the cores are
// those declared if they fit, devices that no line names are not for jobs, and what is declared and was not found is
// told with its line. Without a line, all that was found counts.
func (d *declared) compare(inv *Inventory) (used []GPU, notes []string) {
	m := match{gpus: slices.Clone(inv.GPUs), named: make([]bool, len(inv.GPUs)), cores: max(inv.ThreadsPerCore, 1)}
	if len(d.lines) == 0 {
		if d.auto == autoOff && len(m.gpus) > 0 {
			return nil, []string{
				fmt.Sprintf("gres.conf: AutoDetect=off and no gpu line: %d GPUs are not used", len(m.gpus)),
			}
		}
		for i := range m.gpus {
			m.rename(i, d.types)
		}
		return m.gpus, nil
	}
	for _, l := range d.lines {
		switch {
		case l.Multiple:
			m.some(&l, 1, func(g *GPU) bool { return slices.ContainsFunc(l.Files, g.at) },
				" at "+strings.Join(l.Files, ","))
		case len(l.Files) > 0:
			m.files(&l)
		default:
			m.some(&l, max(l.Count, 1), func(*GPU) bool { return true }, "")
		}
	}
	for i := range m.gpus {
		if m.named[i] {
			used = append(used, m.gpus[i])
		}
	}
	return used, m.notes
}

// rename gives a GPU the first of the types that fits it.
func (m *match) rename(i int, types []string) {
	if g := &m.gpus[i]; !slices.Contains(types, g.Type) {
		if k := slices.IndexFunc(types, g.fits); k >= 0 {
			g.Type = types[k]
		}
	}
}

// name notes that a line names a GPU and gives it what the line says.
func (m *match) name(i int, l *GRESLine) {
	g := &m.gpus[i]
	m.named[i] = true
	if l.Type != "" {
		m.rename(i, []string{l.Type})
	}
	g.Env = slices.DeleteFunc(slices.Clone(l.Flags), func(f string) bool { return !strings.HasSuffix(f, "_env") })
	cpus := CPUsOf(l.Cores, m.cores)
	switch {
	case cpus.Empty():
	case g.Cores.Empty() || cpus.Minus(g.Cores).Empty():
		g.Cores = cpus
	default:
		m.note(l, "Cores=%s are CPUs %s, found %s near GPU %d", l.Cores.String(), cpus.String(),
			g.Cores.String(), g.Minor)
	}
	switch {
	case len(l.Links) == 0:
	case len(g.Links) == 0:
		g.Links = l.Links
	case !slices.Equal(l.Links, g.Links):
		m.note(l, "Links of GPU %d are not what was found: %v", g.Minor, g.Links)
	}
}

func (m *match) note(l *GRESLine, format string, args ...any) {
	m.notes = append(m.notes, l.At+": "+fmt.Sprintf(format, args...))
}

// files names the GPUs of a line's device files. One of another type is named too, by what was found.
func (m *match) files(l *GRESLine) {
	var missing []string
	other := map[string][]string{}
	for _, file := range l.Files {
		fitting := false
		found := ""
		for i := range m.gpus {
			g := &m.gpus[i]
			if !g.at(file) {
				continue
			}
			if l.Type == "" || g.fits(l.Type) {
				if fitting = true; !m.named[i] {
					m.name(i, l)
				}
			} else {
				found = g.Type
				if g.MIG == nil {
					m.named[i] = true
				}
			}
		}
		switch {
		case fitting:
		case found != "":
			other[found] = append(other[found], file)
		default:
			missing = append(missing, file)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(other)) {
		m.note(l, "Type=%s, found %s at %s", l.Type, kind, strings.Join(other[kind], ","))
	}
	if len(missing) > 0 {
		m.note(l, "nothing found at %s", strings.Join(missing, ","))
	}
}

// some names so many GPUs that a line may mean.
func (m *match) some(l *GRESLine, want int, may func(*GPU) bool, where string) {
	n := 0
	for i := range m.gpus {
		if g := &m.gpus[i]; n < want && !m.named[i] && may(g) && (l.Type == "" || g.fits(l.Type)) {
			m.name(i, l)
			n++
		}
	}
	var others []string
	for i := range m.gpus {
		if g := &m.gpus[i]; l.any && n < want && !m.named[i] {
			m.named[i] = true
			n++
			others = append(others, g.Type)
		}
	}
	if len(others) > 0 {
		m.note(l, "found %d of type %s", len(others), strings.Join(slices.Compact(others), ","))
	}
	if n < want {
		m.note(l, "%d of %d found%s", n, want, kindText(l.Type)+where)
	}
}

func kindText(kind string) string {
	if kind == "" {
		return ""
	}
	return " of Type=" + kind
}

// CPUsOf are the CPUs of cores that have so many threads.
func CPUsOf(cores IDSet, threads int) (cpus IDSet) {
	for c := range cores.All() {
		cpus = cpus.Union(RangeIDSet(c*threads, c*threads+threads-1))
	}
	return cpus
}
