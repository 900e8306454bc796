package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestLongStepLists: a step that names or excludes very many nodes keeps its node's daemon busy for no time.
func TestLongStepLists(t *testing.T) {
	const nodes, names = 2000, 200_000
	j := &Job{Spec: &JobSpec{Layout: &Layout{}}, Alloc: &Alloc{}}
	var strangers, own []NodeName
	for i := range nodes {
		name := NodeName(fmt.Sprint("n", i))
		j.Alloc.Shares = append(j.Alloc.Shares, Share{Node: name, CPUs: NewIDSet(0), Tasks: 1})
		own = append(own, name)
	}
	for i := range names {
		strangers = append(strangers, NodeName(fmt.Sprint("stranger", i)))
	}
	for _, c := range []struct {
		name   string
		layout Layout
		want   bool
	}{
		{"excludes", Layout{Exclude: strangers}, true},
		{"names", Layout{NodeList: slices.Repeat(own, names/nodes)}, true},
		{"names strangers", Layout{NodeList: slices.Concat(own, strangers)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			n, err := stepNodes(j, &StepSpec{Layout: c.layout})
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
			if (err == nil) != c.want || c.want && len(n.shares) != nodes {
				t.Errorf("%+v, %v", n, err)
			}
		})
	}
}
