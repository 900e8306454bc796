package e2e

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// says calls a front-end and wants exactly this of it: what it prints, and its exit code if that is not 0.
func (d *dev) says(t *testing.T, uid uint32, want string, name string, args ...string) {
	t.Helper()
	out, errs, code := d.as(uid, name, args...)
	got := strings.TrimSuffix(out+slurmWords(errs), "\n")
	if (code == 0) != !strings.HasPrefix(want, "!") || got != strings.TrimPrefix(want, "!") {
		t.Errorf("%s %q: exit code %d\n got %q\nwant %q", name, args, code, got, strings.TrimPrefix(want, "!"))
	}
}

// TestReservations makes, changes, uses and deletes reservations, with the words of Slurm 22.05.
func TestReservations(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("root only: it acts as another user")
	}
	d := startDev(t, "--hollow", "4x4c8g", "--hollow-exec")
	control := func(want string, args ...string) { t.Helper(); d.says(t, 0, want, "scontrol", args...) }
	const none = ".  No reservation created."
	control("No reservations in the system", "show", "res")
	control("!scontrol: error: A start time must be given"+none, "create", "res")
	control("!scontrol: error: An end time or duration must be given"+none, "create", "res", "start=now",
		"user=root", "nodecnt=1")
	control("!scontrol: error: CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified"+none,
		"create", "res", "start=now", "duration=60", "user=root")
	control("!scontrol: error: Either Users/Groups, AllowedPartitions, QOS and/or Accounts must be specified"+none,
		"create", "res", "start=now", "duration=60", "nodecnt=1")
	control("!scontrol: error: Error parsing flags foo"+none, "create", "res", "start=now", "duration=60",
		"nodecnt=1", "user=root", "flags=foo")
	control("!scontrol: error: Unknown parameter bla=3"+none, "create", "res", "start=now", "duration=60",
		"nodecnt=1", "user=root", "bla=3")
	control("!scontrol: error: Invalid duration duration=foo"+none, "create", "res", "start=now",
		"duration=foo", "nodecnt=1", "user=root")
	control("Reservation created: byt", "create", "reservation=byt", "start=now+9hours", "duration=10",
		"user=root", "tres=node=2")
	if out := d.must("scontrol", "-o", "show", "res", "byt"); !strings.Contains(out, " NodeCnt=2 ") {
		t.Errorf("show res byt:\n%s", out)
	}
	control("", "delete", "reservation=byt")
	control("!Error creating the reservation: Invalid time specified", "create", "res",
		"start=2020-01-01T00:00", "duration=60", "nodecnt=1", "user=root")
	control("!Error creating the reservation: Invalid user id", "create", "res", "start=now", "duration=60",
		"nodecnt=1", "user=nouser_x")
	control("!Error creating the reservation: Invalid group id", "create", "res", "start=now",
		"duration=60", "nodecnt=1", "group=nogroup_x")
	control("!Invalid time specification (pos=0): abc\nscontrol: error: Invalid start time start=abc"+none,
		"create", "res", "start=abc", "duration=60", "nodecnt=1", "user=root")
	control("!Error creating the reservation: Invalid node name specified", "create", "res", "start=now",
		"duration=60", "nodes=nosuch", "user=root")
	control("Reservation created: root_1", "create", "reservation", "starttime=now+60minutes",
		"duration=120", "users=root", "nodecnt=2", "flags=maint,ignore_jobs")
	control("Reservation created: r1", "create", "res", "reservationname=r1", "start=now", "duration=10",
		"user=root", "nodes=node-003", "flags=overlap")
	control("!Error creating the reservation: Duplicate reservation name", "create", "res",
		"reservationname=r1", "start=now", "duration=10", "user=root", "nodes=node-003")
	control("Reservation created: r2", "create", "reservation=r2", "start=now+1hour", "duration=10",
		"user=root", "nodes=node-004")
	control("!Error creating the reservation: Requested reservation overlaps with another reservation",
		"create", "res", "reservationname=r3", "start=now+1hour", "duration=10", "user=root",
		"nodes=node-004")
	control("!Error updating the reservation: Requested reservation is invalid\n"+
		"slurm_update error: Requested reservation is invalid",
		"update", "reservation=nosuch", "duration=3")
	control("Reservation updated.", "update", "reservationname=r2", "duration=2:00:00")
	control("Reservation updated.", "update", "reservationname=r2", "flags+=flex")
	control("!Error updating the reservation: Reservation request lacks users, groups or accounts\n"+
		"slurm_update error: Reservation request lacks users, groups or accounts",
		"update", "reservationname=r2", "users=")
	control("!delete_reservation reservation=nosuch: Requested reservation is invalid", "delete", "reservation=nosuch")
	d.says(t, 1, "!Error creating the reservation: Invalid user id", "scontrol", "create", "res",
		"start=now", "duration=1", "nodecnt=1", "users=root")
	d.says(t, 1, "!delete_reservation reservationname=r1: Invalid user id", "scontrol", "delete", "reservationname=r1")
	out := d.must("scontrol", "-o", "show", "res", "r2")
	if _, rest, _ := strings.Cut(out, " Duration="); !strings.HasPrefix(rest, "02:00:00 Nodes=node-004 "+
		"NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=(null) Flags=FLEX,SPEC_NODES TRES=cpu=4 Users=root "+
		"Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a "+
		"MaxStartDelay=(null)") {
		t.Errorf("show res r2:\n%s", out)
	}
	if out := d.must("sinfo", "-T"); !strings.HasPrefix(out, "RESV_NAME     STATE           "+
		"START_TIME             END_TIME     DURATION  NODELIST\n"+
		"r1           ACTIVE  ") || !strings.Contains(out, "\nroot_1     INACTIVE  ") {
		t.Errorf("sinfo -T:\n%s", out)
	}
	if out := d.must("sinfo", "-h", "-N", "-o", "%N %t"); !strings.Contains(out, "node-003 resv") {
		t.Errorf("states: %s", out)
	}

	d.says(t, 0, "!sbatch: error: Batch job submission failed: Requested reservation is invalid", "sbatch",
		"--reservation=nosuch", "--wrap", "true")
	d.says(t, 1, "!sbatch: error: Batch job submission failed: Access denied to requested reservation",
		"sbatch", "--reservation=r1", "--wrap", "true")
	d.says(t, 0,
		"!sbatch: error: Batch job submission failed: Requested node configuration is not available",
		"sbatch", "--reservation=r1", "-N2", "--wrap", "true")
	d.says(t, 0,
		"!sbatch: error: Problem using reservation\n"+
			"sbatch: error: Batch job submission failed: Requested node configuration is not available",
		"sbatch", "--reservation=r1", "-w", "node-001", "--wrap", "true")
	d.says(t, 0, "!allocation failure: Requested reservation is invalid", "sbatch", "--test-only",
		"--reservation=r1", "-w", "node-001", "--wrap", "true")
	inside := d.must("sbatch", "--parsable", "--reservation=r1", "-t5", "-o", "/dev/null", "--wrap", "sleep 600")
	outside := d.must("sbatch", "--parsable", "-w", "node-003", "-t", "30", "-o", "/dev/null", "--wrap", "true")
	early := d.must("sbatch", "--parsable", "--reservation=root_1", "-t5", "-o", "/dev/null", "--wrap", "true")
	long := d.must("sbatch", "--parsable", "-N2", "-w", "node-[001-002]", "-t", "120", "-o", "/dev/null",
		"--wrap", "true")
	for id, want := range map[string]string{inside: "R None r1",
		outside: "PD ReqNodeNotAvail, May be reserved for other job (null)", early: "PD Reservation root_1",
		long: "PD ReqNodeNotAvail, May be reserved for other job (null)"} {
		d.wait("job "+id+" to be "+want,
			func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%t %r %v") == want })
	}
	if out := d.must("scontrol", "-o", "show", "job", inside); !strings.Contains(out, " NodeList=node-003 ") || !strings.Contains(out, " Reservation=r1 ") {
		t.Errorf("a job inside: %s", out)
	}
	control("!delete_reservation reservationname=r1: Requested reservation is in use", "delete", "reservationname=r1")
	d.must("scontrol", "update", "jobid="+long, "timelimit=50")
	d.wait("the shorter job to run",
		func() bool { return strings.HasPrefix(d.must("sacct", "-nXP", "-j", long, "-o", "state"), "COMPLETED") })
	control("Reservation updated.", "update", "reservationname=r1", "endtime=now+1") // seconds
	d.wait("the job inside to be ended with it",
		func() bool { return d.must("sacct", "-nXP", "-j", inside, "-o", "state") == "TIMEOUT" })
	d.wait("the job outside to run",
		func() bool { return d.must("sacct", "-nXP", "-j", outside, "-o", "state") == "COMPLETED" })
	d.must("scancel", early)
	control("", "delete", "reservation", "root_1")
	control("", "delete", "reservationname=r2")
	control("No reservations in the system", "show", "res")
}

