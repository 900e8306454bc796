package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/adopt/preview"
	"dev.muster/adopt/queue"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
	"github.com/urfave/cli/v2"
)

// Queue returns the command that recreates the pending jobs of a running Slurm in muster.
func Queue() *cli.Command {
	return &cli.Command{
		Name: "queue",
		Usage: "move the pending jobs of the running Slurm: submit them to muster with their age and order, and " +
			"cancel them in Slurm",
		Description: "Run it as root on the host of slurmctld. If it ends early, run it again: it continues, and no " +
			"job is submitted twice.\n" +
			"Exit codes: 0, all selected jobs were moved; 1, some stay in Slurm, or an error.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "list the jobs that can be moved; change nothing"},
			&cli.StringFlag{Name: "user", Usage: "move the jobs of USER only"},
			&cli.StringFlag{Name: "partition", Usage: "move the jobs of PARTITION only"},
			&cli.BoolFlag{Name: "keep-held", Usage: "keep moved jobs in Slurm, held, instead of canceling them"},
		},
		Action: runQueue,
	}
}

// runQueue is muster adopt queue.
func runQueue(c *cli.Context) error {
	if c.NArg() > 0 {
		return errors.New("adopt queue: too many arguments; it reads the running Slurm")
	}
	client := &api.Client{Dial: front.DialLocal}
	m := &mover{
		tools:     slurmTools{ctx: c.Context},
		out:       front.PlainText(c.App.Writer),
		user:      c.String("user"),
		partition: c.String("partition"),
		dry:       c.Bool("dry-run"),
		keep:      c.Bool("keep-held"),
		test: func(q api.SubmitRequest) error {
			_, err := api.Call(c.Context, client, api.TestJob, q)
			return err
		},
		submit: func(q api.SubmitRequest) (cluster.JobID, error) {
			r, err := api.Call(c.Context, client, api.SubmitJob, q)
			return r.Job, err
		},
	}
	left, err := m.run()
	if err != nil {
		return fmt.Errorf("adopt queue: %w", err)
	}
	if left > 0 {
		return cli.Exit("", 1)
	}
	return nil
}

// mover moves pending jobs. The steps of a job are: hold it in Slurm, with a mark in the operators' comment; submit it
// to muster, with a key; note its number there in the mark; cancel it in Slurm. Each can be repeated, so that a run
// that was ended early is continued by the next one. The key alone would not do: muster forgets it with the job.
type mover struct {
	tools           slurmTools
	out             io.Writer
	user, partition string
	dry, keep       bool
	test            func(api.SubmitRequest) error
	submit          func(api.SubmitRequest) (cluster.JobID, error)

	state, name string // StateSaveLocation and ClusterName
	left        int
	ids         map[cluster.JobID]cluster.JobID // of moved jobs, in Slurm and in muster
}

// run moves all selected jobs, and returns how many stay.
func (m *mover) run() (left int, err error) {
	if err := m.tools.check(); err != nil {
		return 0, err
	}
	show, err := m.tools.run("scontrol", "show", "config")
	if err != nil {
		return 0, err
	}
	m.state, m.name = preview.ReadSetting(show, "statesavelocation"), preview.ReadSetting(show, "clustername")
	jobs, err := m.plan()
	if err != nil || m.dry {
		return m.left, err
	}
	if jobs, err = m.hold(jobs); err != nil {
		return m.left, err
	}
	return m.left, m.cancel(m.submitAll(jobs))
}

// list reads the pending jobs of Slurm.
func (m *mover) list() ([]*queue.Job, error) {
	rows, err := m.tools.run("squeue", "-h", "-a", "-t", "PENDING", "-O", queue.RowFormat)
	if err != nil {
		return nil, err
	}
	read, err := queue.ReadRows(rows)
	if err != nil || len(read) == 0 {
		return nil, err
	}
	show, err := m.tools.run("scontrol", "-a", "-d", "-o", "show", "job")
	if err != nil {
		return nil, err
	}
	return queue.Read(show, read, time.Now(), time.Local), nil
}

// plan decides which jobs move, and tells why the others stay.
func (m *mover) plan() (moving []*queue.Job, err error) {
	jobs, err := m.list()
	if err != nil {
		return nil, err
	}
	const unselected = "it was not selected"
	for _, j := range jobs {
		switch {
		case !m.selects(j):
			j.Left = unselected
		case j.Left == "" && (j.Mark == nil || j.Mark.Job == 0):
			if err := m.try(j); err != nil {
				j.Left = err.Error()
			}
		}
	}
	queue.Close(jobs)
	for _, j := range jobs {
		switch {
		case j.Left == "":
			moving = append(moving, j)
			if m.dry {
				m.say(j, "can be moved")
			}
		case j.Left != unselected:
			m.stays(j, j.Left)
		}
	}
	if m.dry {
		fmt.Fprintf(m.out, "%d jobs can be moved, %d stay in Slurm; nothing was changed\n", len(moving), m.left)
	}
	return moving, nil
}

