package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScrontab has a job of a crontab wait for its time, begin under one number again after it has run, and be
// commented out once it is ended.
func TestScrontab(t *testing.T) {
	off := startDev(t, "--hollow", "1x4c8g", "--hollow-exec")
	if _, errs, code := off.run("scrontab", "-l"); code != 1 || slurmWords(errs) != "scrontab: fatal: scrontab is disabled on this cluster\n" {
		t.Errorf("a site without scrontab: %d %s", code, errs)
	}
	file := filepath.Join(t.TempDir(), "slurm.conf")
	conf := "ClusterName=c\nScronParameters=enable\nPartitionName=main Nodes=ALL Default=YES\n"
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", file)
	out := t.TempDir() + "/cron.out"
	text := "# mine\nWHO=world\n#SCRON -t 5 -J hi\n#SCRON -o " + out + "\n0 0 1 1 * echo hello $WHO\n@daily true\n"
	d.write("tab", text)
	if _, errs, code := d.run("scrontab", "tab"); code != 0 {
		t.Fatalf("scrontab: %d %s", code, errs)
	}
	if out, _, _ := d.run("scrontab", "-l"); out != text {
		t.Errorf("scrontab -l: %q", out)
	}
	jobs := d.must("squeue", "-h", "-S", "i", "-o", "%i %j %t %r")
	if jobs != "1 hi PD BeginTime\n2 true PD BeginTime" {
		t.Fatalf("jobs: %q", jobs)
	}
	if out := d.must("scontrol", "show", "job", "1"); !strings.Contains(out, `CronJob=Yes CrontabSpec="0 0 1 1 *"`) || !strings.Contains(out, "-01-01T00:00:00") {
		t.Errorf("show job: %s", out)
	}
	d.must("scontrol", "update", "jobid=1", "starttime=now") // as if the year were over
	d.wait("its run", func() bool { text, _ := os.ReadFile(out); return string(text) == "hello world\n" })
	d.wait("its next time", func() bool {
		return strings.Contains(d.must("squeue", "-h", "-j", "1", "-o", "%t %S"), "-01-01T00:00:00")
	})
	if out := d.must("sacct", "-nXPD", "-j", "1", "-o", "state"); !strings.HasPrefix(out, "COMPLETED") {
		t.Errorf("history: %q", out)
	}
	d.must("scancel", "2")
	if out, _, _ := d.run("scrontab", "-l"); !strings.HasSuffix(out, "$WHO\n#DISABLED: @daily true\n") {
		t.Errorf("after scancel: %q", out)
	}
	for in, want := range map[string]string{
		"* * * * foo\n": "bad day specification", "@foo x\n": "invalid @ line",
		"#SCRON --array=1-3\n@daily x\n": "--array=1-3",
	} {
		if out, errs, code := d.input(in, "scrontab"); code != 1 || !strings.Contains(errs, want) || out != "There are errors in your crontab.\n" {
			t.Errorf("%q: %d %s %s", in, code, out, errs)
		}
	}
	said, _, code := d.input("# a\n#SCRON -p nosuch\n@daily x\n", "scrontab", "-")
	if code != 1 || !strings.HasPrefix(said, "There was an issue with the job submission on lines 2-3\nThe error code return was: Invalid partition name specified\n") {
		t.Errorf("no such partition: %d %s", code, said)
	}
	if _, errs, code := d.as(65534, "scrontab", "-u", "root", "-l"); code != 1 || slurmWords(errs) != "scrontab: fatal: slurm_request_crontab failed: Invalid user id\n" {
		t.Errorf("another user's: %d %s", code, errs)
	}
	d.must("scrontab", "-r")
	if out := d.must("squeue", "-h"); out != "" {
		t.Errorf("after scrontab -r: %q", out)
	}
}
