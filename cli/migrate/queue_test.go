package migrate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// fakeSlurm is a Slurm and a muster. With die above 0, both stop answering at that change: before it takes effect, or
// after it.
type fakeSlurm struct {
	t     *testing.T
	state string // StateSaveLocation
	at    time.Time
	jobs  map[string]*fakeJob
	muster
	step, die int
	after     bool
}

type fakeJob struct {
	dep, kind       string
	held            string // Reason
	admin           string
	submit          time.Time
	eligible, since string
}

// muster has what was submitted, by key.
type muster struct {
	ids    map[string]cluster.JobID
	sent   []api.SubmitRequest
	reject string // a name of jobs
	unsure bool   // it accepts jobs and does not say so
}

var errKilled = errors.New("killed")

func newFake(t *testing.T) *fakeSlurm {
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	f := &fakeSlurm{t: t, at: at, state: t.TempDir(), jobs: map[string]*fakeJob{}}
	f.ids = map[string]cluster.JobID{}
	return f
}

func (f *fakeSlurm) add(id, dep, held string) *fakeJob {
	f.t.Helper()
	at := f.at
	j := &fakeJob{dep: dep, kind: "1", held: held, admin: "(null)", submit: at}
	j.eligible = at.Add(time.Minute).Format("2006-01-02T15:04:05")
	j.since = at.Add(2 * time.Minute).Format("2006-01-02T15:04:05")
	f.jobs[id] = j
	dir := filepath.Join(f.state, "hash."+id[len(id)-1:], "job."+id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	for name, text := range map[string]string{"script": "#!/bin/sh\n#SBATCH --hold\necho\x00",
		"environment": "\x02\x00\x00\x00A=1\x00SBATCH_PARTITION=no\x00"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	return j
}

// change counts a change; it reports false if it does not take effect.
func (f *fakeSlurm) change(effect func()) error {
	f.step++
	switch {
	case f.die == 0 || f.step < f.die:
		effect()
		return nil
	case f.step == f.die && f.after:
		effect()
	}
	return errKilled
}

func (f *fakeSlurm) call(words []string) (string, error) {
	line := strings.Join(words, " ")
	if f.die > 0 && f.step >= f.die {
		return "", errKilled
	}
	switch {
	case line == "scontrol --version":
		return "slurm 22.05.8\n", nil
	case line == "scontrol show config":
		return "StateSaveLocation = " + f.state + "\nClusterName = c\n", nil
	case words[0] == "squeue":
		return f.list(row), nil
	case strings.HasSuffix(line, "show job"):
		return f.list(show), nil
	}
	id := strings.TrimPrefix(words[len(words)-1], "JobId=")
	if words[1] == "update" {
		id = strings.TrimPrefix(words[2], "JobId=")
	}
	j := f.jobs[id]
	if j == nil {
		return "", errors.New("Invalid job id specified")
	}
	return "", f.change(func() { f.alter(id, j, words) })
}

// alter does what a command asks for.
func (f *fakeSlurm) alter(id string, j *fakeJob, words []string) {
	switch words[0] + " " + words[1] {
	case "scontrol update":
		j.admin = strings.TrimPrefix(words[3], "AdminComment=")
		if slices.Contains(words, "Priority=0") {
			j.held = "JobHeldAdmin"
			j.eligible = "Unknown"
			j.since = "Unknown"
		}
	case "scontrol release":
		j.held = "None"
	case "scontrol uhold":
		j.held = "JobHeldUser"
	case "scancel " + id:
		delete(f.jobs, id)
	default:
		f.t.Errorf("unknown command %q", words)
	}
}

func (f *fakeSlurm) list(line func(id string, j *fakeJob) string) (out string) {
	for id, j := range f.jobs {
		out += line(id, j) + "\n"
	}
	return out
}

func row(id string, j *fakeJob) string {
	return fmt.Sprintf("%-16d%-64s%s", os.Getuid(), id, j.admin)
}

func show(id string, j *fakeJob) string {
	return fmt.Sprintf("JobId=%s JobName=n%s UserId=ann(%d) GroupId=ann(%d) JobState=PENDING Reason=%s Dependency=%s "+
		"BatchFlag=%s Requeue=1 SubmitTime=%s EligibleTime=%s AccrueTime=%s NumNodes=1 NumTasks=1 Command=/x/a.sh "+
		"WorkDir=/x", id, id, os.Getuid(), os.Getgid(), j.held, j.dep, j.kind,
		j.submit.Format("2006-01-02T15:04:05"), j.eligible, j.since)
}

// move runs the command.
func (f *fakeSlurm) move(die int, after bool, change func(*mover)) (out string, left int, err error) {
	var b strings.Builder
	f.step = 0
	f.die = die
	f.after = after
	m := &mover{tools: slurmTools{ctx: f.t.Context(), call: f.call}, out: &b, test: f.test, submit: f.submit}
	if change != nil {
		change(m)
	}
	left, err = m.run()
	return b.String(), left, err
}

func (f *fakeSlurm) test(q api.SubmitRequest) error {
	if q.Moved != nil || len(q.Spec.Depends.Terms) > 0 {
		f.t.Errorf("it is tested with %+v, %+v", q.Moved, q.Spec.Depends)
	}
	return nil
}

func (f *fakeSlurm) submit(q api.SubmitRequest) (id cluster.JobID, err error) {
	if q.Spec.Name == f.reject {
		return 0, cluster.Errorf(cluster.Invalid, "", "no")
	}
	if id, made := f.ids[q.Key]; made {
		return id, nil
	}
	err = f.change(func() {
		id = q.Moved.ID + 100
		f.ids[q.Key] = id
		f.sent = append(f.sent, q)
	})
	if f.unsure {
		return 0, cluster.Errorf(cluster.Unavailable, cluster.ErrUncertain, "the lead was lost")
	}
	return id, err
}

// TestQueueKilled ends the command before and after each of its changes: the next run finishes the move, and no job is
// lost, submitted twice or runnable in both clusters.
func TestQueueKilled(t *testing.T) {
	for die := 1; ; die++ {
		killed := false
		for _, after := range []bool{false, true} {
			f := newFake(t)
			first := f.add("7", "(null)", "Priority")
			f.add("8", "afterok:7(unfulfilled)", "Dependency")
			f.add("9", "(null)", "JobHeldUser")
			submitted, eligible := first.submit, first.eligible
			_, _, _ = f.move(die, after, nil)
			killed = killed || f.step >= die
			for _, q := range f.sent {
				if j := f.jobs[fmt.Sprint(q.Moved.ID)]; j != nil && !strings.HasPrefix(j.held, "JobHeld") {
					t.Fatalf("killed at %d, %v: job %d can start in both clusters", die, after, q.Moved.ID)
				}
			}
			out, left, err := f.move(0, false, nil)
			if err != nil || left > 0 || len(f.sent) != 3 || len(f.jobs) > 0 {
				t.Fatalf("killed at %d, %v: %v, %d left, %d sent, %v\n%s",
					die, after, err, left, len(f.sent), f.jobs, out)
			}
			for _, q := range f.sent {
				checkSent(t, q, submitted, eligible)
			}
		}
		if !killed {
			if die < 10 {
				t.Errorf("only %d changes were tried", die)
			}
			return
		}
	}
}

// checkSent compares a submission with the job that Slurm had.
func checkSent(t *testing.T, q api.SubmitRequest, submitted time.Time, eligible string) {
	t.Helper()
	m, held := q.Moved, cluster.NotHeld
	if m.ID == 9 {
		held = cluster.HeldUser
	}
	since := m.Eligible.Local().Format("2006-01-02T15:04:05")
	if !m.Submitted.Equal(submitted) || since != eligible || m.Accrue.Sub(m.Eligible) != time.Minute {
		t.Errorf("job %d: %+v, want it submitted at %s, eligible at %s", m.ID, m, submitted, eligible)
	}
	if m.Held != held {
		t.Errorf("job %d: held by %d, want %d", m.ID, m.Held, held)
	}
	s := &q.Spec
	if s.UID != uint32(os.Getuid()) || s.Hold || s.Name != fmt.Sprint("n", m.ID) || len(s.Partitions) > 0 {
		t.Errorf("job %d: %+v", m.ID, s)
	}
	if string(q.Script) != "#!/bin/sh\n#SBATCH --hold\necho" || !strings.Contains(string(q.Env), "A=1\x00") {
		t.Errorf("job %d: %q %q", m.ID, q.Script, q.Env)
	}
	if m.ID == 8 && (len(s.Depends.Terms) != 1 || s.Depends.Terms[0].Job != 107) {
		t.Errorf("dependencies %+v", s.Depends)
	}
}

// TestQueueRejected: a job that muster rejects is as it was in Slurm, and so is one that depends on it.
func TestQueueRejected(t *testing.T) {
	f := newFake(t)
	f.add("7", "(null)", "Priority").admin = "note"
	f.add("8", "afterok:7(unfulfilled)", "Dependency")
	f.add("9", "(null)", "JobHeldUser")
	f.reject = "n7"
	out, left, err := f.move(0, false, nil)
	if err != nil || left != 2 || len(f.sent) != 1 || len(f.jobs) != 2 {
		t.Fatalf("%v, %d left\n%s", err, left, out)
	}
	if j := f.jobs["7"]; j.held != "None" || j.admin != "note" {
		t.Errorf("%+v", j)
	}
	if !strings.Contains(out, "job 8: stays in Slurm: it depends on job 7, which stays in Slurm") {
		t.Error(out)
	}
}

// TestQueueUnsure: a job of which nobody knows whether muster has accepted it stays held in Slurm, lest it run twice;
// the next run finds out.
func TestQueueUnsure(t *testing.T) {
	f := newFake(t)
	f.add("7", "(null)", "Priority")
	f.unsure = true
	out, left, err := f.move(0, false, nil)
	if err != nil || left != 1 || len(f.sent) != 1 {
		t.Fatalf("%v, %d left, %d sent\n%s", err, left, len(f.sent), out)
	}
	if j := f.jobs["7"]; j == nil || j.held != "JobHeldAdmin" || !strings.Contains(j.admin, "muster-move:") {
		t.Fatalf("in Slurm: %+v\n%s", j, out)
	}
	f.unsure = false
	if out, left, err := f.move(0, false, nil); err != nil || left != 0 || len(f.sent) != 1 || len(f.jobs) != 0 {
		t.Errorf("again: %v, %d left, %d sent, %d stay\n%s", err, left, len(f.sent), len(f.jobs), out)
	}
}

// TestQueueOptions: what is not selected stays, a dry run changes nothing, and --keep-held cancels nothing.
func TestQueueOptions(t *testing.T) {
	for _, c := range []struct {
		what        string
		set         func(*mover)
		sent, stay  int
		left, steps int
	}{
		{"dry run", func(m *mover) { m.dry = true }, 0, 3, 1, 0},
		{"another user", func(m *mover) { m.user = "bob" }, 0, 3, 0, 0},
		{"the user", func(m *mover) { m.user = "ann" }, 2, 1, 1, 8},
		{"another partition", func(m *mover) { m.partition = "gpu" }, 0, 3, 0, 0},
		{"keep held", func(m *mover) { m.keep = true }, 2, 3, 1, 6},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := newFake(t)
			f.add("7", "(null)", "Priority")
			f.add("8", "(null)", "Priority")
			f.add("9", "(null)", "Priority").kind = "0" // interactive
			out, left, err := f.move(0, false, c.set)
			if err != nil {
				t.Fatal(err)
			}
			got := [4]int{len(f.sent), len(f.jobs), left, f.step}
			if want := [4]int{c.sent, c.stay, c.left, c.steps}; got != want {
				t.Errorf("sent, in Slurm, left, changes: %d, want %d\n%s", got, want, out)
			}
			if c.what != "keep held" {
				return
			}
			if _, _, err := f.move(0, false, nil); err != nil || len(f.sent) != 2 || len(f.jobs) != 1 {
				t.Errorf("%v, %d sent, %d stay", err, len(f.sent), len(f.jobs))
			}
		})
	}
}

// TestQueueStored: a job without its script or environment stays.
func TestQueueStored(t *testing.T) {
	f := newFake(t)
	f.add("7", "(null)", "Priority")
	if err := os.RemoveAll(filepath.Join(f.state, "hash.7")); err != nil {
		t.Fatal(err)
	}
	out, left, err := f.move(0, false, nil)
	if err != nil || left != 1 || len(f.sent) > 0 || f.step > 0 {
		t.Errorf("%v, %d left, %d sent, %d changes", err, left, len(f.sent), f.step)
	}
	if !strings.Contains(out, "its script is not available") {
		t.Error(out)
	}
}
