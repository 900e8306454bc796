package metrics

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// sample is one value.
type sample struct {
	suffix string   // of the name
	labels []string // name, value, name, value …
	value  float64
}

// family is values of one name.
type family struct {
	name, help string
	kind       string // a counter only rises
	samples    []sample
}

// series collects families in the order in which they come.
type series struct {
	list []*family
	at   map[string]*family
}

func (m *series) put(name, help string, value float64, labels ...string) {
	f := m.family(name, help)
	f.samples = append(f.samples, sample{"", labels, value})
}

// count adds a value that only rises while this server runs; its name ends in _total.
func (m *series) count(name, help string, value float64, labels ...string) {
	f := m.family(name, help)
	f.kind = "counter"
	f.samples = append(f.samples, sample{"", labels, value})
}

// buckets adds what a histogram has counted; its name ends in _seconds.
func (m *series) buckets(name, help string, h *Histogram, labels ...string) {
	f := m.family(name, help)
	f.kind = "histogram"
	upTo, sum := h.Read()
	for i, n := range upTo {
		le := "+Inf"
		if i < len(Bounds) {
			le = strconv.FormatFloat(Bounds[i], 'g', -1, 64)
		}
		f.samples = append(f.samples, sample{"_bucket", append(slices.Clip(labels), "le", le), float64(n)})
	}
	f.samples = append(f.samples, sample{"_sum", labels, sum}, sample{"_count", labels, float64(upTo[len(upTo)-1])})
}

func (m *series) family(name, help string) *family {
	if m.at == nil {
		m.at = map[string]*family{}
	}
	f := m.at[name]
	if f == nil {
		f = &family{name: name, help: help, kind: "gauge"}
		m.at[name], m.list = f, append(m.list, f)
	}
	return f
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// text writes them out.
func (m *series) text() string {
	var b strings.Builder
	for _, f := range m.list {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for _, s := range f.samples {
			b.WriteString(f.name + s.suffix)
			for i := 0; i < len(s.labels); i += 2 {
				b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
				b.WriteString(s.labels[i] + `="` + escape.Replace(s.labels[i+1]) + `"`)
			}
			if len(s.labels) > 0 {
				b.WriteByte('}')
			}
			b.WriteString(" " + strconv.FormatFloat(s.value, 'g', -1, 64) + "\n")
		}
	}
	return b.String()
}

// truth is 1 or 0.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
