package submit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// Sbatch submits a batch script.
func Sbatch(sys *front.Sys, argv []string) int {
	r, err := ParseSbatch(argv, sys)
	if err != nil {
		return sys.Usage(err)
	}
	SayNotes(sys, r)
	sayLate(sys, r)
	own, code := PickCluster(sys, r)
	if code >= 0 {
		return code
	}
	q, code := Submission(sys, r)
	if code != 0 {
		return code
	}
	if r.Client.TestOnly {
		return TestOnly(sys, r, q)
	}
	resp, err := SubmitAll(sys, r, q)
	if errors.Is(err, ErrFilter) {
		return sys.Fail("%v", err)
	}
	if err != nil {
		text, _ := front.ErrorText(err)
		BeforeRefusal(sys, err, r)
		defer AfterRefusal(sys, err)
		if IsDoubt(err) {
			return sys.Fail("%s", text)
		}
		if front.IsKind(err, cluster.ErrGRES) {
			return sys.Fail("%s", text)
		}
		return sys.Fail("Batch job submission failed: %s", text)
	}
	switch {
	case r.Client.Quiet > 0: // with --parsable, too
	case r.Client.Parsable:
		fmt.Fprintf(sys.Stdout, "%d%s\n", resp.Job, front.Prefixed(";", own))
	default:
		fmt.Fprintf(sys.Stdout, "Submitted batch job %d%s\n", resp.Job, front.Prefixed(" on cluster ", own))
	}
	if r.Client.Wait {
		return waitJob(sys, resp.Job)
	}
	return 0
}

// submitAgain is how long a submission whose answer was lost is made again.
const submitAgain = 10 * time.Second

// submitKeyEnv names a submission, so that it may be made again.
const submitKeyEnv = "MUSTER_SUBMIT_KEY"

// doubtError says that a submission may have been taken or not.
type doubtError struct {
	prog, key string
	at        string // the cluster that was chosen among several, as an option
	err       error
}

func (d *doubtError) Error() string {
	text, _ := front.ErrorText(d.err)
	out := "no response was received, and the job may have been submitted: "
	if d.prog != "sbatch" { // an allocation is of no use to another process
		return out + fmt.Sprintf("look for it with squeue --me and cancel it (%s)", text)
	}
	again := "the same command again"
	if d.at != "" { // elsewhere it would be a second job
		again += " with -M " + d.at + " and"
	}
	return out + fmt.Sprintf("%s with %s=%s prints its number, or submits it if that is still to be done (%s)",
		again, submitKeyEnv, d.key, text)
}

func IsDoubt(err error) bool {
	var d *doubtError
	return errors.As(err, &d)
}

// answerLost reports whether a submission failed in a way that says nothing of whether it was taken.
func answerLost(err error) bool {
	return errors.Is(err, api.ErrUnreachable) && !errors.Is(err, api.ErrNotSent) || front.IsKind(err, cluster.ErrUncertain)
}

// answerLacks reports whether the daemon may yet answer a submission that has failed.
func answerLacks(err error) bool {
	return front.IsUnreachable(err) || front.IsKind(err, cluster.ErrUncertain)
}

// submit hands a job over. If the daemon dies before it has answered, the same submission is made
// again: its key keeps it from becoming two jobs.
func submit[Q any](s *front.Sys, to api.Endpoint[Q, api.SubmitResponse], key string, q Q) (api.SubmitResponse, error) {
	end := time.Now().Add(submitAgain)
	resp, err := front.Call(s, to, q)
	doubt := answerLost(err)
	back := doubt || front.IsKind(err, cluster.ErrAway) // the daemon is likely to be
	for back && answerLacks(err) && time.Now().Before(end) {
		time.Sleep(50 * time.Millisecond)
		resp, err = front.Call(s, to, q)
		doubt = doubt || answerLost(err)
	}
	if doubt && (answerLacks(err) || front.IsKind(err, cluster.ErrNoLeader)) {
		return resp, &doubtError{prog: s.Prog, key: key, at: s.Named(), err: err}
	}
	return resp, err
}

