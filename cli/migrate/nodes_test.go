package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/adopt/nodes"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// TestNodeCommands: the usual commands reach the node by ssh, quoted; the site's get its name as a variable; and a
// command that fails is an error.
func TestNodeCommands(t *testing.T) {
	dir := t.TempDir()
	tool(t, dir, "ssh", `echo "$*" >> `+dir+`/log`)
	w := &nodeWorld{ctx: t.Context(), peers: func() (map[string]*cluster.SlurmPeer, error) {
		return map[string]*cluster.SlurmPeer{"far": {Bin: "/opt/s b/bin", Conf: "/etc/s.conf", Host: "ctl"}}, nil
	}}
	there := &nodes.Move{Node: "n1", From: "far", Phase: nodes.Empty}
	back := &nodes.Move{Node: "n1", From: "far", Phase: nodes.Vacant}
	site := &nodes.Move{Node: "n1", From: "far", Phase: nodes.Empty, Leave: `echo "site $NODE" >> ` + dir + "/log"}
	for _, err := range []error{
		w.RunLeave(there), w.RunLeave(back), w.RunJoin(back), w.RunLeave(site), w.ResumeSlurm(back),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	ssh := "-o BatchMode=yes -o ConnectTimeout=10 "
	words := front.RemoteLine("", []string{"SLURM_TIME_FORMAT=standard", "SLURM_CONF=/etc/s.conf"},
		[]string{"/opt/s b/bin/scontrol", "update", "nodename=n1", "state=resume"})
	want := ssh + "n1 -- systemctl disable --now slurmd\n" + ssh + "n1 -- " + uninstall + "\n" +
		ssh + "n1 -- systemctl enable --now slurmd\nsite n1\n" + ssh + "ctl -- " + words + "\n"
	if string(text) != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	site.Leave = "echo no >&2; exit 3"
	if err := w.RunLeave(site); err == nil || !strings.Contains(err.Error(), "stays drained in both") {
		t.Error(err)
	}
	if _, err := w.InSlurm(&nodes.Move{Node: "n1", From: "other"}); err == nil {
		t.Error("a cluster that is no peer was asked")
	}
}

// TestJournal: one process at a time changes the journal, and one that others may write is not trusted.
func TestJournal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "j")
	j, err := openMoves(file, true)
	if err != nil {
		t.Fatal(err)
	}
	j.list = append(j.list, &nodes.Move{Node: "n1", Phase: nodes.Planned})
	if err := j.save(); err != nil {
		t.Fatal(err)
	}
	if _, err := openMoves(file, true); err == nil || !strings.Contains(err.Error(), "another process moves nodes") {
		t.Error(err)
	}
	j.close()
	again, err := openMoves(file, true)
	if err != nil || again.find("n1") == nil || again.find("n2") != nil {
		t.Fatalf("%v %+v", err, again)
	}
	again.close()
	if err := os.Chmod(file, 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err := openMoves(file, false); err == nil || !strings.Contains(err.Error(), "other users may change it") {
		t.Error(err)
	}
}
