package burst

import (
	"runtime"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestBurstScript: the functions that stage files get the directives alone, with what symbols stand for, as Slurm
// 26.05 gives them.
func TestBurstScript(t *testing.T) {
	spec := &cluster.JobSpec{Name: "nm", User: "alice", WorkDir: "/tmp"}
	alone := &cluster.Job{ID: 1, Task: -1, Spec: spec}
	task := &cluster.Job{ID: 5, ArrayID: 4, Task: 13, Spec: spec}
	cfg := &cluster.BurstConfig{Directive: "BB_LUA"}
	const text = "#!/bin/bash\n#BB_LUA a=%j A=%A t=%a b=%b d=%d u=%u x=%x pct=%% e=50% f=%z g=%5j q=\\%j\n" +
		"# %j\n#BB_LUA %j%j-%u\necho %j\n#BB_LUA late=%j\n"
	for _, c := range []struct {
		call   cluster.BurstCall
		job    *cluster.Job
		script string
		want   string
	}{
		{cluster.CallDataIn, alone, text, "#!/bin/sh\n" +
			"#BB_LUA a=1 A=0 t=4294967294 b=4 d=/tmp u=alice x=nm pct=% e=50f= g=j q=\\1\n#BB_LUA 11-alice\n"},
		{cluster.CallSetup, task, text, "#!/bin/sh\n" +
			"#BB_LUA a=5 A=4 t=13 b=3 d=/tmp u=alice x=nm pct=% e=50f= g=j q=\\5\n#BB_LUA 55-alice\n"},
		{cluster.CallDataOut, alone, "#BB_LUA a=%x b\\\\c d=%j\n#BB_LUA z=%j\n",
			"#!/bin/sh\n#BB_LUA a=nm b\\\\c d=%j\n#BB_LUA z=%j\n"},
		{cluster.CallPostRun, alone, "#BB_LUA a=100%\n#BB_LUA z=%j%\n", "#!/bin/sh\n#BB_LUA a=100\n#BB_LUA z=1\n"},
		{cluster.CallPreRun, alone, text, text},
		{cluster.CallTeardown, alone, text, text},
	} {
		got, err := scriptFor(cfg, c.call, []byte(c.script), c.job)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, want %q (%v)", c.call, got, c.want, err)
		}
	}
}

// TestLongDirectives: a script of a few kilobytes that names its folder again and again takes no gigabytes of a server.
func TestLongDirectives(t *testing.T) {
	j := &cluster.Job{ID: 1, Task: -1, Spec: &cluster.JobSpec{WorkDir: "/" + strings.Repeat("d", 4095)}}
	cfg := &cluster.BurstConfig{Directive: "BB_LUA"}
	for _, row := range []struct{ name, lines string }{
		{"symbols", "#BB_LUA " + strings.Repeat("%d", 1<<19)},
		{"behind backslashes", `#BB_LUA \\` + strings.Repeat("d", maxFilled)},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := new(runtime.MemStats)
			runtime.ReadMemStats(before)
			_, err := scriptFor(cfg, cluster.CallSetup, []byte(row.lines+"\n"), j)
			after := new(runtime.MemStats)
			runtime.ReadMemStats(after)
			if err == nil || !strings.Contains(err.Error(), "BB_LUA") || !strings.Contains(err.Error(), "shorten") {
				t.Errorf("got %v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}
