package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/acct"
	"dev.muster/cluster"
)

var benchHistory = flag.Int("bench-history", 0,
	"jobs of a month that TestBenchHistory asks muster about, and slurmdbd where SLURM_CONF names a cluster with one")

// The month of the measurement, and who worked in it.
var benchMonth = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

const (
	benchTimes    = 9 // of which the median counts
	benchUsers    = 200
	benchAccounts = 20
	benchFirstUID = 0 // of user000; sacct takes only users the machine has, as lp, 7 everywhere
)

// benchJob makes the next job of the month.
func benchJob(r *rand.Rand, id, of int) *cluster.Job {
	user, size := r.IntN(benchUsers), 1+r.IntN(15)
	apart := benchMonth.AddDate(0, 1, 0).Sub(benchMonth) * 9 / 10 / time.Duration(of) // the last ones end before the month does
	j := &cluster.Job{ID: cluster.JobID(id), Task: cluster.TaskAny, Attempt: 1, Phase: cluster.Ended,
		Outcome:   cluster.Completed,
		Submitted: benchMonth.Add(time.Duration(id) * apart).Truncate(time.Second),
		Spec: &cluster.JobSpec{Name: "train", User: fmt.Sprintf("user%03d", user),
			UID: uint32(benchFirstUID + user), GID: 100, Account: fmt.Sprintf("team%02d", user%benchAccounts),
			QOS: "normal", Partitions: []string{"main"}, WorkDir: "/home/user", Layout: &cluster.Layout{Tasks: size}}}
	j.Eligible, j.Started = j.Submitted, j.Submitted.Add(time.Duration(r.IntN(3600))*time.Second)
	j.Ended = j.Started.Add(time.Duration(1+r.IntN(4*3600)) * time.Second)
	j.Alloc = &cluster.Alloc{Partition: "main",
		Shares: []cluster.Share{{Node: cluster.NodeName(fmt.Sprintf("n%04d", r.IntN(1000))),
			CPUs: cluster.RangeIDSet(0, size*4-1), MemMB: cluster.MemMB(size * 4096),
			GPUs: cluster.RangeIDSet(0, size%8)}}, Types: map[string]int64{"h100": int64(size%8 + 1)}}
	return j
}

// slurmBooks is the MariaDB of a Slurm cluster.
type slurmBooks struct {
	t    *testing.T
	conf map[string]string // of slurmdbd.conf
	name string            // the cluster's
}

// openSlurmBooks finds the database of the cluster of SLURM_CONF; nil says that there is none.
func openSlurmBooks(t *testing.T) *slurmBooks {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("SLURM_CONF")), "slurmdbd.conf"))
	if os.Getenv("SLURM_CONF") == "" || err != nil {
		t.Logf("no slurmdbd is measured: SLURM_CONF names no cluster with a slurmdbd.conf (%v)", err)
		return nil
	}
	b := &slurmBooks{t: t, conf: map[string]string{}}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		b.conf[key] = value
	}
	b.name = strings.Fields(b.call("sacctmgr", "-nP", "show", "cluster", "format=cluster"))[0]
	return b
}

// call runs one of Debian's commands.
func (b *slurmBooks) call(name string, args ...string) string {
	b.t.Helper()
	out, err := exec.Command(filepath.Join("/usr/bin", name), args...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("slurm's %s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// sql runs statements; CLUSTER stands for the cluster's name.
func (b *slurmBooks) sql(text string) string {
	b.t.Helper()
	cmd := exec.Command("mysql", "-N", "-h", b.conf["StorageHost"], "-P", b.conf["StoragePort"], "-u",
		b.conf["StorageUser"], "-p"+b.conf["StoragePass"], b.conf["StorageLoc"])
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(text, "CLUSTER", b.name))
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("mysql: %v\n%s", err, out)
	}
	return string(out)
}

// assocs are the numbers of the users' associations.
func (b *slurmBooks) assocs() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(b.sql("SELECT user, id_assoc FROM CLUSTER_assoc_table WHERE user LIKE 'user%'")) {
		if f := strings.Fields(line); len(f) == 2 {
			out[f[0]] = f[1]
		}
	}
	return out
}