// TestReservedCores: a reservation has cores of a node; its jobs use these alone, and others the rest; reports
// count them.
func TestReservedCores(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x16c64g", "--hollow-exec")
	d.wait("two nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "2" })
	control := func(want string, args ...string) { t.Helper(); d.says(t, 0, want, "scontrol", args...) }
	create := func(want, name string, more ...string) {
		t.Helper()
		control(want, append([]string{
			"create", "reservation", "reservationname=" + name, "users=root", "starttime=now",
			"duration=30",
		}, more...)...)
	}
	create("!Error creating the reservation: Core count for reservation node list is not consistent!", "c",
		"nodes=node-001,node-002", "corecnt=4")
	create("!Error creating the reservation: CPU count specification invalid", "c", "corecnt=4", "flags=replace")
	create("!Note, unless nodes are directly requested a reservation must exist in a single partition.\n"+
		"If no partition is requested the default partition is assumed.\n"+
		"Error creating the reservation: Requested nodes are busy", "c", "corecnt=33")
	create("!scontrol: error: Invalid core count abc", "c", "corecnt=abc")
	create("Reservation created: c", "c", "corecnt=4")
	create("Reservation created: e", "e", "tres=cpu=3,node=2")
	create("!Error creating the reservation: Requested reservation overlaps with another reservation", "w",
		"nodes=node-001")
	const fixed = "Core-based reservation can not be updated"
	for _, change := range []string{"corecnt=6", "nodecnt=2", "nodes=node-002", "tres=cpu=7"} {
		control("!Error updating the reservation: "+fixed+"\nslurm_update error: "+fixed, "update",
			"reservationname=c", change)
	}
	control("Reservation updated.", "update", "reservationname=c", "duration=60")
	for name, want := range map[string]string{
		"c": "Nodes=node-001 NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=main Flags=   NodeName=node-001 " +
			"CoreIDs=0-3 TRES=cpu=4 ",
		"e": "Nodes=node-[001-002] NodeCnt=2 CoreCnt=3 Features=(null) PartitionName=main Flags=   " +
			"NodeName=node-001 CoreIDs=4-5   NodeName=node-002 CoreIDs=0 TRES=cpu=3 ",
	} {
		if out := d.must("scontrol", "-o", "show", "res", name); !strings.Contains(out, want) {
			t.Errorf("show res %s lacks %q:\n%s", name, want, out)
		}
	}
	expect(t, "states", d.must("sinfo", "-h", "-N", "-o", "%N %t"), "node-001 resv\nnode-002 resv")

	job := func(args ...string) string {
		return d.must("sbatch", append([]string{
			"--parsable", "-t5", "-o", "/dev/null",
		}, append(args, "--wrap", "sleep 600")...)...)
	}
	in, out := job("-n4", "--reservation=c"), job("-n10", "-w", "node-001")
	late, more, whole := job("-n1", "--reservation=c"), job("-n1", "-w", "node-001"), job("-N1", "--exclusive", "-w", "node-002")
	const kept = "PD ReqNodeNotAvail, May be reserved for other job"
	for id, want := range map[string]string{
		in: "R None", out: "R None", late: "PD Resources", more: kept, whole: kept,
	} {
		d.wait("job "+id+" to be "+want, func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%t %r") == want })
	}
	for id, want := range map[string]string{in: "CPU_IDs=0-3 ", out: "CPU_IDs=6-15 "} {
		if out := d.must("scontrol", "-d", "show", "job", id); !strings.Contains(out, want) {
			t.Errorf("job %s lacks %s:\n%s", id, want, out)
		}
	}
	d.must("scancel", in, out, more, whole)
	d.wait("the next job inside to run", func() bool { return d.must("squeue", "-h", "-j", late, "-o", "%t") == "R" })
	d.must("scancel", late)
	d.wait("all to be over", func() bool { return d.must("squeue", "-h") == "" })
	d.wait("history to have them", func() bool {
		return d.must("sacctmgr", "-nP", "show", "reservation", "format=name,tres") == "c|cpu=4\ne|cpu=3"
	})
	control("", "delete", "reservationname=c")
	control("", "delete", "reservationname=e")
}

// TestReservedGPUs: a reservation has GPUs of nodes and some of their cores; its jobs use these alone, and others the
// rest; reports count them. show prints the lines of Slurm 26.05.
func TestReservedGPUs(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x16c64g8gpu:h100", "--hollow-exec")
	d.wait("two nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "2" })
	control := func(want string, args ...string) { t.Helper(); d.says(t, 0, want, "scontrol", args...) }
	create := func(want, name string, more ...string) {
		t.Helper()
		control(want, append([]string{
			"create", "reservation", "reservationname=" + name, "users=root", "starttime=now",
			"duration=30",
		}, more...)...)
	}
	const failed = "!Error creating the reservation: "
	create(failed+"node gpu-node-001 has 8 GPUs, not the 9 that are to be reserved per node; ask for fewer or leave "+
		"the node out", "g", "nodes=gpu-node-001", "trespernode=gres/gpu=9")
	create(failed+"node gpu-node-001 has 0 a100 GPUs (its types: h100); leave it out", "g", "nodes=gpu-node-001",
		"tres=gres/gpu:a100=1")
	create("!scontrol: error: TRES type 'gres/foo' not supported with reservations", "g", "nodecnt=1", "tres=gres/foo=1")
	create("Reservation created: g", "g", "nodes=gpu-node-001", "tres=cpu=4,gres/gpu:h100=6")
	create("!Note, unless nodes are directly requested a reservation must exist in a single partition.\n"+
		"If no partition is requested the default partition is assumed.\n"+
		"Error creating the reservation: Requested nodes are busy", "h", "nodes=gpu-node-001", "trespernode=gres/gpu=3")
	create("Reservation created: h", "h", "nodecnt=2", "trespernode=cpu=1,gres/gpu=2")
	control("!scontrol: error: GPUs of a reservation cannot be changed: tres=gres/gpu=2; delete it and create another."+
		"  No reservation update.\nslurm_update error: No error", "update", "reservationname=g", "tres=gres/gpu=2")
	control("Reservation updated.", "update", "reservationname=g", "duration=60")
	for name, want := range map[string]string{
		"g": " TRES=cpu=4,gres/gpu:h100=6,gres/gpu=6 ", "h": " TRES=cpu=2,gres/gpu=4 ",
	} {
		if out := d.must("scontrol", "-o", "show", "res", name); !strings.Contains(out, want) {
			t.Errorf("show res %s lacks %q:\n%s", name, want, out)
		}
	}
	const tres = `"tres": "cpu=4,gres/gpu:h100=6,gres/gpu=6"`
	if out := d.must("scontrol", "--json", "show", "res", "g"); !strings.Contains(out, tres) {
		t.Errorf("JSON lacks the GPUs:\n%s", out)
	}

	job := func(args ...string) string {
		return d.must("sbatch", append([]string{
			"--parsable", "-t5", "-o", "/dev/null",
		}, append(args, "--wrap", "sleep 600")...)...)
	}
	in := job("--gres=gpu:6", "--reservation=g")
	late := job("--gres=gpu:1", "--reservation=g")
	out := job("--gres=gpu:1", "-w", "gpu-node-001")
	rest := job("--gres=gpu:6", "-w", "gpu-node-002")
	const kept = "PD ReqNodeNotAvail, May be reserved for other job"
	for id, want := range map[string]string{in: "R None", late: "PD Resources", out: kept, rest: "R None"} {
		d.wait("job "+id+" to be "+want, func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%t %r") == want })
	}
	d.must("scancel", in, late, out, rest)
	d.wait("all to be over", func() bool { return d.must("squeue", "-h") == "" })
	d.wait("history to have them", func() bool {
		return d.must("sacctmgr", "-nP", "show", "reservation", "format=name,tres") ==
			"g|cpu=4,gres/gpu:h100=6,gres/gpu=6\nh|cpu=2,gres/gpu=4"
	})
	control("", "delete", "reservationname=g")
	control("", "delete", "reservationname=h")
}

// TestReservedLicenses: licenses are reserved as Slurm does it; a time of a reservation that repeats is skipped; a
// node that fails is replaced.
func TestReservedLicenses(t *testing.T) {
	t.Parallel()
	conf := writeFile(t, "slurm.conf", "ClusterName=c\nLicenses=lic:10\nPartitionName=train Nodes=ALL Default=YES\n")
	d := startDev(t, "--conf", conf, "--hollow", "4x16c64g")
	d.wait("four nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "4" })
	create := []string{"create", "reservation", "users=root", "starttime=now", "duration=30"}
	if out, errs, code := d.run("scontrol", append(create, "licenses=lic:4", "reservationname=l1")...); code != 1 || out+errs != "Error creating the reservation: Invalid node name specified\n" {
		t.Errorf("licenses without any_nodes: %d %q", code, out+errs)
	}
	if out, errs, code := d.run("scontrol", append(create, "licenses=lic:11", "flags=any_nodes", "reservationname=l1")...); code != 1 {
		t.Errorf("more licenses than there are: %d %q", code, out+errs)
	}
	d.must("scontrol", append(create, "licenses=lic:4", "flags=any_nodes", "reservationname=l2")...)
	text := d.must("scontrol", "show", "res", "l2")
	for _, want := range []string{
		"Nodes=(null) NodeCnt=0 CoreCnt=0 Features=(null) PartitionName=(null) Flags=ANY_NODES\n",
		"TRES=(null)\n", "Licenses=lic:4 State=ACTIVE",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("show lacks %q:\n%s", want, text)
		}
	}
	expect(t, "licenses", d.must("scontrol", "show", "lic"),
		"LicenseName=lic\n    Total=10 Used=0 Free=10 Reserved=4 Remote=no")
	many := d.must("sbatch", "--parsable", "-L", "lic:7", "-t5", "-o", "/dev/null", "--wrap", "sleep 60")
	own := d.must("sbatch", "--parsable", "-L", "lic:4", "--reservation=l2", "-t5", "-o", "/dev/null",
		"--wrap", "sleep 60")
	d.wait("the job in it", func() bool { return d.must("squeue", "-h", "-j", own, "-o", "%T") == "RUNNING" })
	expect(t, "another", d.must("squeue", "-h", "-j", many, "-o", "%T %r"), "PENDING Licenses")

	d.must("scontrol", "create", "reservation", "users=root", "starttime=now+1hour", "duration=30",
		"nodecnt=1", "flags=daily", "reservationname=d1")
	begins := func() time.Time {
		m := regexp.MustCompile(`StartTime=(\S+)`).FindStringSubmatch(d.must("scontrol", "show", "res", "d1"))
		at, err := time.Parse("2006-01-02T15:04:05", m[1])
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	was := begins()
	d.must("scontrol", "update", "reservationname=d1", "skip")
	if now := begins(); now.Sub(was) != 24*time.Hour {
		t.Errorf("skipped from %s to %s", was, now)
	}
	if out, errs, code := d.run("scontrol", "update", "reservationname=l2", "skip"); code != 1 || !strings.Contains(out+errs, "Reservation given is not skipable, try deleting instead") {
		t.Errorf("skip of one that does not repeat: %d %q", code, out+errs)
	}

	d.must("scontrol", "create", "reservation", "users=root", "starttime=now+2hours", "duration=30",
		"nodecnt=2", "flags=replace_down", "reservationname=r")
	nodes := func() string {
		return regexp.MustCompile(` Nodes=(\S+) `).FindStringSubmatch(d.must("scontrol", "show", "res", "r"))[1]
	}
	first := nodes()
	lost, _, _ := strings.Cut(d.must("scontrol", "show", "hostnames", first), "\n")
	d.must("scontrol", "update", "nodename="+lost, "state=drain", "reason=broken")
	d.wait("another node instead of "+lost, func() bool {
		list := strings.Fields(d.must("scontrol", "show", "hostnames", nodes()))
		return len(list) == 2 && !slices.Contains(list, lost)
	})
}

// TestMaxStartDelay: a job that asks for a warning has reserved nodes until a job of the reservation wants them,
// gets its signal then, and comes back afterwards.
func TestMaxStartDelay(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec")
	d.wait("a node", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	d.must("scontrol", "create", "reservation", "reservationname=r", "users=root", "starttime=now",
		"duration=30", "nodes=node-001", "maxstartdelay=0:02")
	job := func(script string, args ...string) string {
		return d.must("sbatch", append(append([]string{"--parsable", "-t5"}, args...), "--wrap", script)...)
	}
	state := func(id, want string) {
		t.Helper()
		d.wait("job "+id+" to be "+want, func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%t %r") == want })
	}
	said := t.TempDir() + "/said"
	late := job("sleep 600", "-n1", "--signal=R:USR1@3", "-o", "/dev/null")
	lent := job("trap 'echo warned' USR1; echo begun; while :; do sleep .1; done", "-n1",
		"--signal=RB:USR1@2", "-o", said, "--open-mode=append")
	state(lent, "R None")
	state(late, "PD ReqNodeNotAvail, May be reserved for other job")
	d.wait("the script to have begun", func() bool { text, _ := os.ReadFile(said); return string(text) == "begun\n" })
	own := job("sleep 600", "-N1", "--exclusive", "--reservation=r", "-o", "/dev/null")
	d.wait("the other to be told to leave",
		func() bool { return strings.Contains(d.must("muster", "why", own), "1 job is to leave for it: "+lent) })
	state(own, "R None")
	if text, _ := os.ReadFile(said); !strings.HasPrefix(string(text), "begun\nwarned\n") {
		t.Errorf("the job that left says %q", text)
	}
	if out := d.must("scontrol", "-o", "show", "job", lent); !strings.Contains(out, " JobState=PENDING ") || !strings.Contains(out, " Restarts=1 ") {
		t.Errorf("the job that left: %s", out)
	}
	d.must("scancel", own)
	state(lent, "R None")
	d.must("scancel", lent, late)
}
