package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLintSubmit: what the site's scripts would make of a submission is told field by field, and nothing is
// submitted.
func TestLintSubmit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"slurm.conf": "ClusterName=c\nJobSubmitPlugins=lua\nCliFilterPlugins=cli_filter/lua\n" +
			"PartitionName=main Nodes=ALL Default=YES\nPartitionName=gpu Nodes=ALL\n",
		"job_submit.lua": `function slurm_job_submit(job, parts, uid)
	if job.partition == nil then job.partition = "gpu" end
	if job.comment == "no" then slurm.user_msg("not with this comment") return slurm.ERROR end
	job.time_limit = 90
	return slurm.SUCCESS
end
function slurm_job_modify(job, rec, parts, uid) return slurm.SUCCESS end
`,
		"cli_filter.lua": `function slurm_cli_setup_defaults(o, early) return slurm.SUCCESS end
function slurm_cli_pre_submit(o, n) o["comment"] = "seen" return slurm.SUCCESS end
function slurm_cli_post_submit(n, job, step) return slurm.SUCCESS end
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", filepath.Join(dir, "slurm.conf"))
	d.write("job.sh", "#!/bin/sh\n#SBATCH -t 5\nhostname\n")
	out := d.must("muster", "lint", "--submit", "job.sh")
	for _, want := range []string{
		`cli_filter.lua: comment = "seen", was nil`, `the servers: partition = "gpu", was nil`,
		"the servers: time_limit = 90, was 5", " in partition gpu"} {
		if !strings.Contains(out, want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	if n := strings.Count(out, ", was "); n != 3 {
		t.Errorf("%d changes are told, want 3:\n%s", n, out)
	}
	if out := d.must("squeue", "-h"); out != "" {
		t.Errorf("jobs: %s", out)
	}
	if _, errs, code := d.run("muster", "lint", "--submit", "-p", "nosuch", "job.sh"); code != 1 ||
		!strings.Contains(errs, "it would be refused: Invalid partition name specified") {
		t.Errorf("a wrong partition: %d %s", code, errs)
	}
	if err := os.WriteFile(filepath.Join(dir, "cli_filter.lua"), []byte("x = 1\n"+`function slurm_cli_setup_defaults(o, early) return slurm.SUCCESS end
function slurm_cli_pre_submit(o, n) return slurm.SUCCESS end
function slurm_cli_post_submit(n, job, step) return slurm.SUCCESS end
`), 0o644); err != nil {
		t.Fatal(err)
	}
	d.must("scontrol", "reconfigure")
	if _, errs, code := d.run("muster", "lint", "--submit", "--comment=no", "job.sh"); code != 1 ||
		!strings.Contains(errs, "not with this comment") {
		t.Errorf("what the site refuses: %d %s", code, errs)
	}
}