// SubmitAll hands over a job with all of its components.
func SubmitAll(s *front.Sys, r *Request, q api.SubmitRequest) (api.SubmitResponse, error) {
	q.Key = RequestKey(s)
	if key := s.Getenv(submitKeyEnv); key != "" && s.Prog == "sbatch" {
		q.Key = key
	}
	resp, err := submitOnce(s, r, q)
	if text, ok := filterAsked(err); ok {
		key := q.Key
		if q, err = refilter(s, r, text); err != nil {
			return resp, err
		}
		q.Key = key
		resp, err = submitOnce(s, r, q)
	}
	if r.site != nil && err == nil {
		if err := r.site.cli.PostSubmit(0, uint32(resp.Job)); err != nil {
			s.Say("error: cli_filter/lua: %v", err)
		}
	}
	sayIgnored(s, resp.Ignored)
	sayAccount(s, r.Job.Account, resp.Accounts)
	return resp, err
}

// sayAccount says that a job's account is none of those that there are.
func sayAccount(s *front.Sys, account string, known []string) {
	if len(known) == 0 {
		return
	}
	text := ""
	if near := opt.Nearest(account, known); near != "" {
		text = "; did you mean " + near + "?"
	}
	s.Say("why: no account %s%s", account, text)
}

func submitOnce(s *front.Sys, r *Request, q api.SubmitRequest) (api.SubmitResponse, error) {
	if len(r.Parts) == 0 {
		return submit(s, api.SubmitJob, q.Key, q)
	}
	return submit(s, api.SubmitHet, q.Key, hetRequest(s, r, q))
}

// filterAsked is the text of the site's script that is to look at the options first.
func filterAsked(err error) (text string, ok bool) {
	var e *api.Error
	if !errors.As(err, &e) || e.Kind != cluster.ErrFilter {
		return "", false
	}
	return e.Script, true
}

// sayIgnored says what of a job's request was left out because the site does not allow it.
func sayIgnored(s *front.Sys, names []string) {
	for _, name := range slices.Compact(names) {
		if name = "--" + strings.ReplaceAll(name, "_", "-"); name == "--core-spec" {
			name = "-S"
		}
		s.Say("error: Ignoring %s since it's not allowed by configuration (AllowSpecResourcesUsage = No)", name)
	}
}

// hetRequest is the request for a heterogeneous job; q is that for its first component.
func hetRequest(s *front.Sys, r *Request, q api.SubmitRequest) api.HetRequest {
	out := api.HetRequest{Specs: []cluster.JobSpec{q.Spec}, Script: q.Script, Env: q.Env, Key: q.Key}
	out.Filtered = q.Filtered
	for _, p := range r.Parts {
		settleRequest(s, p)
		p.Job.UID, p.Job.GID = q.Spec.UID, q.Spec.GID
		out.Specs = append(out.Specs, p.Job)
	}
	return out
}

// RequestKey names one request of this process, in a word.
func RequestKey(s *front.Sys) string {
	host, _ := s.Hostname()
	return host + "." + front.Unique()
}

// SayNotes says what parsing remarked, unless -Q.
func SayNotes(s *front.Sys, r *Request) {
	tellOptions(s, r)
	for _, n := range r.Notes {
		if r.Client.Quiet == 0 || strings.HasPrefix(n, "Warning: ") || strings.HasPrefix(n, "error: ") { // these Slurm tells with -Q too
			s.Say("%s", n)
		}
	}
}

// Submission is the request for a new job.
func Submission(s *front.Sys, r *Request) (api.SubmitRequest, int) {
	j := &r.Job
	settleRequest(s, r)
	q := api.SubmitRequest{Script: r.Script}
	if len(s.Args) == 0 {
		q.Filtered = api.NotByCommand
	}
	if j.Kind == cluster.Batch {
		env, err := JobEnviron(r, s.Environ)
		if err != nil {
			return q, s.Usage(err)
		}
		q.Env = env
	}
	q.Spec = *j
	return q, 0
}

