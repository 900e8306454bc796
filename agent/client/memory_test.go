package client

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// memoryRunner writes down what it is asked to limit.
type memoryRunner struct {
	step.Runner
	told []string
	err  error
}

func (r *memoryRunner) SetMemory(id step.ID, mb cluster.MemMB) error {
	r.told = append(r.told, fmt.Sprintf("%d.%d@%s %d", id.Job, id.Attempt, id.Node, mb))
	return r.err
}

// TestSetMemory: a limit that was set is not set again, one that could not be is, later; where nothing holds jobs to
// their memory nothing is asked for.
func TestSetMemory(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		off  bool
		want memoryHere // but for the time
		told []string
	}{
		"set":             {nil, false, memoryHere{set: 60}, []string{"1.1@n1 60"}},
		"not set":         {errors.New("no"), false, memoryHere{}, []string{"1.1@n1 60"}},
		"nothing is held": {nil, true, memoryHere{set: 60}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			run := &memoryRunner{err: c.err}
			cl := newClient(t, Config{Runner: run})
			h := withMemory(here(cluster.Running, self), memoryHere{})
			cl.mu.Lock()
			cl.config.MemAlloc = true
			cl.config.Constrain.NoMemory = c.off
			limitMemory(cl.jobs, h)
			busy := h.memory.busy
			cl.mu.Unlock()
			if busy != (c.told != nil) {
				t.Errorf("busy: %v", busy)
			}
			if busy {
				<-cl.wakeup
			}
			cl.mu.Lock()
			defer cl.mu.Unlock()
			if h.memory.again.IsZero() == (c.err != nil) {
				t.Errorf("tried again at %v", h.memory.again)
			}
			got := h.memory
			got.again = c.want.again
			if got != c.want || !slices.Equal(run.told, c.told) {
				t.Errorf("it is %+v, the supervisor was told %v", got, run.told)
			}
		})
	}
}
