package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// logger makes a program that writes a word and what it is told into a file.
func logger(t *testing.T) (program, log string) {
	t.Helper()
	dir := t.TempDir()
	program, log = filepath.Join(dir, "told"), filepath.Join(dir, "log")
	text := "#!/bin/sh\necho \"$@ by $(id -u)\" >>" + log + "\n"
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(log, 0o666); err != nil {
		t.Fatal(err)
	}
	for p := program; p != "/tmp" && p != "/"; p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return program, log
}

// TestStrigger: programs run when nodes and jobs become what they wait for, with what Slurm tells them, and the words
// are Slurm's.
func TestStrigger(t *testing.T) {
	t.Parallel()
	program, log := logger(t)
	conf := writeFile(t, "slurm.conf",
		"ClusterName=c\nSlurmctldParameters=allow_user_triggers\nPartitionName=main Nodes=ALL Default=YES\n")
	d := startDev(t, "--hollow", "3x4c8g", "--hollow-exec", "--conf", conf)
	told := func(line string) {
		t.Helper()
		d.wait(line, func() bool {
			text, _ := os.ReadFile(log)
			return strings.Contains("\n"+string(text), "\n"+line+"\n")
		})
	}
	nodes := strings.Fields(d.must("sinfo", "-hN", "-o", "%N"))
	d.must("strigger", "--set", "--node", "--down", "--flags=PERM", "--program="+program+" DOWN 'two words'")
	d.must("strigger", "--set", "--node="+nodes[1], "--up", "-p", program+" UP")
	d.must("strigger", "--set", "--reconfig", "-p", program+" CONF")
	d.must("strigger", "--set", "--idle", "--offset=3600", "-p", program+" IDLE")
	d.must("strigger", "--set", "--primary_slurmctld_failure", "--program="+program)
	want := "TRIG_ID RES_TYPE   RES_ID TYPE                                OFFSET USER     FLAGS PROGRAM\n" +
		"      1 node            * down                                     0 root     PERM  " +
		program + " DOWN 'two words'\n" +
		"      2 node      " + nodes[1] + " up                                       0 root           " + program + " UP\n" +
		"      3 node            * reconfig                                 0 root           " + program + " CONF\n" +
		"      4 node            * idle                                  3600 root           " + program + " IDLE\n" +
		"      5 slurmctld       * primary_slurmctld_failure                0 root           " + program
	if out := d.must("strigger", "--get"); out != want {
		t.Errorf("strigger --get:\n%s\nwant\n%s", out, want)
	}
	if out := d.must("strigger", "--get", "-N", "--up"); !strings.HasPrefix(strings.TrimSpace(out), "2 node") {
		t.Errorf("strigger --get --up: %s", out)
	}
	d.must("scontrol", "update", "nodename="+nodes[1]+","+nodes[2], "state=down", "reason=x")
	told("DOWN 'two words' node-[002-003] by 0")
	d.must("scontrol", "update", "nodename="+nodes[1]+","+nodes[2], "state=resume")
	told("UP " + nodes[1] + " by 0")
	d.must("scontrol", "reconfigure")
	told("CONF reconfig by 0")

	job, errs, _ := d.as(65534, "sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 1000")
	if job = strings.TrimSpace(job); job == "" {
		t.Fatal(errs)
	}
	if _, errs, code := d.as(65534, "strigger", "--set", "--fini", "-j", job, "-p", program+" FINI"); code != 0 {
		t.Fatalf("a user's trigger: %d %s", code, errs)
	}
	d.must("strigger", "--set", "--jobid="+job, "--time", "--offset=-86400", "--program="+program+" TIME")
	d.must("scontrol", "update", "jobid="+job, "timelimit=60") // its end is less than a day away
	told("TIME " + job + " by 0")
	d.must("scancel", job)
	told("FINI " + job + " by 65534")
	if out := d.must("strigger", "--get", "-N"); strings.Count(out, "\n") != 2 {
		t.Errorf("left are\n%s", out)
	}
	for _, row := range [...]struct {
		args string
		want string
	}{
		{"--set --down --program=/nosuch", "strigger: error: Invalid --program value, file not found\n"},
		{"--set --down --program=/bin", "strigger: error: Invalid --program value, not regular file\n"},
		{"--set --down --program=rel", `strigger: error: The --program value must start with "/"` + "\n"},
		{"--set --down", "strigger: error: You must specify a --program value\n"},
		{"--set --time --program=/bin/true", "strigger: error: You must specify a --jobid value\n"},
		{"--set --fini -j 4711 --program=/bin/true", "slurm_set_trigger: Invalid job id specified\n"},
		{"--set --up --node=nosuch --program=/bin/true", "slurm_set_trigger: Invalid node name specified\n"},
		{"--set --idle --offset=3600 --program=" + program + "\tIDLE", ""},
		{"--set --flags=foo --reconfig --program=/bin/true", "strigger: error: Invalid flags foo\n"},
		{
			"--set --get",
			"strigger: error: You must use exactly one of the following options: --set, --get or --clear\n",
		},
		{"--clear", "strigger: error: You must specify a --id, --jobid, or --user to clear\n"},
		{"--clear --id=99", "slurm_clear_trigger: No such process\n"},
		{"--clear --user=nosuch", "strigger: error: Invalid user nosuch\n"},
		{"--get --jobid=abc", "strigger: error: Invalid jobid abc\n"},
	} {
		args := strings.Split(row.args, " ")
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "\t", " ")
		}
		if row.want == "" {
			row.want = "slurm_set_trigger: Duplicate event trigger\n"
		}
		if _, errs, code := d.run("strigger", args...); code != 1 || slurmWords(errs) != row.want {
			t.Errorf("strigger %s: %d %q, want %q", row.args, code, errs, row.want)
		}
	}
	if _, errs, code := d.as(65534, "strigger", "--clear", "--id=1"); code != 1 || !strings.Contains(errs, "denied") {
		t.Errorf("another user clears: %d %s", code, errs)
	}
	d.must("strigger", "--clear", "-Q", "--id=99")
	d.must("strigger", "--clear", "--user=root")
	if out := d.must("strigger", "--get"); out != "" {
		t.Errorf("left are\n%s", out)
	}
}

// TestStriggerLead: a trigger outlives the server that took it, and tells that another one leads.
func TestStriggerLead(t *testing.T) {
	t.Parallel()
	program, log := logger(t)
	g := fullGroup(t, 0)
	lead := g.leader("s1")
	other := g.others(lead)[0]
	g.must(other, "strigger", "--set", "-a", "--program="+program)
	g.at[lead].kill()
	g.wait("the program at the new leader", func() bool {
		text, _ := os.ReadFile(log)
		return strings.HasPrefix(string(text), "primary_slurmctld_failure by ")
	})
}
