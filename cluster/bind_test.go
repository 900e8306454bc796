package cluster

import (
	"fmt"
	"testing"
)

func TestBind(t *testing.T) {
	inv := &Inventory{CPUs: 16, Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1}
	for _, c := range []struct {
		bind, dist string
		per, tasks int
		cpus, want string
	}{
		{"", "", 0, 4, "0-1,8-9", "mask_cpu [0 8 1 9]"},
		{"", "block:block", 0, 4, "0-3", "mask_cpu [0 1 2 3]"},
		{"", "", 2, 3, "0-5", "mask_cpu [0-1 2-3 4-5]"},
		{"", "", 3, 4, "0-5,8-13", "mask_cpu [0-2 8-10 3-5 11-13]"},
		{"", "", 0, 2, "0-1,8-9", "mask_cpu [0-1,8-9]"},
		{"", "", 0, 2, "0-15", "mask_cpu [0-7 8-15]"},
		{"threads", "", 0, 2, "0-15", "mask_cpu [0 8]"},
		{"none", "", 0, 2, "0-15", "none [0-15]"},
		{"v,map_cpu:3,5", "", 0, 2, "0-15", "map_cpu [3 5]"},
		{"mask_cpu:0x3,c", "", 0, 2, "0-15", "mask_cpu [0-1 2-3]"},
		{"rank", "", 0, 2, "0-15", "rank [0 1]"},
	} {
		cpus, err := ParseIDSet(c.cpus)
		if err != nil {
			t.Fatal(err)
		}
		s := &StepSpec{}
		s.CPUBind, s.Distribution, s.CPUsPerTask = c.bind, c.dist, c.per
		b := Bind(s, Share{CPUs: cpus, Tasks: c.tasks}, inv)
		if got := fmt.Sprint(b.Kind, " ", b.Masks); got != c.want {
			t.Errorf("%q -m %q -c%d -n%d of %s: %s, want %s", c.bind, c.dist, c.per, c.tasks, c.cpus, got, c.want)
		}
	}
}
