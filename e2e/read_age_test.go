package e2e

import (
	"strings"
	"testing"
)

// TestReadsTellAge: a server that is cut off from the others answers with what it has, and says how old that is;
// one that is dead is told as silent. When it is back both end.
func TestReadsTellAge(t *testing.T) {
	t.Parallel()
	h, err := newHosts(t, 4)
	if err != nil {
		t.Skip(err)
	}
	g := fullGroupOn(t, h, 1)
	leader := g.awaitLeader("s1")
	alone := g.others(leader)[0]
	id := g.must(leader, "sbatch", "--parsable", "-H", "--wrap", "true")
	g.wait(alone+" to have the job", func() bool { return g.must(alone, "squeue", "-h", "-o", "%i") == id })
	old := func(name string, args ...string) bool {
		out, errs, rc := g.run(alone, name, args...)
		if rc != 0 || !strings.Contains(out, id) {
			t.Errorf("%s: %d, %q, %q", name, rc, out, errs)
		}
		return strings.Contains(errs, "as of ")
	}
	reads := [][]string{{"squeue", "-h", "-o", "%i"}, {"sacct", "-nXa", "-o", "JobID"}, {"scontrol", "show", "job", id}}
	for _, r := range reads {
		if old(r[0], r[1:]...) {
			t.Errorf("%s is old at once", r[0])
		}
	}
	for _, other := range g.others(alone) {
		h.part(g.host(alone), g.host(other))
	}
	for _, r := range reads {
		g.wait(r[0]+" to say how old it is", func() bool { return old(r[0], r[1:]...) })
	}
	g.wait("the others to say that it is silent",
		func() bool { return strings.HasPrefix(g.members(leader)[alone], "silent since ") })
	second := g.must(leader, "sbatch", "--parsable", "-H", "--wrap", "true")
	for _, other := range g.others(alone) {
		h.join(g.host(alone), g.host(other))
	}
	g.wait(alone+" to know what came meanwhile",
		func() bool { return strings.Contains(g.must(alone, "squeue", "-h", "-o", "%i"), second) })
	g.wait("it to be heard again", func() bool { return g.members(leader)[alone] == "follows" })
	g.wait("answers to be fresh", func() bool { return !old("squeue", "-h", "-o", "%i") })
}

// TestReadOwnWrites: who submits on a login host sees the job there at once, whichever servers are asked.
func TestReadOwnWrites(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 0)
	g.add("l1", "client", "--login", "--join", g.bind("s1"), "--token", g.joins["login"])
	const user = 65534
	g.at["l1"].as(user, "true")
	for i := range 60 {
		if i%10 == 9 { // its daemon asks another server next
			g.at["s"+string(rune('1'+i/10%3))].stop()
			g.start("s" + string(rune('1'+i/10%3)))
		}
		out, errs, rc := g.at["l1"].as(user, "sbatch", "--parsable", "-H", "-D", "/tmp", "-o", "/dev/null",
			"--wrap", "true")
		if rc != 0 {
			t.Fatalf("%d: %s%s", rc, out, errs)
		}
		id := strings.TrimSpace(out)
		if seen, errs, _ := g.at["l1"].as(user, "squeue", "-h", "-o", "%i", "--sort=-i"); !strings.Contains("\n"+seen, "\n"+id+"\n") {
			t.Errorf("job %s was submitted, and is not in the queue: %q, %s", id, seen[:min(20, len(seen))], errs)
		}
	}
}
