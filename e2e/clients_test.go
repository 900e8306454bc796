package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The commands of programs that run beside Slurm, as their sources write them, and what they read of the answers.

// fields splits an answer's lines at a separator and wants so many fields in each.
func fields(t *testing.T, what, answer, sep string, want int) (rows [][]string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimRight(answer, "\n"), "\n") {
		row := strings.Split(line, sep)
		if len(row) != want {
			t.Errorf("%s: %d fields, want %d: %q", what, len(row), want, line)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		t.Errorf("%s: no line", what)
	}
	return rows
}

// matches wants an answer to match a pattern as a whole.
func matches(t *testing.T, what, answer, pattern string) {
	t.Helper()
	if !regexp.MustCompile(`^(?s:` + pattern + `)$`).MatchString(answer) {
		t.Errorf("%s: %q, want %s", what, answer, pattern)
	}
}

// clientJobs is a cluster with a job that runs on a GPU, one that is held and one that has ended.
func clientJobs(t *testing.T) (d *dev, running, held, ended string) {
	d = startDev(t, "--hollow", "2x8c16g4gpu:h100", "--hollow-exec")
	ended = d.must("sbatch", "--parsable", "-J", "done", "-o", "/dev/null", "--wrap", "true")
	d.wait("the job to end", func() bool { return d.must("squeue", "-h", "-t", "CD", "-j", ended, "-o", "%t") == "CD" })
	running = d.must("sbatch", "--parsable", "-J", "train", "--gpus-per-node=2", "-o", "/dev/null",
		"--wrap", "sleep 600")
	d.wait("the job to run", func() bool { return d.must("squeue", "-h", "-j", running, "-o", "%t") == "R" })
	held = d.must("sbatch", "--parsable", "-H", "-J", "later", "-o", "/dev/null", "--wrap", "true")
	return d, running, held, ended
}

// TestSkyPilotPolls: the commands with which SkyPilot follows its jobs and looks at a cluster.
func TestSkyPilotPolls(t *testing.T) {
	t.Parallel()
	d, running, held, _ := clientJobs(t)
	for line, want := range map[string]string{
		"squeue -h --only-job-state --jobs " + running + ` -o "%T"`:                    "RUNNING",
		`squeue --me -h -o "%i" --states pending,running`:                              held + "\n" + running + "|" + running + "\n" + held,
		`squeue -h --name train -o "%T"`:                                               "RUNNING",
		"squeue -h --jobs " + held + ` --states all -o "%r"`:                           "JobHeldUser",
		"squeue -h --jobs " + running + ` -o "%N"`:                                     "gpu-node-00[12]",
		"scontrol show node=gpu-node-001 | grep NodeAddr=":                             ".*NodeAddr=.*NodeHostName=.*",
		`scontrol show config | grep -i "^ProctrackType"`:                              `ProctrackType += proctrack/\w+`,
		`scontrol show config | grep -i "^SelectTypeParameters"`:                       `SelectTypeParameters += \w+`,
		"scontrol show hostnames gpu-node-[001-002]":                                   "gpu-node-001\ngpu-node-002",
		"sacct -j " + running + " --format=State --parsable2 --noheader --allocations": "RUNNING",
		"sacct -j " + running + " --format=End --parsable2 --noheader --allocations":   "Unknown",
	} {
		matches(t, line, strings.TrimSuffix(d.shell(line), "\n"), want)
	}
	list := d.must("squeue", "-h", "--states=running,completing", "-o", "%i\x1f%j\x1f%u\x1f%N\x1f%b")
	jobs := fields(t, "squeue", list, "\x1f", 5)
	matches(t, "the GPUs of a job", jobs[0][4], `gres[/:]gpu(:h100)?:2`)
	nodes := d.must("sinfo", "-h", "--Node", "-o", "%N\x1f%t\x1f%G\x1f%c\x1f%m\x1f%P")
	for _, row := range fields(t, "sinfo", nodes, "\x1f", 6) {
		matches(t, "GPUs of a node", row[2], `gpu:(h100:)?4.*`)
		for _, number := range row[3:5] {
			if _, err := strconv.Atoi(number); err != nil {
				t.Errorf("%q is not a number", number)
			}
		}
		matches(t, "the default partition", row[5], `main\*`)
	}
	for _, line := range strings.Split(d.must("scontrol", "show", "partitions", "-o"), "\n") {
		matches(t, "a partition", line, `PartitionName=\S+ .*Default=YES.* DefaultTime=\S+ .*MaxTime=\S+ .*`)
	}
	for _, line := range strings.Split(d.must("scontrol", "show", "node", "-o"), "\n") {
		matches(t, "a node", line, `NodeName=\S+ .*CPUTot=8 .*`)
	}
	d.must("scancel", "--name", "train", "--signal", "TERM", "--full")
	d.wait("the job to be gone", func() bool {
		return d.must("squeue", "-h", "--only-job-state", "--jobs", running, "-o", "%T") != "RUNNING"
	})
}