// selects reports whether the options select a job.
func (m *mover) selects(j *queue.Job) bool {
	name, _, _ := strings.Cut(j.Fields["UserId"], "(")
	return (m.user == "" || m.user == name || m.user == strconv.FormatUint(uint64(j.UID), 10)) &&
		(m.partition == "" || slices.Contains(strings.Split(j.Fields["Partition"], ","), m.partition))
}

// try asks muster whether it would take a job, without its dependencies, which it does not know yet.
func (m *mover) try(j *queue.Job) error {
	q, err := m.request(j)
	if err != nil {
		return err
	}
	q.Spec.Depends, q.Moved, q.Key = cluster.Depends{}, nil, ""
	if err := m.test(q); err != nil {
		return fmt.Errorf("muster rejects it: %w", err)
	}
	return nil
}

// hold holds jobs in Slurm, and returns them as Slurm has them then: some may have started before.
func (m *mover) hold(jobs []*queue.Job) (held []*queue.Job, err error) {
	for _, j := range jobs {
		if j.Mark != nil {
			continue
		}
		if err := m.mark(j, j.NewMark().Text(j.Admin), "Priority=0"); err != nil {
			j.Left = err.Error()
		}
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	now, err := m.list()
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		at := slices.IndexFunc(now, func(n *queue.Job) bool { return n.ID == j.ID })
		switch {
		case at < 0:
			m.stays(j, "it is not pending any more")
		case j.Left != "" || now[at].Mark == nil:
			m.stays(j, "it could not be held: "+j.Left)
		default:
			held = append(held, now[at])
		}
	}
	return held, nil
}

// submitAll submits held jobs, each after those on which it depends, and returns those that muster has.
func (m *mover) submitAll(jobs []*queue.Job) (done []*queue.Job) {
	m.ids = map[cluster.JobID]cluster.JobID{}
	for _, j := range queue.Order(jobs) {
		err := m.submitOne(j)
		if err == nil {
			done = append(done, j)
			continue
		}
		m.stays(j, err.Error())
		if errors.Is(err, errUnsure) {
			continue
		}
		if err := m.release(j); err != nil {
			m.say(j, "is held in Slurm: "+err.Error())
		}
	}
	return done
}

func (m *mover) submitOne(j *queue.Job) error {
	if j.Left != "" {
		return errors.New(j.Left)
	}
	for _, id := range j.Depend {
		if _, moved := m.ids[id]; !moved {
			return fmt.Errorf("it depends on job %d, which stays in Slurm", id)
		}
	}
	if j.Mark.Job == 0 {
		q, err := m.request(j)
		if err != nil {
			return err
		}
		j.Mark.Job, err = m.submit(q)
		if err != nil && !rejected(err) {
			return fmt.Errorf("%w: %w", errUnsure, err)
		}
		if err != nil {
			return fmt.Errorf("muster rejects it: %w", err)
		}
		if err := m.mark(j, j.Mark.Text(j.Admin)); err != nil {
			m.say(j, "cannot be marked in Slurm as moved: "+err.Error())
		}
	}
	m.ids[j.ID] = j.Mark.Job
	m.say(j, fmt.Sprintf("moved as job %d", j.Mark.Job))
	return nil
}

// errUnsure says that muster may have a job. It must not be released in Slurm: it would run twice.
var errUnsure = errors.New("it is held there, since muster may have accepted it; run the command again")

// rejected reports whether muster has certainly not accepted a job.
func rejected(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code != cluster.Unavailable && e.Code != cluster.Internal
}

// mark sets the operators' comment of a job in Slurm.
func (m *mover) mark(j *queue.Job, comment string, more ...string) error {
	words := append([]string{"scontrol", "update", "JobId=" + j.Target, "AdminComment=" + comment}, more...)
	_, err := m.tools.run(words...)
	return err
}

// cancel cancels moved jobs in Slurm, dependents first: otherwise Slurm would cancel them too, or never start them.
func (m *mover) cancel(done []*queue.Job) (failed error) {
	if m.keep {
		return nil
	}
	for _, j := range slices.Backward(done) {
		if _, err := m.tools.run("scancel", j.Target); err != nil {
			failed = fmt.Errorf("job %d is in muster and still held in Slurm; run the command again: %w", j.ID, err)
			fmt.Fprintln(m.out, failed)
		}
	}
	return failed
}

