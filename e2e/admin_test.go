package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// confFile writes a slurm.conf into a folder of its own.
func confFile(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slurm.conf")
	rewrite(t, file, lines...)
	return file
}

func rewrite(t *testing.T, file string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fails calls a front-end that has to fail with a text.
func (g *group) fails(at, want, name string, args ...string) {
	g.t.Helper()
	if out, errs, code := g.run(at, name, args...); code == 0 || !strings.Contains(out+errs, want) {
		g.t.Errorf("%s %q: exit code %d, %q; want %q", name, args, code, out+errs, want)
	}
}

// TestNodesInAdvance makes nodes known before they come, and forgets them when they are gone.
func TestNodesInAdvance(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.must("s1", "scontrol", "create", "NodeName=c1-[001-002]", "CPUs=8", "RealMemory=16384", "State=CLOUD")
	g.must("s1", "scontrol", "create", "nodename=f1-001", "CPUs=4", "State=FUTURE")
	if out := g.must("s1", "sinfo", "-h", "-N", "-o", "%N %t"); out != "" {
		t.Errorf("nodes to come are listed: %q", out)
	}
	if out := g.must("s1", "sinfo", "-h", "-t", "cloud", "-o", "%D %t %N"); out != "2 idle~ c1-[001-002]" {
		t.Errorf("nodes to come: %q", out)
	}
	if out := g.must("s1", "scontrol", "-o", "show", "node", "c1-001"); !strings.Contains(out, " State=IDLE+CLOUD+POWERED_DOWN ") || !strings.Contains(out, "CPUTot=8") {
		t.Errorf("a node to come:\n%s", out)
	}
	if out := g.must("s1", "scontrol", "show", "node"); strings.Contains(out, "f1-001") {
		t.Errorf("a future node is shown:\n%s", out)
	}
	if out := g.must("s1", "scontrol", "-F", "-o", "show", "node"); !strings.Contains(out, "NodeName=f1-001") || !strings.Contains(out, " State=FUTURE ") {
		t.Errorf("a future node that is asked for:\n%s", out)
	}
	g.fails("s1", "Only State=FUTURE, CLOUD, or EXTERNAL allowed", "scontrol", "create", "nodename=x", "state=down")
	g.fails("s1", "Failed to parse nodeline 'nodename=x foo=1 state=cloud'", "scontrol", "create",
		"nodename=x", "foo=1", "state=cloud")
	g.fails("s1", "there is a node c1-001 already", "scontrol", "create", "nodename=c1-001", "state=cloud")
	if _, errs, code := g.at["s1"].as(1, "scontrol", "create", "nodename=x", "state=cloud"); code == 0 || !strings.Contains(errs, "Invalid user id") {
		t.Errorf("a user creates a node: %d, %s", code, errs)
	}

	job := g.must("s1", "sbatch", "--parsable", "-w", "c1-001", "-o", "/dev/null", "--wrap",
		"until [ -e go ]; do sleep 0.05; done")
	g.join("c1", "s1", hollow("1x8c16g", "c1-")...)
	g.wait("the job to run on the node that came",
		func() bool { return g.must("s1", "squeue", "-h", "-o", "%t %N") == "R c1-001" })
	if out := g.must("s1", "sinfo", "-h", "-N", "-n", "c1-[001-002]", "-o", "%N %t"); out != "c1-001 mix\nc1-002 idle~" {
		t.Errorf("one of two has come: %q", out)
	}
	g.join("f1", "s1", hollow("1x4c16g", "f1-")...)
	g.wait("the future to be now", func() bool { return g.state("f1-001") == "idle" })

	g.must("s1", "scontrol", "delete", "nodename=c1-002")
	g.fails("s1", "delete_node nodename=nosuch: Invalid node name specified", "scontrol", "delete", "nodename=nosuch")
	g.fails("s1", "failed to delete nodes c1-001\ndelete_node nodename=c1-001: Requested nodes are busy",
		"scontrol", "delete", "nodename=c1-001")
	g.fails("s1", "f1-001 is up and would come back", "scontrol", "delete", "nodename=f1-001")
	g.at["f1"].stop()
	g.wait("the node to be lost", func() bool { return g.state("f1-001") == "down*" })
	g.must("s1", "scontrol", "delete", "nodename=f1-001")
	if out := g.must("s1", "sinfo", "-h", "-N", "-o", "%N"); out != "c1-001" {
		t.Errorf("after the deletions: %q", out)
	}
	if err := os.WriteFile(g.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g.drained("s1")
	expect(t, "the job", g.must("s1", "sacct", "-nXP", "-j", job, "-o", "State"), "COMPLETED")
	g.at["s1"].kill()
	g.start("s1")
	g.wait("the server to be back", func() bool {
		out, _, code := g.run("s1", "sinfo", "-h", "-N", "-o", "%N")
		return code == 0 && out == "c1-001\n"
	})
}

// TestReboot restarts a machine when its jobs are over: the program is a script, and the client's
// restart is the machine's.
func TestReboot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "restart")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho $1 >>"+dir+"/restarted\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	restarts := func() int { b, _ := os.ReadFile(dir + "/restarted"); return strings.Count(string(b), "now\n") }
	file := confFile(t, "ClusterName=c", "PartitionName=main Nodes=ALL Default=YES")
	g := newGroup(t, "--conf", file)
	const node = "c1-001"
	g.join("c1", "s1", hollow("1x8c16g", "c1-")...)
	g.wait("the node", func() bool { return g.state(node) == "idle" })
	g.fails("s1", "RebootProgram isn't defined", "scontrol", "reboot", node)
	rewrite(t, file, "ClusterName=c", "PartitionName=main Nodes=ALL Default=YES", `RebootProgram="`+script+` now"`, "ResumeTimeout=600")
	g.must("s1", "scontrol", "reconfigure")
	g.fails("s1", "Invalid node name specified", "scontrol", "reboot", "nosuch")
	g.fails("s1", "Valid states: DOWN, RESUME", "scontrol", "reboot", "nextstate=foo", node)
	g.fails("s1", "Missing node list", "scontrol", "reboot", "asap")
	g.fails("s1", "Invalid node state specified", "scontrol", "cancel_reboot", node)

	long := func() { g.must("s1", "sbatch", "-o", "/dev/null", "--wrap", "until [ -e go ]; do sleep 0.05; done") }
	reason := func() string { return g.must("s1", "sinfo", "-h", "-n", node, "-o", "%E") }
	long()
	g.wait("the job", func() bool { return g.state(node) == "mix" })
	g.must("s1", "scontrol", "reboot", "ASAP", node)
	expect(t, "asked for", g.state(node)+" "+reason(), "drng@ Reboot ASAP")
	g.must("s1", "scontrol", "cancel_reboot", node)
	expect(t, "taken back", g.state(node)+" "+reason(), "mix none")
	g.must("s1", "scontrol", "reboot", "asap", "nextstate=resume", "reason=new kernel", node)
	g.must("s1", "sbatch", "-o", "/dev/null", "--wrap", "true") // must wait until afterwards
	if out := g.must("s1", "scontrol", "-o", "show", "node", node); !strings.Contains(out, "State=MIXED+DRAIN+REBOOT_REQUESTED ") || !strings.Contains(out, "MCS_label=N/A NextState=RESUME ") || !strings.Contains(out, "Reason=new kernel [root@") {
		t.Errorf("asked for:\n%s", out)
	}
	if restarts() != 0 {
		t.Error("the machine was restarted under a job")
	}
	if err := os.WriteFile(g.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g.wait("the restart", func() bool { return restarts() == 1 })
	expect(t, "under way", g.state(node)+" "+reason(), "boot^ new kernel : reboot issued")
	g.at["c1"].kill()
	g.start("c1")
	g.drained("s1")
	g.wait("the node to be back", func() bool { return g.state(node) == "idle" && reason() == "none" })

	g.must("s1", "scontrol", "reboot", "nextstate=down", node)
	g.wait("the second restart", func() bool { return restarts() == 2 })
	g.at["c1"].kill()
	g.start("c1")
	g.wait("the node to be down", func() bool { return g.state(node) == "down" })
	expect(t, "down afterwards", reason(), "reboot requested : reboot issued : reboot complete")
	g.must("s1", "scontrol", "update", "nodename="+node, "state=resume")

	rewrite(t, file, "ClusterName=c", "PartitionName=main Nodes=ALL Default=YES", `RebootProgram="`+script+` now"`, "ResumeTimeout=1")
	g.must("s1", "scontrol", "reconfigure")
	g.must("s1", "scontrol", "reboot", node)
	g.wait("the node to be given up", func() bool { return g.state(node) == "down" })
	expect(t, "given up", reason(), "reboot requested : reboot issued : reboot timed out")
	if restarts() != 3 {
		t.Errorf("the machine was restarted %d times, want 3", restarts())
	}
}

// TestReconfigure reads a changed file again: what can change does, on servers and nodes, and what does
// not is told. A change of leader changes nothing.
func TestReconfigure(t *testing.T) {
	t.Parallel()
	base := []string{"ClusterName=c", "PartitionName=main Nodes=ALL Default=YES MaxTime=10"}
	file := confFile(t, append(base, "NodeName=gone CPUs=2")...)
	g := fullGroup(t, 1, "--conf", file)
	out := func() string {
		g.must("s1", "sbatch", "-W", "-o", "out", "--wrap", "srun true")
		return g.read(t, "out")
	}
	expect(t, "without a prolog", out(), "")
	rewrite(t, file, "ClusterName=c", "PartitionName=main Nodes=ALL Default=YES MaxTime=20",
		"PartitionName=new Nodes=c1-001", "TaskProlog="+g.dir+"/prolog")
	g.at["s1"].write("../prolog", "#!/bin/sh\necho print from the prolog\n")
	if o, errs, code := g.run("s2", "scontrol", "reconfigure"); code != 0 || !strings.Contains(errs, "node gone is not in the file any more") {
		t.Errorf("reconfigure: %d, %s%s", code, o, errs)
	}
	if o := g.must("s1", "sinfo", "-h", "-o", "%P %l"); !strings.Contains(o, "main* 20:00") || !strings.Contains(o, "new ") {
		t.Errorf("the partitions afterwards: %q", o)
	}
	g.wait("nodes to know the prolog", func() bool { return strings.Contains(out(), "from the prolog\n") })
	g.must("s1", "scontrol", "update", "partition=new", "state=down")
	leader := g.awaitLeader("s1")
	other := g.others(leader)[0]
	g.must("s1", "muster", "server", "transfer", other)
	g.wait("the lead to move", func() bool { return g.leader("s1") == other })
	g.must(other, "sbatch", "-W", "-o", "/dev/null", "--wrap", "true") // it has taken over when it starts jobs
	if o := g.must(other, "sinfo", "-h", "-o", "%P %a"); !strings.Contains(o, "new down") {
		t.Errorf("a new leader with the same file undid a change: %q", o)
	}
	rewrite(t, file, base...)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	g.fails("s1", "slurm_reconfigure error: read configuration: open "+file, "scontrol", "reconfigure")
	rewrite(t, file, base...)
	g.must("s1", "scontrol", "reconfigure")
	if o := g.must("s1", "sinfo", "-h", "-o", "%P %l"); o != "main* 10:00" {
		t.Errorf("the old file again: %q", o)
	}
	if _, errs, code := g.at["s1"].as(1, "scontrol", "reconfigure"); code == 0 || !strings.Contains(errs, "Invalid user id") {
		t.Errorf("a user reconfigures: %d, %s", code, errs)
	}
}

// TestPingServers tells which of several servers answer.
func TestPingServers(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 0)
	leader := g.awaitLeader("s1")
	rest := g.others(leader)
	want := func(at, down string) {
		t.Helper()
		lines := []string{"Slurmctld(primary) at " + g.awaitLeader(at) + " is UP"}
		for _, s := range []string{"s1", "s2", "s3"} {
			state := "UP"
			if s == down {
				state = "DOWN"
			}
			if s != g.leader(at) {
				lines = append(lines, fmt.Sprintf("Slurmctld(backup%d) at %s is %s", len(lines), s, state))
			}
		}
		all := strings.Join(lines, "\n")
		expect(t, "ping by "+at, g.must(at, "scontrol", "ping"), all)
		if out := g.must(at, "scontrol", "show", "config"); !strings.HasSuffix(out, "\n"+all) {
			t.Errorf("show config ends with\n%s\nwant\n%s", out[max(0, len(out)-300):], all)
		}
	}
	want(rest[0], "")
	g.at[rest[1]].kill()
	want(leader, rest[1])
	want(rest[0], rest[1])
}

// TestServersOfConf joins by the servers that a slurm.conf names, without --join.
func TestServersOfConf(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	file := confFile(t, "ClusterName=c", "SlurmctldHost=nobody(127.0.0.1:1)", "SlurmctldHost=s1("+g.bind("s1")+")")
	g.add("c1", "client", append([]string{"--conf", file, "--token", g.joins["node"]}, hollow("1x8c16g", "c1-")...)...)
	g.wait("the node", func() bool { return g.state("c1-001") == "idle" })
	g.add("s2", "server", "--conf", file, "--token", g.joins["server"])
	g.wait("the second server", func() bool { return g.voters("s1") == 2 })
}
