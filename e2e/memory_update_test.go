package e2e

import (
	"strings"
	"testing"
)

// memoryJob is a script that uses more than 100 MB when it has 400, and again when it has 60.
const memoryJob = `#!/bin/sh
limit() {
	for at in $(sed -n 's|^[0-9]*:memory:|/sys/fs/cgroup/memory|p; s|^0::|/sys/fs/cgroup|p' /proc/self/cgroup); do
		cat ${at%/*}/memory.limit_in_bytes ${at%/*}/memory.max 2>/dev/null
	done
}
await() { until [ "$(limit)" = $(($1 << 20)) ]; do sleep .1; done; }
await 60; echo begins
await 400; ` + eats + `; echo went on
await 60; (sleep 0; ` + eats + `; echo never)
`

// TestMemoryUpdate: the processes of a running job may use what scontrol update gives it, and no more than what it
// leaves; history has a record for each amount.
func TestMemoryUpdate(t *testing.T) {
	t.Parallel()
	d := startMemoryDev(t)
	d.write("job.sh", memoryJob)
	id := d.must("sbatch", "--parsable", "--mem=60", "-o", d.dir+"/out", d.dir+"/job.sh")
	said := func(text string) {
		t.Helper()
		d.wait("the job to say "+text, func() bool { return strings.Contains(d.soFar("out"), text) })
	}
	said("begins\n")
	d.wait("the servers to know that it runs", func() bool { // the script begins before its node has confirmed it
		_, errs, _ := d.run("scontrol", "update", "jobid="+id, "minmemorynode=0")
		return !strings.Contains(errs, "no longer pending")
	})
	for _, key := range []string{"minmemorynode=0", "minmemorycpu=100", "minmemorynode=1T"} {
		_, errs, code := d.run("scontrol", "update", "jobid="+id, key)
		if code != 1 || slurmWords(errs) != "Memory required by task is not available for job "+id+"\n" {
			t.Errorf("%s: %d %q", key, code, errs)
		}
	}
	d.must("scontrol", "update", "jobid="+id, "minmemorynode=400")
	said("went on\n")
	d.must("scontrol", "update", "jobid="+id, "minmemorynode=60")
	records := func() string { return d.must("sacct", "-nXP", "-j", id, "-o", "State,ReqMem,AllocTRES") }
	d.wait("its end", func() bool { return strings.Contains(records(), "OUT_OF_MEMORY") })
	got := records()
	if strings.Contains(d.read("out"), "never") {
		t.Errorf("it used more than it was left:\n%s", d.read("out"))
	}
	want := []string{"RESIZING|60M", "RESIZING|400M", "OUT_OF_MEMORY|60M"}
	for i, line := range strings.Split(strings.TrimSpace(got), "\n") {
		mem := strings.TrimPrefix(want[min(i, 2)], strings.Split(line, "|")[0]+"|")
		if i > 2 || !strings.HasPrefix(line, want[i]) || !strings.Contains(line, ",mem="+mem+",") {
			t.Errorf("history has\n%s", got)
		}
	}
}
