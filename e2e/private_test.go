package e2e

import (
	"strings"
	"testing"
)

// TestPrivateData: users see what Slurm 22.05 shows them with the same PrivateData, in the same words; root sees all.
func TestPrivateData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := dir + "/slurm.conf"
	d := &dev{t: t, dir: dir}
	d.write("slurm.conf",
		"ClusterName=c\nSlurmctldHost=localhost\nPrivateData=jobs,nodes,users,usage,reservations\nNodeName=n[1-2] CPUs=8 RealMemory=16000\nPartitionName=main Nodes=ALL Default=YES\n")
	d = startDev(t, "--conf", conf, "--hollow", "conf", "--hollow-time", "100h")
	const alice, bob = 1, 2
	submit := func(uid uint32) string {
		t.Helper()
		out, errs, code := d.as(uid, "sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "--wrap", "true")
		if code != 0 {
			t.Fatalf("sbatch as %d: %s", uid, errs)
		}
		return strings.TrimSpace(out)
	}
	one, two := submit(alice), submit(bob)
	d.wait("both to run", func() bool { return d.must("squeue", "-h", "-t", "R", "-o", "%i") == one+"\n"+two })
	d.must("scontrol", "create", "reservation", "reservationname=mt", "starttime=now+1hour", "duration=60",
		"nodes=n1", "users=daemon", "flags=ignore_jobs")
	for _, c := range []struct {
		uid  uint32
		line string
		out  string // exactly, if there is no code
		errs string
		code int
	}{
		{alice, "squeue -h -o %i", one + "\n", "", 0},
		{bob, "squeue -h -o %i", two + "\n", "", 0},
		{bob, "squeue -h -o %i -j " + one, "", "slurm_load_jobs error: Invalid job id specified\n", 1},
		{bob, "squeue -h -o %i -j " + one + "," + two, two + "\n", "", 0},
		{bob, "sinfo", "", "slurm_load_node: Access/permission denied\n", 1},
		{bob, "sinfo -N", "", "slurm_load_node: Access/permission denied\n", 1},
		{bob, "scontrol show node n1", "", "slurm_load_node error: Access/permission denied\n", 1},
		{bob, "scontrol show job " + one, "", "slurm_load_jobs error: Invalid job id specified\n", 1},
		{bob, "scontrol show reservation", "No reservations in the system\n", "", 0},
		{bob, "sacct -n -X -a -o jobid%3", " " + strings.Repeat(" ", 2-len(two)) + two + " \n", "", 0},
		{0, "squeue -h -o %i", one + "\n" + two + "\n", "", 0},
		{0, "sinfo -h -o %D", "2\n", "", 0},
	} {
		argv := strings.Fields(c.line)
		out, errs, code := d.as(c.uid, argv[0], argv[1:]...)
		if out != c.out || errs != c.errs || code != c.code {
			t.Errorf("%d: %s: %q %q %d, want %q %q %d", c.uid, c.line, out, errs, code, c.out, c.errs, c.code)
		}
	}
	if out, _, _ := d.as(alice, "scontrol", "show", "reservation"); !strings.Contains(out, "ReservationName=mt") {
		t.Errorf("who may use a reservation sees %q", out)
	}
	if out, errs, code := d.as(bob, "muster", "status"); code != 0 || strings.Contains(out, "nodes ") || !strings.Contains(out, "1 running") {
		t.Errorf("status: %s %s %d", out, errs, code)
	}
}
