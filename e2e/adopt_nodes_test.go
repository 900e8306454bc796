package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fakeNodeSlurm stands for the commands of a Slurm with one node, whose state is a file, and for the site's commands.
// The call whose number is in the file die takes effect and then kills the command that made it.
const fakeNodeSlurm = `#!/bin/bash
cd "$(dirname "$0")"
name=$(basename "$0")
echo "$name $*" >> log
case "$name $*" in
"scontrol -a -o show node node-001")
	echo "NodeName=node-001 Arch=x CPUAlloc=0 State=$(cat state) Reason=State=IDLE" ;;
"scontrol update nodename=node-001 state=drain reason=moving to muster") echo IDLE+DRAIN > state ;;
"scontrol update nodename=node-001 state=resume") echo IDLE > state ;;
"squeue -h -a -w node-001 -o %i") cat jobs 2>/dev/null; rm -f jobs ;;
"squeue -h -a -o %T") ;;
"sinfo "*) echo node-001 ;;
"stop "*) echo "DOWN*+DRAIN" > state ;;
"start "*) echo "DOWN+DRAIN" > state ;;
"leave "*|"join "*) ;;
*) echo "fake: $name $*" >&2; exit 1 ;;
esac
n=$(($(cat calls) + 1)); echo $n > calls
if [ "$n" = "$(cat die)" ]; then kill -9 $PPID; fi
`

// TestAdoptNodes: a node moves to muster and back. The command is killed after each of its calls in turn and run again;
// at no moment may both systems start jobs on the node.
func TestAdoptNodes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the reservation of the burn-in is for root's jobs")
	}
	t.Parallel()
	d := startDev(t, "--hollow", "2x4c8g", "--hollow-time", "10ms")
	dir := filepath.Join(d.dir, "slurm")
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scontrol", "squeue", "sinfo", "stop", "start", "leave", "join"} {
		put(name, fakeNodeSlurm, 0o755)
	}
	put("state", "MIXED\n", 0o644)
	put("jobs", "12\n", 0o644)
	d.must("muster", "peer", "add", "--slurm", "old", "--bin", dir)
	d.must("scontrol", "update", "nodename=node-001", "state=drain", "reason=of Slurm")

	closed := func(when string) (inSlurm, inMuster bool) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "state"))
		if err != nil {
			t.Fatal(err)
		}
		inSlurm = strings.Contains(string(text), "DRAIN")
		inMuster = strings.HasPrefix(d.must("sinfo", "-h", "-N", "-n", "node-001", "-o", "%T"), "drain") ||
			d.must("scontrol", "-o", "show", "reservation") != "No reservations in the system"
		if !inSlurm && !inMuster {
			t.Fatalf("%s: both may start jobs\n%s", when, d.slurmLog(dir))
		}
		return inSlurm, inMuster
	}
	move := func(what string, args ...string) (kills int) {
		t.Helper()
		for kill := 1; ; kill++ {
			put("calls", "0\n", 0o644)
			put("die", strconv.Itoa(kill)+"\n", 0o644)
			cmd := exec.Command(filepath.Join(bin, "muster"), slices.Concat([]string{"adopt", what, "--journal",
				d.dir + "/journal", "--every", "10ms", "--burnin", "1"}, args)...)
			cmd.Env = d.env
			out, err := cmd.CombinedOutput()
			closed(what)
			if code := cmd.ProcessState.ExitCode(); code == 0 {
				return kills
			} else if code != -1 || kill > 50 {
				t.Fatalf("%s, killed %d times: %v\n%s\n%s", what, kills, err, out, d.slurmLog(dir))
			}
			kills++
		}
	}
	there := []string{"node-001", "--from", "old", "--leave", "exec " + dir + "/stop $NODE",
		"--join", "exec " + dir + "/join $NODE"}
	kills := move("nodes", there...)
	if inSlurm, inMuster := closed("moved"); !inSlurm || inMuster || kills < 3 {
		t.Fatalf("after the move: closed in Slurm %v, in muster %v; killed %d times", inSlurm, inMuster, kills)
	}
	status := d.must("muster", "adopt", "status", "--journal", d.dir+"/journal")
	if !strings.Contains(status, "taking jobs") || !strings.Contains(status, "Queue of old: 0 pending") {
		t.Errorf("status:\n%s", status)
	}
	kills = move("return", "--leave", "exec "+dir+"/leave $NODE", "--join", "exec "+dir+"/start $NODE", "node-001")
	if inSlurm, inMuster := closed("returned"); inSlurm || !inMuster || kills < 3 {
		t.Fatalf("after the return: closed in Slurm %v, in muster %v; killed %d times", inSlurm, inMuster, kills)
	}
	put("die", "0\n", 0o644)
	finish := []string{"adopt", "finish", "--journal", d.dir + "/journal", "old"}
	if _, errs, code := d.run("muster", finish...); code != 1 || !strings.Contains(errs, "1 nodes are left in old: node-001") {
		t.Errorf("finish with a node left: %d %s", code, errs)
	}
	move("nodes", there...)
	put("die", "0\n", 0o644)
	if out := d.must("muster", finish...); !strings.Contains(out, "systemctl disable --now slurmctld") {
		t.Errorf("finish: %s", out)
	}
	if out := d.must("muster", "peer", "ls"); strings.Contains(out, "old") {
		t.Errorf("peers after the end:\n%s", out)
	}
}
