package sched_test

import (
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/sched/explain"
)

// het submits a heterogeneous job: its name, and the options of each component, with : between them. The others are
// called by its name and +1, +2, ….
func (s *scenario) het(words []string) {
	c := &cluster.SubmitHet{}
	var names []string
	for part := range strings.SplitSeq(strings.Join(words[1:], " "), " : ") {
		name := words[0]
		if len(names) > 0 {
			name += "+" + strconv.Itoa(len(names))
		}
		names = append(names, name)
		c.Specs = append(c.Specs, s.spec(append([]string{name}, strings.Fields(part)...)))
	}
	lead := s.Apply(c).(cluster.JobID)
	for k, name := range names {
		s.jobs[name] = lead + cluster.JobID(k)
	}
	s.names = append(s.names, names...)
}

// preempt has jobs make room: a type, a mode, and youngest or exempt=MIN.
func (s *scenario) preempt(words []string) {
	s.configure(func(c *cluster.Config) {
		c.Preempt = cluster.PreemptConfig{
			Type: cluster.PreemptType(words[0]), Mode: words[1],
			Youngest: slices.Contains(words, "youngest"), Reorders: 1,
		}
		for _, w := range words[2:] {
			if val, ok := strings.CutPrefix(w, "exempt="); ok {
				c.Preempt.Exempt = s.minutes(val)
			}
		}
	})
}

// explain prints why jobs wait.
func (s *scenario) explain(names []string) {
	s.each(names, func(id cluster.JobID) {
		for _, c := range explain.Job(s.S.Snapshot(), s.Now, id).Causes {
			s.out = append(s.out, "> "+string(c.Reason)+": "+c.Text)
			if strings.HasPrefix(c.Hint, "sbatch ") || strings.HasPrefix(c.Hint, "scontrol update jobid") {
				s.out = append(s.out, ">   hint: "+c.Hint)
			}
		}
	})
}
