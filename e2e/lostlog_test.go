package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// without is an option less, with its value.
func without(args []string, option string) []string {
	i := slices.Index(args, option)
	if i < 0 {
		return args
	}
	return slices.Delete(slices.Clone(args), i, i+2)
}

// TestClientComesBack: a client of a cluster of one server comes back after a restart without being told where that is.
func TestClientComesBack(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.join("c1", "s1", "--hollow", "1x8c16g", "--hollow-exec")
	g.must("s1", "srun", "true")
	d := g.at["c1"]
	d.stop()
	d.args = without(without(d.args, "--join"), "--token")
	g.start("c1")
	g.must("s1", "srun", "true")
}

// ends starts a member that cannot go on, and tells what it says.
func (g *group) ends(name string) string {
	g.t.Helper()
	d := g.at[name]
	before := len(d.read("log"))
	d.start()
	g.wait(name+" to end", d.ended)
	return d.read("log")[before:]
}

// saysWayOut wants a member that ended to say why in a sentence, and what to do.
func (g *group) saysWayOut(what, said string, words ...string) {
	g.t.Helper()
	for _, w := range append(words, "muster server leave", "muster node revoke", "muster token create") {
		if !strings.Contains(said, w) {
			g.t.Errorf("%s: it does not say %q: %s", what, w, said)
		}
	}
	if strings.Contains(said, "goroutine") || strings.Contains(said, "panic") {
		g.t.Errorf("%s: it panics: %s", what, said)
	}
}

// TestLostLogVotesNot: a server that has lost its log, while another one is behind and the leader down, does not
// help to elect one that knows nothing of what was acknowledged. It is replaced, and all is there.
func TestLostLogVotesNot(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 0)
	leader := g.awaitLeader("s1")
	behind, lost := g.others(leader)[0], g.others(leader)[1]
	g.at[behind].kill()
	const jobs = 20
	for range jobs {
		g.must(leader, "sbatch", "--parsable", "-H", "--wrap", "true")
	}
	g.at[lost].kill()
	g.at[leader].kill()
	if err := os.Remove(g.at[lost].dir + "/d/raft/raft-open.db"); err != nil {
		t.Fatal(err)
	}
	g.start(behind)
	for range 2 { // and not the next time either
		g.saysWayOut("without its file", g.ends(lost), "the log of this server is gone", g.at[lost].dir+"/d")
	}
	if who := g.leader(behind); who != "" {
		t.Errorf("%s leads", who)
	}
	g.start(leader)
	g.awaitLeader(behind)
	count := func() int { return strings.Count(g.must(leader, "squeue", "-h", "-o", "%i"), "\n") + 1 }
	g.wait("all jobs", func() bool { return count() == jobs })

	leader = g.awaitLeader(leader)
	g.must(leader, "muster", "server", "leave", lost)
	g.must(leader, "muster", "node", "revoke", lost)
	if err := errors.Join(os.RemoveAll(g.at[lost].dir+"/d"), os.Mkdir(g.at[lost].dir+"/d", 0o755)); err != nil {
		t.Fatal(err)
	}
	if lost == "s1" { // it founded the cluster
		g.at[lost].args = append(g.at[lost].args, "--join", g.bind(leader), "--token", g.joins["server"])
	}
	g.start(lost)
	g.wait("three voters", func() bool { return g.voters(leader) == 3 })
	g.wait("all jobs there too", func() bool {
		return strings.Count(g.must(lost, "squeue", "-h", "-o", "%i"), "\n")+1 == jobs
	})
}

// TestDamagedFiles: a server whose log or snapshot is damaged says which file it is, and what to do.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "--snapshot-every", "20")
	snapshots := func(name string) []string {
		list, err := filepath.Glob(g.at["s1"].dir + "/d/raft/snapshots/*/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for len(snapshots("state.bin")) == 0 {
		g.must("s1", "sbatch", "-H", "--wrap", "true")
	}
	d := g.at["s1"]
	d.stop()
	raft, saved := d.dir+"/d/raft", d.dir+"/saved"
	if err := os.CopyFS(saved, os.DirFS(raft)); err != nil {
		t.Fatal(err)
	}
	db := raft + "/raft.db"
	size := func() int64 { // of which at least half is in use: the file is doubled when it is full
		info, err := os.Stat(db)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	all := func(name string, spoil func(string) error) (err error) {
		for _, f := range snapshots(name) {
			err = errors.Join(err, spoil(f))
		}
		return err
	}
	for _, c := range []struct {
		name  string
		spoil func() error
		word  string
	}{
		{"raft.db overwritten behind its start", func() error { return overwrite(db, 9000, size()-9000) }, "raft.db"},
		{"raft.db cut to a third", func() error { return os.Truncate(db, size()/3) }, "raft.db"},
		{"raft.db overwritten as a whole", func() error { return overwrite(db, 0, size()) }, "raft.db"},
		{
			"meta.json empty",
			func() error { return all("meta.json", func(f string) error { return os.Truncate(f, 0) }) },
			"meta.json",
		},
		{
			"meta.json overwritten",
			func() error { return all("meta.json", func(f string) error { return overwrite(f, 0, 50) }) },
			"meta.json",
		},
		{
			"snapshot cut",
			func() error { return all("state.bin", func(f string) error { return os.Truncate(f, 100) }) },
			"snapshots",
		},
		{
			"snapshot overwritten",
			func() error { return all("state.bin", func(f string) error { return overwrite(f, 100, 1000) }) },
			"snapshots",
		},
		{"snapshots removed", func() error { return os.RemoveAll(raft + "/snapshots") }, "no snapshot reaches"},
	} {
		if err := errors.Join(os.RemoveAll(raft), os.CopyFS(raft, os.DirFS(saved)), c.spoil()); err != nil {
			t.Fatal(err)
		}
		g.saysWayOut(c.name, g.ends("s1"), "the log of this server is damaged", c.word)
	}
	if err := errors.Join(os.RemoveAll(raft), os.CopyFS(raft, os.DirFS(saved))); err != nil {
		t.Fatal(err)
	}
	g.start("s1")
	if out := g.must("s1", "squeue", "-h", "-o", "%i"); out == "" {
		t.Error(fmt.Sprint("what was whole is not there: ", out))
	}
}