// fill stores the jobs as slurmdbd does, and has it sum them up.
func (b *slurmBooks) fill(jobs []*cluster.Job) {
	assoc := b.assocs()
	if len(assoc) != benchUsers {
		b.t.Fatalf("slurm has %d of %d users", len(assoc), benchUsers)
	}
	var text bytes.Buffer
	text.WriteString("TRUNCATE CLUSTER_job_table;\n")
	for _, of := range []string{"", "assoc_", "wckey_"} {
		for _, grain := range []string{"hour", "day", "month"} {
			fmt.Fprintf(&text, "TRUNCATE CLUSTER_%susage_%s_table;\n", of, grain)
		}
	}
	text.WriteString("SET autocommit=0;\n")
	for i, j := range jobs {
		if i%1000 == 0 {
			text.WriteString("INSERT INTO CLUSTER_job_table (mod_time, account, cpus_req, job_name, id_assoc, id_job, id_qos, id_resv, id_wckey, id_user, id_group, het_job_id, " +
				"het_job_offset, state_reason_prev, mem_req, nodelist, nodes_alloc, node_inx, `partition`, priority, state, timelimit, time_submit, time_eligible, time_start, time_end, work_dir, submit_line, tres_alloc, tres_req) VALUES\n")
		}
		s, cpus, gpus := j.Alloc.Shares[0], j.Alloc.Shares[0].CPUs.Len(), j.Alloc.Types["h100"]
		tres := fmt.Sprintf("1=%d,2=%d,4=1,5=%d,1001=%d,1002=%d", cpus, s.MemMB, cpus, gpus, gpus)
		fmt.Fprintf(&text, "(%d,'%s',%d,'train',%s,%d,1,0,0,%d,100,0,4294967294,0,%d,'%s',1,'0','main',1,3,60,%d,%d,%d,%d,'/home/user','sbatch job.sh','%s','%s')", j.Ended.Unix(), j.Spec.Account, j.Spec.Layout.Tasks,
			assoc[j.Spec.User], j.ID, j.Spec.UID, s.MemMB, s.Node, j.Submitted.Unix(), j.Eligible.Unix(), j.Started.Unix(), j.Ended.Unix(), tres, tres)
		if i%1000 == 999 || i == len(jobs)-1 {
			text.WriteString(";\n")
		} else {
			text.WriteString(",\n")
		}
	}
	from := benchMonth.Unix()
	fmt.Fprintf(&text, "COMMIT; DELETE FROM CLUSTER_event_table WHERE node_name = '';\n"+
		"INSERT INTO CLUSTER_event_table (time_start, time_end, node_name, cluster_nodes, reason, reason_uid, state, tres) VALUES (%d, 0, '', 'n0001', 'Cluster Registered TRES', 0, 0, '1=128000,2=1000000,5=128000');\n"+
		"UPDATE CLUSTER_assoc_table SET creation_time = %d; UPDATE cluster_table SET creation_time = %d;\n"+
		"UPDATE CLUSTER_last_ran_table SET hourly_rollup = %d, daily_rollup = %d, monthly_rollup = %d; COMMIT; ANALYZE TABLE CLUSTER_job_table;\n", from, from, from, from, from, from)
	b.sql(text.String())
}

// addUsers makes the accounts and users of the month.
func addUsers(sacctmgr func(args ...string)) {
	for a := range benchAccounts {
		account := fmt.Sprintf("team%02d", a)
		sacctmgr("-i", "add", "account", account)
		var users []string
		for u := a; u < benchUsers; u += benchAccounts {
			users = append(users, fmt.Sprintf("user%03d", u))
		}
		sacctmgr("-i", "add", "user", strings.Join(users, ","), "account="+account)
	}
}

// median is the middle of some times, in milliseconds.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2]) / float64(time.Millisecond)
}

