package cluster

// Bounds of one step: of its tasks on a node, and of those of a step over all components of a heterogeneous job.
const (
	maxTasksOnNode = 1 << 14
	maxWorldTasks  = 1 << 20
)

// CheckStep refuses a step with numbers that no step can have, in a job of so many nodes: the node that starts it would
// count, and take memory, up to them.
func CheckStep(s *StepSpec, nodes int) error {
	if err := admitNumbers(&JobSpec{Layout: &s.Layout}); err != nil {
		return err
	}
	if err := s.Layout.checkAsked(); err != nil {
		return err
	}
	if tasks := stepTasks(s, nodes); tasks > maxTasksOnNode*nodes || s.TasksPerNode > maxTasksOnNode {
		return Errorf(Invalid, ErrStepCPUs, "a step has at most %d tasks on a node: %d are too many for %d nodes",
			maxTasksOnNode, tasks, nodes)
	}
	if s.Ports != nil && !isCount(*s.Ports) {
		return Errorf(Invalid, "", "%d is no number of ports", *s.Ports)
	}
	return s.World.check()
}

// check refuses numbers of tasks and nodes that no part of a step can have.
func (w *StepWorld) check() error {
	if w == nil {
		return nil
	}
	tasks := w.Tasks >= 0 && w.Tasks <= maxWorldTasks && w.Rank >= 0 && w.Rank <= w.Tasks
	return refuseIf(!tasks || !isCount(w.Node) || !isCount(w.Size),
		Invalid, "", "a part of a step that begins with task %d of %d, on node %d, cannot be: %d are the most",
		w.Rank, w.Tasks, w.Node, maxWorldTasks)
}

// CheckParts refuses a step that another node has placed, if no node could have placed it so.
func (s *Step) CheckParts(spec *StepSpec) error {
	for _, sh := range s.Shares {
		if sh.Tasks < 0 || sh.Tasks > maxTasksOnNode {
			return Errorf(Invalid, "", "step %d of job %d has %d tasks on node %s: a step has at most %d there",
				s.ID.Step, s.ID.Job, sh.Tasks, sh.Node, maxTasksOnNode)
		}
	}
	return CheckStep(spec, len(s.Shares))
}
