package supervisor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// holds is a script that holds so many MB in a process of its own, tells when it does, and then waits for a line of a
// FIFO.
func holds(mb int, told, fifo string) string {
	return fmt.Sprintf(`x=$(head -c %d /dev/zero | tr "\0" a); echo held >%s; read l <%s; echo ${#x}`, mb<<20, told, fifo)
}

// TestSetMemory: a running job with a new limit is held to that: with more it may use more, with less the largest
// process of those that use too much is killed for want of memory.
func TestSetMemory(t *testing.T) {
	needControl(t, cgroup.Memory)
	g := newRig(t)
	set := func(id step.ID, mb cluster.MemMB) {
		t.Helper()
		if err := g.r.SetMemory(id, mb); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("more", func(t *testing.T) {
		go1 := g.fifo("go")
		sp := g.spec("read l <" + go1 + "; " + eats + "; exit 0")
		sp.Fence = cgroup.Fence{MemMB: 64}
		g.start(sp)
		g.await(sp.ID, isRunning)
		set(sp.ID, 400)
		if err := os.WriteFile(go1, []byte("go\n"), 0); err != nil {
			t.Fatal(err)
		}
		if st := g.await(sp.ID, isEnded); st.OOMKills != 0 || st.Tasks[0].Exit.Code != 0 {
			t.Errorf("with 400 MB: %+v", st)
		}
	})
	t.Run("less than later use", func(t *testing.T) {
		go1 := g.fifo("go2")
		sp := g.spec("read l <" + go1 + "; " + eats + "; exit 9")
		sp.Fence = cgroup.Fence{MemMB: 400}
		g.start(sp)
		g.await(sp.ID, isRunning)
		set(sp.ID, 64)
		if err := os.WriteFile(go1, []byte("go\n"), 0); err != nil {
			t.Fatal(err)
		}
		if st := g.await(sp.ID, isEnded); st.OOMKills != 1 || !st.Tasks[0].OOM {
			t.Errorf("with 64 MB: %+v", st)
		}
	})
	t.Run("less than present use", func(t *testing.T) {
		told, never := g.fifo("told"), g.fifo("never")
		greedy := g.spec(holds(100, told, never))
		greedy.Fence, greedy.OOMText = cgroup.Fence{MemMB: 400}, "killed %d for memory\n"
		modest := g.spec("read l <" + g.fifo("end") + "; echo goes on")
		modest.Fence, modest.ID.Job, modest.ID.Step = greedy.Fence, greedy.ID.Job, greedy.ID.Step+1
		g.start(greedy, modest)
		g.readFifo(told)
		set(greedy.ID, 64)
		if st := g.await(greedy.ID, isEnded); st.OOMKills < 1 || !st.Tasks[0].OOM {
			t.Errorf("what uses too much: %+v", st)
		}
		if text := g.text(greedy.ID); !strings.Contains(text, "for memory\n") {
			t.Errorf("output %q", text)
		}
		if err := os.WriteFile(g.own+"/end", []byte("end\n"), 0); err != nil {
			t.Fatal(err)
		}
		if st := g.await(modest.ID, isEnded); st.OOMKills != 0 || st.Tasks[0].Exit.Code != 0 {
			t.Errorf("its other step: %+v", st)
		}
	})
	t.Run("of what begins later", func(t *testing.T) {
		sp := g.spec(eats + "; exit 9")
		sp.Fence = cgroup.Fence{MemMB: 400}
		set(sp.ID, 64)
		if st := g.run(sp); st.OOMKills != 1 {
			t.Errorf("with 64 MB: %+v", st)
		}
		set(sp.ID, 0)
		sp.ID.Step++
		if st := g.run(sp); st.OOMKills != 0 {
			t.Errorf("forgotten: %+v", st)
		}
	})
}
