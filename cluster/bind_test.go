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
		{"", "block:block", 3, 4, "0-11", "mask_cpu [0-2 3-5 6-8 9-11]"}, // across sockets
		{"", "block:fcyclic", 3, 4, "0-5,8-13", "mask_cpu [0-1,8 2,9-10 3-4,11 5,12-13]"},
		{"", "cyclic:fcyclic", 3, 3, "0-5,8-10", "mask_cpu [0-1,8 2,9-10 3-5]"},
		{"", "block:fcyclic:block", 5, 2, "0-4,8-12", "mask_cpu [0-2,8-9 3-4,10-12]"},
		{"", "", 2, 3, "0-5", "mask_cpu [0-1 2-3 4-5]"},
		{"", "", 3, 4, "0-5,8-13", "mask_cpu [0-2 8-10 3-5 11-13]"},
		{"", "", 0, 2, "0-1,8-9", "mask_cpu [0-1,8-9]"},
		{"", "", 0, 2, "0-15", "mask_cpu [0-7 8-15]"},
		{"threads", "", 0, 2, "0-15", "mask_cpu [0 8]"},
		{"none", "", 0, 2, "0-15", "mask_cpu [0-15]"},
		{"v,map_cpu:3,5", "", 0, 2, "0-15", "map_cpu [3 5]"},
		{"mask_cpu:0x3,c", "", 0, 2, "0-15", "mask_cpu [0-1 2-3]"},
		{"mask_cpu:f,F0,verbose", "", 0, 2, "0-15", "mask_cpu [0-3 4-7]"},
		{"map_cpu", "", 0, 2, "0-15", "map_cpu [ ]"}, // no front-end asks for that
		{"map_cpu:0,1,q", "", 0, 2, "0-15", "map_cpu [0 1]"},
		{"rank", "", 0, 2, "0-15", "rank [0 1]"},
		{"core", "", 0, 2, "0-15", "mask_cpu [0 8]"},
		{"socket", "", 0, 3, "0-1,8", "mask_cpu [0-1 8 0-1]"},
		{"ldoms", "", 0, 4, "0-1,8-9", "mask_cpu [0-1 8-9 0-1 8-9]"},
		{"rank_ldom", "", 0, 3, "0-15", "rank_ldom [0-7 8-15 0-7]"},
		{"map_ldom:1*2,0", "", 0, 3, "0-15", "map_ldom [8-15 8-15 0-7]"},
		{"mask_ldom:0x3", "", 0, 2, "0-15", "mask_ldom [0-15 0-15]"},
		{"map_cpu:0*2,3", "", 0, 3, "0-15", "map_cpu [0 0 3]"},
		{"", "plane=2", 0, 4, "0-1,8-9", "mask_cpu [0 1 8 9]"},
		{"", "plane=2", 0, 3, "0-2", "mask_cpu [0 1 2]"},
	} {
		cpus, err := ParseIDSet(c.cpus)
		if err != nil {
			t.Fatal(err)
		}
		s := &StepSpec{}
		s.CPUBind, s.Distribution, s.CPUsPerTask = c.bind, c.dist, c.per
		if c.dist == "plane=2" {
			s.PlaneSize = 2
		}
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
		{"map_cpu:0,8,1", "0,8", "CPU binding outside of job step allocation, allocated CPUs are: 0x0101."},
		{"mask_cpu:0x1,0x100,0x2", "0,8", "CPU binding outside of job step allocation, allocated CPUs are: 0x0101."},
		{"map_cpu:77", "0-15", "CPU binding outside of job step allocation, allocated CPUs are: 0xFFFF."},
		{"verbose,rank", "0,8", "Entire node must be allocated for verbose,rank,one_thread"},
		{"rank", "0-15", ""},
		{"rank_ldom", "0-15", ""},
		{"map_ldom:0,1", "0,8", "Entire node must be allocated for map_ldom,one_thread"},
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

// Several tasks for each socket are bound to the sockets.
func TestBindTasksPerSocket(t *testing.T) {
	inv := &Inventory{CPUs: 16, Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1}
	cpus, _ := ParseIDSet("0-1,8-9")
	for per, want := range map[int]string{1: "[0 8 1 9]", 2: "[0-1 8-9 0-1 8-9]"} {
		s := &StepSpec{}
		s.TasksPerSocket = per
		if got := fmt.Sprint(Bind(s, Share{CPUs: cpus, Tasks: 4}, inv).Masks); got != want {
			t.Errorf("--ntasks-per-socket=%d: %s, want %s", per, got, want)
		}
	}
}

func TestBindMem(t *testing.T) {
	for _, c := range []struct{ bind, want string }{
		{"local", "{local  false false false} [  ] true"},
		{"verbose,prefer,local", "{local  true true false} [  ] true"},
		{"v,rank", "{rank  true false false} [0 1 2] false"},
		{"sort,map_mem:0*2,1", "{map_mem 0,0,1 false false true} [0 0 1] false"},
		{"map_mem:0x10", "{map_mem 0x10 false false false} [16 16 16] false"},
		{"mask_mem:0x3,1", "{mask_mem 3,1 false false false} [0-1 0 0-1] false"},
	} {
		b := BindMem(c.bind)
		var sets []IDSet
		whole := false
		for k := range 3 {
			var set IDSet
			set, whole = b.Of(k)
			sets = append(sets, set)
		}
		if got := fmt.Sprint(b, sets, whole); got != c.want {
			t.Errorf("%s: %s, want %s", c.bind, got, c.want)
		}
	}
}