// TestBenchHistory measures what the same month of jobs costs in muster's history and in slurmdbd's MariaDB, in
// turn, as users ask: whole commands. make bench-history runs it.
func TestBenchHistory(t *testing.T) {
	if *benchHistory == 0 {
		t.Skip("only with -bench-history=JOBS")
	}
	t.Setenv("TZ", "UTC")
	r := rand.New(rand.NewPCG(3, 4))
	jobs := make([]*cluster.Job, *benchHistory)
	for i := range jobs {
		jobs[i] = benchJob(r, i+1, len(jobs))
	}
	d, fileSize := historyServer(t, jobs)
	slurm := openSlurmBooks(t)
	var slurmSize float64
	if slurm != nil {
		addUsers(func(args ...string) { _ = exec.Command("/usr/bin/sacctmgr", args...).Run() }) // they may be there
		began := time.Now()
		slurm.fill(jobs)
		t.Logf("MariaDB took %d rows in %s", len(jobs), time.Since(began).Round(time.Millisecond))
		slurm.rollUp()
		_, _ = fmt.Sscan(slurm.sql("SELECT sum(data_length + index_length) FROM information_schema.tables WHERE table_schema = database() AND (table_name = 'CLUSTER_job_table' OR table_name LIKE 'CLUSTER%usage%')"),
			&slurmSize)
	}
	month := []string{"start=2026-10-01", "end=2026-11-01"}
	questions := []struct {
		name string
		argv []string
	}{
		{"sacct -j ID", []string{"sacct", "-nPX", "-j", fmt.Sprint(len(jobs) / 2)}},
		{
			"sacct, a user's day",
			[]string{"sacct", "-nPX", "-u", fmt.Sprint(benchFirstUID + 7), "-S", "2026-10-14", "-E", "2026-10-15"},
		},
		{
			"sacct, a user's month",
			[]string{"sacct", "-nPX", "-u", fmt.Sprint(benchFirstUID + 7), "-S", "2026-10-01", "-E", "2026-11-01"},
		},
		{
			"sreport cluster utilization, a month",
			append([]string{"sreport", "-nP", "cluster", "utilization"}, month...),
		},
		{
			"sreport AccountUtilizationByUser, a month",
			append([]string{"sreport", "-nP", "cluster", "AccountUtilizationByUser"}, month...),
		},
	}
	t.Logf("%d jobs; bytes a job on disk: muster %.0f, slurmdbd %.0f", len(jobs),
		fileSize/float64(len(jobs)), slurmSize/float64(len(jobs)))
	for _, q := range questions {
		var ours, theirs []time.Duration
		var mine, other string
		for range benchTimes {
			began := time.Now()
			mine = d.must(q.argv[0], q.argv[1:]...)
			ours = append(ours, time.Since(began))
			if slurm != nil {
				began = time.Now()
				other = slurm.call(q.argv[0], q.argv[1:]...)
				theirs = append(theirs, time.Since(began))
			}
		}
		if strings.TrimSpace(mine) == "" {
			t.Errorf("%s: muster answers nothing", q.name)
		}
		if slurm == nil {
			t.Logf("%-42s muster %8.1f ms, %d lines", q.name, median(ours), strings.Count(mine, "\n")+1)
			continue
		}
		if a, b := strings.Count(strings.TrimSpace(mine), "\n"), strings.Count(strings.TrimSpace(other), "\n"); q.argv[0] == "sacct" && a != b {
			t.Errorf("%s: muster answers %d lines, slurm %d", q.name, a+1, b+1)
		}
		t.Logf("%-42s muster %8.1f ms, slurmdbd %8.1f ms, %5.1fx; %d lines, %d", q.name, median(ours),
			median(theirs), median(theirs)/median(ours), strings.Count(mine, "\n")+1,
			strings.Count(other, "\n"))
		if _, a, _ := strings.Cut(strings.SplitN(mine, "\n", 2)[0], "|"); q.argv[0] == "sreport" && !strings.HasPrefix(other, slurm.name+"|"+a+"\n") {
			t.Errorf("%s: the first line of muster is %q, of slurm %.100q", q.name, a, other)
		}
	}
}

// historyServer starts a server that has the jobs in its history, and tells how many bytes the file has.
func historyServer(t *testing.T, jobs []*cluster.Job) (*dev, float64) {
	t.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	db, err := acct.Open(dir+"/d/acct", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	events := []cluster.Event{
		{Node: &cluster.Node{Name: "n0001", Up: true, Inventory: cluster.Inventory{CPUs: 128_000}}, At: benchMonth},
	}
	for _, j := range jobs {
		events = append(events, cluster.Event{Job: j})
	}
	ctx, end := context.WithCancel(context.Background())
	db.Apply(1, events) // the log's first entry is of raft alone
	began := time.Now()
	end()
	if err := db.Run(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("muster's history took %d rows in %s", len(jobs), time.Since(began).Round(time.Millisecond))
	info, err := os.Stat(dir + "/d/acct/history.db")
	if err != nil {
		t.Fatal(err)
	}
	d := startDevAt(t, dir, "--hollow", "1x8c16g")
	addUsers(func(args ...string) { d.must("sacctmgr", args...) })
	return d, float64(info.Size())
}

// rollUp has slurmdbd sum up the month, as its hourly round does.
func (b *slurmBooks) rollUp() {
	b.t.Helper()
	began := time.Now()
	_ = exec.Command("/usr/bin/sacctmgr", "-i", "roll").Run() // it waits 15 minutes at most
	for end := benchMonth.AddDate(0, 1, 0).Unix(); ; time.Sleep(time.Second) {
		var to int64
		if _, _ = fmt.Sscan(b.sql("SELECT least(hourly_rollup, monthly_rollup) FROM CLUSTER_last_ran_table"), &to); to >= end {
			break
		}
	}
	b.t.Logf("slurmdbd summed the month up in %s", time.Since(began).Round(time.Millisecond))
}
