package cluster

import "testing"

// TestCheckAsked: numbers that stand for nothing are refused at the door.
func TestCheckAsked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*JobSpec)
		want   bool
	}{
		"nothing":          {func(*JobSpec) {}, true},
		"srun's own":       {func(s *JobSpec) { s.Kind = SrunJob }, true},
		"no kind":          {func(s *JobSpec) { s.Kind = SrunJob + 1 }, false},
		"shared":           {func(s *JobSpec) { s.Sharing = ShareOver }, true},
		"shared somehow":   {func(s *JobSpec) { s.Sharing = 200 }, false},
		"memory of a GPU":  {func(s *JobSpec) { s.Mem = Mem{Per: MemPerGPU, MB: 1} }, true},
		"memory of what":   {func(s *JobSpec) { s.Mem = Mem{Per: 7, MB: 1} }, false},
		"segments below 0": {func(s *JobSpec) { s.Segment = -1 }, false},
		"planes below 0":   {func(s *JobSpec) { s.PlaneSize = -1 }, false},
	} {
		spec := &JobSpec{Layout: &Layout{}}
		c.change(spec)
		if err := CheckAsked(spec); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	over := Sharing(9)
	for name, p := range map[string]Patch{"memory": {Mem: &Mem{Per: 9}}, "sharing": {Sharing: &over}} {
		if err := p.check(); err == nil {
			t.Errorf("a change of %s to nothing is taken", name)
		}
	}
}
