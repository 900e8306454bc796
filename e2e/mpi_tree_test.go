package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dev.muster/pmi"
	"golang.org/x/sys/unix"
)

// pmiTalk begins a task that speaks PMI-1 itself.
const pmiTalk = `say() { echo "$1" >&3 && read -r answer <&3 && echo "$answer"; }
say "cmd=init pmi_version=1 pmi_subversion=1" >/dev/null
`

// treeGroup is a server and two clients on hosts of their own, with ten hollow nodes.
func treeGroup(t *testing.T) *group {
	t.Helper()
	h, err := newHosts(t, 3)
	if err != nil {
		t.Skip("no network namespaces here: ", err)
	}
	g := newGroupOf(t, "", h)
	for _, c := range []string{"c1", "c2"} {
		g.join(c, "s1", "--hollow", "5x4c8g", "--hollow-prefix", c+"-", "--hollow-exec")
	}
	g.wait("the nodes", func() bool { return g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D") == "10" })
	return g
}

// TestMPITree: the tasks of a step on many nodes of several clients exchange what srun's host does not see, and find
// each other as those on few nodes do.
func TestMPITree(t *testing.T) {
	t.Parallel()
	g := treeGroup(t)
	const size = 60_000
	talk := pmiTalk + fmt.Sprintf(`value=$(head -c %d /dev/zero | tr '\0' x)
say "cmd=put kvsname=x key=k$PMI_RANK value=of $PMI_RANK $value" >/dev/null
say cmd=barrier_in >/dev/null
say "cmd=get kvsname=x key=k$(( (PMI_RANK + 1) %% PMI_SIZE ))" | cut -c 1-60
say cmd=barrier_in >/dev/null
say cmd=finalize >/dev/null`, size)
	for _, c := range []struct {
		nodes       int
		way         string
		least, most int64 // how many parts srun's host receives
	}{
		{4, "", 4, 9},
		{10, pmi.WayHub, 10, 15},
		{10, "", 0, 5},
	} {
		nodes := c.nodes
		before := g.hosts.received(g.host("s1"))
		args := []string{"--mpi=pmi2", "-l", fmt.Sprint("-N", nodes), "--export=ALL," + pmi.WayEnv + "=" + c.way}
		out := g.must("s1", "srun", append(args, "sh", "-c", talk)...)
		moved := g.hosts.received(g.host("s1")) - before
		if moved < c.least*size || moved > c.most*size {
			t.Errorf("%+v: srun's host has received %d bytes", c, moved)
		}
		var want []string
		for rank := range nodes {
			answer := fmt.Sprintf("%d: cmd=get_result rc=0 msg=success value=of %d %s", rank, (rank+1)%nodes,
				strings.Repeat("x", 60))
			want = append(want, answer[:len("0: ")+60])
		}
		expect(t, fmt.Sprint(nodes, " nodes"), sortedLines(out), strings.Join(want, "\n"))
	}
}

// TestMPITreeServer: a server that dies in a fence ends the step alike on few nodes and on many, and leaves nothing.
func TestMPITreeServer(t *testing.T) {
	t.Parallel()
	g := treeGroup(t)
	for _, nodes := range []int{4, 10} {
		t.Run(strconv.Itoa(nodes), func(t *testing.T) {
			talk := pmiTalk + `trap "" PIPE
echo begun
[ $PMI_RANK -gt 0 ] || read -r nothing <&3 || exit 9
say cmd=barrier_in || exit 9`
			cmd, errs := g.begins(t, nodes, "--mpi=pmi2", "-K1", fmt.Sprint("-N", nodes), "sh", "-c", talk)
			servers := g.pmiServers()
			if len(servers) != nodes {
				t.Fatalf("%d servers on %d nodes", len(servers), nodes)
			}
			if err := unix.Kill(servers[nodes-1], unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 143 || !strings.Contains(errs.String(), "Exited with exit code 9") {
				t.Errorf("exit code %d\n%s", code, errs)
			}
			if strings.Contains(errs.String(), "has broken") {
				t.Errorf("it says more than it should:\n%s", errs)
			}
			g.wait("the servers to be gone", func() bool { return len(g.pmiServers()) == 0 })
		})
	}
}

// pmiServers are the process managers of the group's steps.
func (g *group) pmiServers() (pids []int) {
	g.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		g.t.Fatal(err)
	}
	for _, dir := range all {
		argv, _ := os.ReadFile(dir + "/cmdline") // it may have ended
		env, _ := os.ReadFile(dir + "/environ")
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && bytes.Contains(argv, []byte("internal\x00pmi")) && bytes.Contains(env, []byte(g.dir+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}
