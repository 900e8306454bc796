package cluster

import "testing"

// TestCheckStep: a step cannot have its node count to a number without bound.
func TestCheckStep(t *testing.T) {
	const huge = 1 << 62
	for name, c := range map[string]struct {
		change func(*StepSpec)
		want   bool
	}{
		"nothing":                {func(*StepSpec) {}, true},
		"many tasks":             {func(s *StepSpec) { s.Tasks = 5000 }, true},
		"a part":                 {func(s *StepSpec) { s.World = &StepWorld{Tasks: 9, Rank: 4, Node: 1, Size: 2} }, true},
		"too many tasks":         {func(s *StepSpec) { s.Tasks, s.Overcommit = 1<<23, true }, false},
		"too many on a node":     {func(s *StepSpec) { s.TasksPerNode, s.Overcommit = 1<<23, true }, false},
		"tasks below 0":          {func(s *StepSpec) { s.Tasks = -1 }, false},
		"devices beyond numbers": {func(s *StepSpec) { s.PerTask = []GRES{{Name: "gpu", Count: huge}} }, false},
		"devices below 0":        {func(s *StepSpec) { s.PerNode = []GRES{{Name: "gpu", Count: -1}} }, false},
		"memory below 0":         {func(s *StepSpec) { s.Mem = Mem{Per: MemPerNode, MB: -1} }, false},
		"a part of all tasks":    {func(s *StepSpec) { s.World = &StepWorld{Tasks: huge} }, false},
		"a part before all":      {func(s *StepSpec) { s.World = &StepWorld{Rank: -1} }, false},
		"a part behind all":      {func(s *StepSpec) { s.World = &StepWorld{Tasks: 2, Rank: huge} }, false},
		"ports below 0":          {func(s *StepSpec) { n := -1; s.Ports = &n }, false},
	} {
		s := &StepSpec{}
		c.change(s)
		if err := CheckStep(s, 2); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheckParts: another node has no more tasks begin on a node than a step can have there.
func TestCheckParts(t *testing.T) {
	for tasks, want := range map[int]bool{-1: false, 1: true, maxTasksOnNode: true, 1 << 40: false} {
		s := &Step{Shares: []Share{{Node: "n0", Tasks: tasks}}}
		if err := s.CheckParts(&StepSpec{}); (err == nil) != want {
			t.Errorf("%d tasks: %v", tasks, err)
		}
	}
}

// TestBindManyGPUs: a number of devices for each task that no node has binds tasks to what there is.
func TestBindManyGPUs(t *testing.T) {
	for name, s := range map[string]*StepSpec{
		"by --gpu-bind": {Layout: Layout{GPUBind: "per_task:4611686018427387904"}},
		"by a count":    {Layout: Layout{PerTask: []GRES{{Name: "lustre", Count: 1 << 62}}}},
	} {
		for local := range 3 {
			if b := BindGPUs(s, RangeIDSet(0, 1), local, &Inventory{}); b.GPUs.Empty() {
				t.Errorf("%s: task %d has no device", name, local)
			}
		}
	}
}