// monitorFields are those that GCM asks of squeue -O.
const monitorFields = "TRES-PER-NODE MINCPUS JOBARRAYID JOBID NAME TIMELIMIT MINMEMORY COMMAND PRIORITY STATE USERNAME " +
	"NUMCPUS NUMNODES TIMELEFT TIMEUSED NODELIST DEPENDENCY EXCNODES STARTTIME SUBMITTIME ELIGIBLETIME ACCRUETIME " +
	"PENDINGTIME COMMENT PARTITION ACCOUNT QOS REASON TRES-ALLOC RESERVATION REQUEUE FEATURE RESTARTCNT SCHEDNODES"

// portalFields are those that Open OnDemand asks of squeue -O.
const portalFields = "Account JobID BatchHost MinCpus NumCPUs MinTmpDisk NumNodes EndTime Dependency Feature ArrayJobID " +
	"GroupName GroupID OverSubscribe Sockets JobArrayID Cores Name Threads Comment ArrayTaskID TimeLimit TimeLeft " +
	"MinMemory TimeUsed ReqNodes NodeList Command Contiguous QOS Partition PriorityLong Reason StartTime StateCompact " +
	"State UserName UserID Reservation SubmitTime WCKey Licenses ExcNodes CoreSpec Nice SchedNodes SCT WorkDir " +
	"tres-alloc tres-per-node"

// delimited writes fields for -O, each with a delimiter behind it.
func delimited(names, delimiter string) string {
	return strings.ReplaceAll(names, " ", ":"+delimiter+",") + ":" + delimiter + ","
}

// TestMonitorColumns: the columns that GCM, a monitor of GPU clusters, reads.
func TestMonitorColumns(t *testing.T) {
	t.Parallel()
	d, running, _, _ := clientJobs(t)
	n := len(strings.Fields(monitorFields))
	rows := fields(t, "squeue", d.must("squeue", "--all", "-O", delimited(monitorFields, "|"), "--noheader"), "|", n+1)
	byName := map[string]string{}
	for _, row := range rows {
		if row[3] == running {
			for i, name := range strings.Fields(monitorFields) {
				byName[name] = row[i]
			}
		}
	}
	for name, want := range map[string]string{
		"TRES-PER-NODE": `gres[/:]gpu:2`, "NAME": "train", "STATE": "RUNNING", "NUMNODES": "1",
		"NODELIST": `gpu-node-00\d`, "PARTITION": "main", "TRES-ALLOC": `cpu=1,.*gres/gpu=2.*`,
		"EXCNODES": "", "REQUEUE": "[01]",
	} {
		matches(t, name, byName[name], want)
	}
	all := strings.Split(d.must("sinfo", "--all", "-N", "-o", "%all"), "\n")
	head := strings.Split(all[0], "|")
	for _, line := range all[1:] {
		if got := len(strings.Split(line, "|")); got != len(head) {
			t.Errorf("sinfo %%all: %d fields below %d heads", got, len(head))
		}
	}
	for _, want := range []string{"NODELIST", "PARTITION", "CPUS(A/I/O/T)", "FREE_MEM", "MEMORY", "GRES", "USER", "REASON",
		"TIMESTAMP", "ACTIVE_FEATURES", "STATE", "RESERVATION"} {
		if !strings.Contains("|"+strings.ReplaceAll(all[0], " ", "")+"|", "|"+want+"|") {
			t.Errorf("sinfo %%all has no %s: %s", want, all[0])
		}
	}
	const nodes = "name cpusstate cpus gres gresused nodelist statelong partitionname"
	fields(t, "sinfo", d.must("sinfo", "--all", "-N", "-O", delimited(nodes, "256|"), "--noheader"), "|", 9)
	matches(t, "sdiag", d.must("sdiag", "--all", "--json"), `.*"server_thread_count": \d+.*`)
	for _, line := range []string{"sacctmgr show qos -P", "sacctmgr show user format=User -nP",
		"sacct -P -s running,r --delimiter '|' -a -o all --duplicates --noconvert", "scontrol show partition -a -o",
		"scontrol show config", "yes N | sacctmgr show runaway -P"} {
		if strings.TrimSpace(d.shell(line)) == "" {
			t.Errorf("%s prints nothing", line)
		}
	}
}