// settleRequest fills in what a job's request says by where and how it was made.
func settleRequest(s *front.Sys, r *Request) {
	j := &r.Job
	if j.Kind == cluster.Batch && j.Stdout == "" {
		j.Stdout = "slurm-%j.out"
		if j.Array != nil {
			j.Stdout = "slurm-%A_%a.out"
		}
	}
	j.SubmitDir, _ = s.Getwd()
	if id := r.Client.UID; id != nil {
		j.UID = *id
	}
	if id := r.Client.GID; id != nil {
		j.GID = *id
	}
}

// BeforeRefusal prints what Slurm says before some refusals; of a job that is only tested it does not say what
// nodes lack.
func BeforeRefusal(s *front.Sys, err error, r *Request) {
	var e *api.Error
	switch {
	case front.IsKind(err, cluster.ErrPartition) && len(r.about(err).Partitions) > 0: // else the site's script has set it
		s.Say("error: invalid partition specified: %s", format.Null(strings.Join(r.about(err).Partitions, ",")))
	case (front.IsKind(err, cluster.ErrNodeConfig) && !r.Client.TestOnly || front.IsKind(err, cluster.ErrPolicy)) && errors.As(err, &e) && e.Hint != "":
		s.Say("error: %s", e.Hint)
	}
}

// AfterRefusal prints in our words, with numbers, what Slurm's words for a refusal leave open.
func AfterRefusal(s *front.Sys, err error) {
	var e *api.Error
	if text, no := front.ErrorText(err); no != 0 && errors.As(err, &e) && e.Message != text {
		s.Say("why: %s", e.Message)
	}
}

// TestOnly says when and where the job would start, on stderr as Slurm does.
func TestOnly(s *front.Sys, r *Request, q api.SubmitRequest) int {
	resp, err := Test(s, r, q)
	if text, ok := filterAsked(err); ok {
		if q, err = refilter(s, r, text); err != nil {
			return s.Fail("%v", err)
		}
		resp, err = Test(s, r, q)
	}
	if err != nil {
		var e *api.Error
		if errors.As(err, &e) && e.Hint == cluster.OutsideReservation {
			err = cluster.Errorf(e.Code, cluster.ErrReservation, "%s", e.Message)
		}
		text, _ := front.ErrorText(err)
		BeforeRefusal(s, err, r)
		fmt.Fprintf(s.Stderr, "allocation failure: %s\n", text)
		AfterRefusal(s, err)
		return 1
	}
	sayIgnored(s, resp.Ignored)
	s.Tell(front.Info, "Job %d to start at %s using %d processors on nodes %s in partition %s", resp.Job,
		front.Stamp(resp.StartsAt), resp.CPUs, front.NodeText(resp.Nodes), resp.Partition)
	return 0
}

// Test asks when and where a job with all of its components would start.
func Test(s *front.Sys, r *Request, q api.SubmitRequest) (api.TestResponse, error) {
	if len(r.Parts) == 0 {
		return front.Call(s, api.TestJob, q)
	}
	return front.Call(s, api.TestHet, hetRequest(s, r, q))
}

// WaitHold is how long one waiting call stays open.
const WaitHold = 50 * time.Second

// waitJob waits for a job to end and returns its exit code: the highest of an array's tasks.
func waitJob(s *front.Sys, id cluster.JobID) int {
	var wait time.Duration
	for {
		resp, err := front.Call(s, api.WaitJob, api.WaitRequest{Job: id, Phase: cluster.Ended, Timeout: WaitHold})
		if err != nil {
			if front.IsUnreachable(err) { // the daemon restarts; the job does not mind
				wait = cmp.Or(min(wait*2, time.Second), 50*time.Millisecond)
				time.Sleep(wait)
				continue
			}
			text, _ := front.ErrorText(err)
			return s.Fail("%s", text)
		}
		wait = 0
		if !resp.Reached {
			continue
		}
		worst := 0
		if g := resp.Gone; g != nil {
			if worst = g.Sum.MaxExit; worst == 0 && !g.Failed.Empty() {
				worst = 1
			}
		}
		for _, j := range resp.Jobs {
			worst = max(worst, cluster.WaitCode(j))
		}
		return worst
	}
}
