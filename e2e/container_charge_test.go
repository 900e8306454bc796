package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// groupOf returns the cgroups of the process that fetches an image below a folder of data; or "".
func groupOf(data string) (groups, status string) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		dir := filepath.Dir(file)
		words, _ := os.ReadFile(dir + "/cmdline")
		if !strings.Contains(string(words), "internal\x00image") && !strings.Contains(string(words), "muster-image") {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil || !strings.Contains(parentWords(string(stat)), data) {
			continue
		}
		own, _ := os.ReadFile(dir + "/cgroup")
		state, _ := os.ReadFile(dir + "/status")
		return string(own), string(state)
	}
	return "", ""
}

// parentWords is the command line of the parent of a process, of whose stat this is the text.
func parentWords(stat string) string {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return ""
	}
	words, _ := os.ReadFile("/proc/" + fields[1] + "/cmdline") // it may have ended
	return string(words)
}

// TestImageIsCharged looks where the process runs that fetches a step's image, and what it may do: it is in a group of
// the job, has few capabilities, and gets no others.
func TestImageIsCharged(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	if out, _, _ := d.line(1, "srun cat /proc/self/cgroup"); !strings.Contains(out, "/job_") {
		t.Skip("jobs have no cgroups here")
	}
	go d.line(1, "srun --container-image="+h.host+"#hang/y true")
	var groups, status string
	d.wait("the process", func() bool {
		if h.hang.Load() == 0 {
			return false
		}
		groups, status = groupOf(d.dir)
		return groups != ""
	})
	if !strings.Contains(groups, "/job_") || !strings.Contains(groups, "-image\n") {
		t.Errorf("its groups are %q", groups)
	}
	for _, want := range []string{"CapPrm:\t00000000000000eb\n", "NoNewPrivs:\t1\n"} {
		if !strings.Contains(status, want) {
			t.Errorf("%q is not in its status:\n%s", want, status)
		}
	}
	d.must("scancel", "-u", "daemon")
	d.wait("the job to end", func() bool { return d.must("squeue", "-h") == "" })
	d.wait("its group to be gone", func() bool {
		left, _ := filepath.Glob("/sys/fs/cgroup/*/*/job_*/step_*-image")
		return len(left) == 0
	})
}
