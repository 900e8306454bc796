package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHostLost: a step ends for its srun soon after a machine of it has gone silent, be that the first of the job or
// not. Nothing closes connections to a machine that is silent.
func TestHostLost(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make hosts with a hostname of their own")
	}
	h, err := newHosts(t, 3)
	if err != nil {
		t.Skip("no network namespaces here: ", err)
	}
	g := newGroupOf(t, filepath.Join(bin, "muster"), h, "--conf", confFile(t, mpiConf))
	token := g.must("s1", "muster", "token", "create", "--uses", "2")
	g.machine("h1", token)
	g.machine("h2", token)
	d := g.at["s1"]
	for _, lost := range []string{"h2", "h1"} {
		t.Run(lost, func(t *testing.T) {
			g.wait("the machines", func() bool { return g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%N") == "h[1-2]" })
			cmd := exec.Command(filepath.Join(bin, "srun"), "-N2", "-n2", "sh", "-c", "echo begun; exec sleep 600")
			cmd.Env, cmd.Dir = d.env, d.work
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said := func() string {
				text, _ := os.ReadFile(out.Name())
				return string(text)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }() // ends with the process
			g.wait("both tasks", func() bool { return strings.Count(said(), "begun\n") == 2 })
			if lost == "h2" { // the first one; who has just joined is not looked at when it is silent
				g.wait("gossip to know the machines", func() bool {
					return g.must("s1", "squeue", "-h", "-o", "%M") >= "0:04"
				})
			}
			g.hosts.cut(g.host(lost))
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(said(), lost+": task") {
					t.Errorf("srun ended with %v and said %s", err, said())
				}
			case <-time.After(40 * time.Second):
				_ = cmd.Process.Kill()
				<-ended
				t.Errorf("srun has not ended 40 s after %s was lost: %s", lost, said())
			}
			g.hosts.heal(g.host(lost))
		})
	}
}
