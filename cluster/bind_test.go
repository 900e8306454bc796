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
		{"none", "", 0, 2, "0-15", "mask_cpu [0-15]"},
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

func TestCheckBind(t *testing.T) {
	inv := &Inventory{CPUs: 16, Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1}
	for _, c := range []struct{ bind, cpus, want string }{
		{"", "0,8", ""},
		{"none", "0,8", ""},
		{"cores", "0,8", ""},
		{"map_cpu:0,8", "0,8", ""},
		{"map_cpu:1,3", "0,8", "CPU binding outside of job step allocation, allocated CPUs are: 0x0101."},
		{"mask_cpu:0x3,0x100", "0,8", "CPU binding outside of job step allocation, allocated CPUs are: 0x0101."},
		{"mask_cpu:0x1,0x100", "0,8", ""},
		{"map_cpu:77", "0-15", "CPU binding outside of job step allocation, allocated CPUs are: 0xFFFF."},
		{"verbose,rank", "0,8", "Entire node must be allocated for verbose,rank,one_thread"},
		{"rank", "0-15", ""},
	} {
		cpus, err := ParseIDSet(c.cpus)
		if err != nil {
			t.Fatal(err)
		}
		s := &StepSpec{}
		s.CPUBind = c.bind
		got := ""
		if err := CheckBind(s, Share{CPUs: cpus, Tasks: 2}, inv); err != nil {
			got = err.Message
		}
		if got != c.want {
			t.Errorf("%q on %s: %q, want %q", c.bind, c.cpus, got, c.want)
		}
	}
}