// release undoes the hold of a job. The mark goes last: until then another run can go on.
func (m *mover) release(j *queue.Job) error {
	if j.Mark == nil {
		return nil
	}
	if j.Mark.Held != cluster.HeldAdmin {
		if _, err := m.tools.run("scontrol", "release", j.Target); err != nil {
			return err
		}
	}
	if j.Mark.Held == cluster.HeldUser {
		if _, err := m.tools.run("scontrol", "uhold", j.Target); err != nil {
			return err
		}
	}
	return m.mark(j, j.Admin)
}

func (m *mover) stays(j *queue.Job, why string) {
	m.left++
	m.say(j, "stays in Slurm: "+why)
}

func (m *mover) say(j *queue.Job, text string) {
	fmt.Fprintf(m.out, "job %d: %s\n", j.ID, cluster.PlainLine(text))
}

// request makes the submission of a job.
func (m *mover) request(j *queue.Job) (q api.SubmitRequest, err error) {
	script, err := m.stored(j, "script", cluster.MaxScriptBytes)
	if err != nil {
		return q, fmt.Errorf("its script is not available: %w", err)
	}
	text, err := m.stored(j, "environment", cluster.MaxEnvBytes)
	if err != nil {
		return q, fmt.Errorf("its environment is not available: %w", err)
	}
	environ, err := queue.Environ(text)
	if err != nil {
		return q, err
	}
	line, err := j.Line(m.ids, time.Now(), time.Local)
	if err != nil {
		return q, err
	}
	var said bytes.Buffer
	sys := jobSys(j, environ, bytes.TrimRight(script, "\x00"), &said)
	r, err := submit.ParseSbatch(line, sys)
	if err != nil {
		return q, fmt.Errorf("its options are not supported: %s", strings.TrimPrefix(err.Error(), "sbatch: error: "))
	}
	if len(r.Parts) > 0 {
		return q, errors.New("heterogeneous jobs are not supported; submit it again")
	}
	settle(r, j)
	sys.Environ = environ
	q, code := submit.Submission(sys, r)
	if code != 0 {
		return q, errors.New(strings.TrimSpace(said.String()))
	}
	moved := j.Moved
	q.Moved, q.Key = &moved, j.Key(m.name)
	return q, nil
}

// jobSys is the surroundings of the command that submitted a job. The variables that are options of sbatch do not
// count again, and no file is opened.
func jobSys(j *queue.Job, environ []string, script []byte, said io.Writer) *front.Sys {
	host, sid, _ := strings.Cut(j.Fields["AllocNode:Sid"], ":")
	session, _ := strconv.Atoi(sid)
	umask := uint64(0o22)
	for _, v := range environ {
		if text, ok := strings.CutPrefix(v, "SLURM_UMASK="); ok {
			if n, err := strconv.ParseUint(text, 8, 32); err == nil {
				umask = n
			}
		}
	}
	user, _, _ := strings.Cut(j.Fields["UserId"], "(")
	return &front.Sys{Prog: "sbatch", Stdin: bytes.NewReader(script), Stdout: io.Discard, Stderr: said,
		Getwd: func() (string, error) { return j.Fields["WorkDir"], nil }, Now: time.Now, UID: j.UID, GID: j.GID,
		User: user, Umask: uint32(umask), Rlimits: func() []cluster.Rlimit { return nil },
		Hostname: func() (string, error) { return host, nil }, Sid: session, NoFiles: true}
}

// settle sets what the record of Slurm says, whatever the lines of the script say.
func settle(r *submit.Request, j *queue.Job) {
	uid, gid := j.UID, j.GID
	r.Client.UID, r.Client.GID = &uid, &gid
	command, _, _ := strings.Cut(j.Fields["Command"], " ")
	if command == "(null)" {
		command = ""
	}
	r.Job.Command, r.Job.Args, r.Job.SubmitLine = command, j.Args(), ""
	r.Job.AdminComment, r.Job.Hold = j.Admin, false
	if len(j.Depend) == 0 && !strings.Contains(j.Fields["Dependency"], "singleton") {
		r.Job.Depends = cluster.Depends{} // those of the script are satisfied
	}
	if j.Fields["ArrayTaskId"] == "" {
		r.Job.Array = nil
	}
	if r.Job.Begin.Before(time.Now()) {
		r.Job.Begin = time.Time{}
	}
}

// stored reads a file of a job below StateSaveLocation.
func (m *mover) stored(j *queue.Job, name string, most int64) ([]byte, error) {
	id := uint32(j.ID)
	file := filepath.Join(m.state, fmt.Sprintf("hash.%d", id%10), fmt.Sprintf("job.%d", id), name)
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", file, most)
	}
	return text, err
}
