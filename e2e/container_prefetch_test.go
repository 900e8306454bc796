package e2e

import (
	"strings"
	"testing"
)

// TestContainerPrefetch: the image is there before the job begins, which is CONFIGURING meanwhile and loses none of its
// time. An image that cannot be had ends the job, with the reason; so does who cancels it.
func TestContainerPrefetch(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "slow/tiny:1")
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec")
	d.file(1, "jobs/here", "")
	image := func(name string) string {
		return " --container-prefetch --container-image=" + h.host + "#" + name + " "
	}
	state := func(job string) string { return d.must("squeue", "-h", "-j", job, "-o", "%T") }
	if _, errs, code := d.line(1, "srun --container-prefetch true"); code != 1 ||
		!strings.Contains(errs, "--container-prefetch is of no use without --container-image") {
		t.Errorf("without an image: %d %q", code, errs)
	}

	out, errs, code := d.line(1,
		"cd "+d.dir+"/jobs && sbatch --parsable -o slow -t 1"+image("slow/tiny:1")+"--wrap 'cat /etc/second'")
	job := strings.TrimSpace(out)
	if code != 0 {
		t.Fatal(errs)
	}
	d.wait("the job to get its image", func() bool { return state(job) == "CONFIGURING" })
	d.wait("its end", func() bool { return d.must("squeue", "-h") == "" })
	expect(t, "what the script says", d.read("jobs/slow"), "2\n")

	before := h.blobs
	out, errs, code = d.line(1, "salloc -Q -N2"+image("slow/tiny:1")+"srun cat /etc/second")
	if out != "2\n2\n" || errs != "" || code != 0 {
		t.Errorf("salloc: %d %q %q", code, out, errs)
	}
	if h.blobs != before {
		t.Errorf("the image was got again: %d layers, then %d", before, h.blobs)
	}
	const late = "srun: error: Ignoring --container-prefetch for a job step within an existing job. " +
		"Set it at job allocation time.\n"
	out, errs, _ = d.line(1, "salloc -Q srun"+image("slow/tiny:1")+"cat /etc/second")
	if out != "2\n" || errs != late {
		t.Errorf("within a job: %q %q", out, errs)
	}

	const why = "failed to import docker image: "
	_, refused, code := d.line(1, "srun"+image("lab/none")+"true")
	if code != 1 || !strings.Contains(refused, "srun: error: pyxis: "+why) {
		t.Errorf("srun without the image: %d %q", code, refused)
	}
	out, _, _ = d.line(1, "cd "+d.dir+"/jobs && sbatch --parsable -o none"+image("lab/none")+"--wrap true")
	job = strings.TrimSpace(out)
	d.wait("its end", func() bool { return d.must("squeue", "-h") == "" })
	if got := d.must("sacct", "-nXP", "-j", job, "-o", "State,ExitCode"); got != "FAILED|0:53" {
		t.Errorf("sbatch without the image: %s", got)
	}
	if got := d.must("muster", "why", job); !strings.Contains(got, why) {
		t.Errorf("why: %s", got)
	}

	out, _, _ = d.line(1, "cd "+d.dir+"/jobs && sbatch --parsable -o hang"+image("hang/x")+"--wrap true")
	job = strings.TrimSpace(out)
	d.wait("the registry to be asked", func() bool { return h.hang.Load() > 0 && state(job) == "CONFIGURING" })
	d.must("scancel", job)
	d.wait("the job's end", func() bool { return d.must("squeue", "-h") == "" })
	d.wait("the helper's end", func() bool { return h.hang.Load() == 0 })
}