// TestPortalColumns: the columns and commands of Open OnDemand.
func TestPortalColumns(t *testing.T) {
	t.Parallel()
	d, running, held, ended := clientJobs(t)
	name := d.must("sacctmgr", "-nP", "show", "cluster", "format=cluster")
	n := len(strings.Fields(portalFields))
	const unit = "\x1f"
	answer := d.must("squeue", "-M", name, "--all", "--states=all", "--noconvert", "-O", delimited(portalFields, unit))
	_, answer, _ = strings.Cut(answer, unit+"\n") // as the portal does: what -M writes and the heads
	rows := fields(t, "squeue", answer, unit, n+1)
	got := map[string]string{}
	for _, row := range rows {
		got[row[1]] = fmt.Sprint(row[17], " ", row[34], " ", row[49])
	}
	for id, want := range map[string]string{
		running: "train R gres[/:]gpu:2", held: "later PD (N/A)?", ended: "done CD (N/A)?",
	} {
		matches(t, "job "+id, got[id], want)
	}
	matches(t, "sinfo", d.must("sinfo", "-M", name, "-aho", "%F/%C"), `(CLUSTER: .*\n)?\d+/\d+/\d+/2/\d+/\d+/\d+/16`)
	used := d.must("sinfo", "-ahNO", "nodehost:100,gres:512,gresused:512,statelong")
	matches(t, "sinfo", used, `(\S+ +gpu:\S+ +gpu:\S+ +\S+ *\n?){2}`)
	matches(t, "sinfo", d.must("sinfo", "-ho", "\x1e%c\x1f%n\x1f%f"), "(\x1e8\x1fgpu-node-00[12]\x1f\\S+ ?\n?){2}")
	matches(t, "scontrol", d.must("scontrol", "show", "part", "-o"), `.*AllowAccounts=\S+ AllowQos=\S+ .*TRES=\S+.*`)
	const columns = "User,Group,JobId,JobName,Elapsed,ReqMem,AllocCPUS,ReqCPUS,Timelimit,State,TotalCPU,MaxRSS,Partition," +
		"Submit,Start,End,ReqTRES"
	d.wait("history", func() bool { return d.must("sacct", "-n", "-X", "-j", ended) != "" })
	history := d.must("sacct", "-P", "--delimiter", unit, "-n", "--units", "G", "--allocations", "-o", columns)
	fields(t, "sacct", history, unit, 17)
	d.must("scontrol", "release", held)
	d.must("scancel", running)
}

// TestTorchX: the objects that torchx reads of a job, while it runs and when it is over, and NeMo-Run's lines.
func TestTorchX(t *testing.T) {
	t.Parallel()
	d, running, _, ended := clientJobs(t)
	for id, state := range map[string]string{running: "RUNNING", ended: "COMPLETED"} {
		answer := d.must("squeue", "--json", "-t", "all", "-j", id)
		for _, want := range []string{`"job_state"`, state, `"job_resources"`, `"allocated_nodes"|"allocation"`} {
			if !regexp.MustCompile(want).MatchString(answer) {
				t.Errorf("job %s: no %s", id, want)
			}
		}
	}
	matches(t, "squeue --start", d.must("squeue", "--start", "--noheader", "-j", running, "-o", "%i|%S|%T"), "")
	matches(t, "squeue -n", d.must("squeue", "-n", "train", "-h", "-o", "%A"), running)
	d.wait("history", func() bool { return d.must("sacct", "-n", "-X", "-j", ended) != "" })
	head := strings.Split(d.must("sacct", "--parsable2", "-j", ended), "\n")[0]
	matches(t, "sacct's columns", head, `JobID\|JobName\|Partition\|Account\|AllocCPUS\|State\|ExitCode`)
	matches(t, "sacct --json", d.must("sacct", "--json", "-S1970-01-01-00:00:01"), `.*"jobs": \[.*"name": "done".*`)
}
