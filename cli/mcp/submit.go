package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

var submitTool = tool{name: "submit", title: "Submit a batch job", writes: true, repeatOK: true,
	help: "Plan or submit a batch script. Without confirm nothing is submitted: the answer has the price in GPU " +
		"hours, the expected start, remarks on the script and a confirm value. Call again with the same script, the " +
		"same options and confirm to submit. A repeated confirm never submits twice; it returns the same job ID."}

type submitIn struct {
	Script  string   `json:"script" jsonschema:"text of the script, with #!/bin/bash and #SBATCH lines"`
	Options []string `json:"options,omitempty" jsonschema:"options of sbatch, each --name=value; override #SBATCH"`
	Confirm string   `json:"confirm,omitempty" jsonschema:"value from the plan; submits the job"`
}

// Bounds of submissions.
const (
	maxScript  = 256 << 10
	maxOptions = 64
	maxOption  = 4 << 10
)

func (c *caller) submit(_ context.Context, in submitIn) (string, error) {
	if err := checkSubmit(&in); err != nil {
		return "", err
	}
	if in.Confirm != "" && !confirms(in.Confirm, &in) {
		return "", errors.New("confirm does not belong to this script and these options; call submit without confirm " +
			"again, then repeat exactly the same script and options")
	}
	var errs bytes.Buffer
	s := c.w.Sys("sbatch", strings.NewReader(in.Script), io.Discard, &errs)
	s.Environ = append(withoutKeys(s.Environ), "MUSTER_SUBMIT_KEY=mcp-"+in.Confirm)
	r, err := submit.ParseSbatch(in.Options, s)
	if err != nil {
		return "", c.refused(err.Error(), &in)
	}
	if err := checkRequest(r); err != nil {
		return "", err
	}
	q, code := submit.Submission(s, r)
	if code != 0 {
		return "", c.refused(errs.String(), &in)
	}
	if in.Confirm != "" {
		resp, err := submit.SubmitAll(s, r, q)
		if err != nil {
			return "", c.refused(errorText(err), &in)
		}
		return fmt.Sprintf("submitted job %d\n%s", resp.Job, errs.String()), nil
	}
	resp, err := submit.Test(s, r, q)
	if err != nil {
		return "", c.refused(errorText(err), &in)
	}
	return c.planned(s, r, &in, &resp, errs.String()), nil
}

// checkSubmit refuses options that name other scripts, or do something else than submit this one.
func checkSubmit(in *submitIn) error {
	switch {
	case len(in.Script) > maxScript:
		return fmt.Errorf("the script has %d bytes; the limit is %d: put data into files", len(in.Script), maxScript)
	case len(in.Options) > maxOptions:
		return fmt.Errorf("%d options; the limit is %d", len(in.Options), maxOptions)
	}
	for _, o := range in.Options {
		name, _, _ := strings.Cut(o, "=")
		switch {
		case !strings.HasPrefix(o, "--") || len(name) == 2:
			return fmt.Errorf("option %q: write each option as one --name=value; the script is a text of its own",
				cutAt(o, 40))
		case strings.HasPrefix("--wrap", name) && len(name) > 3:
			return errors.New("option --wrap: put the command into the script")
		case len(o) > maxOption:
			return fmt.Errorf("option %s has %d bytes; the limit is %d", cutAt(name, 40), len(o), maxOption)
		}
	}
	return nil
}

// checkRequest refuses what a tool cannot wait for, or cannot price.
func checkRequest(r *submit.Request) error {
	switch {
	case r.Client.Wait:
		return errors.New("option --wait: leave it out and use tool events with until=ended")
	case r.Client.TestOnly:
		return errors.New("option --test-only: leave it out; without confirm nothing is submitted")
	case r.Job.Clusters != "":
		return errors.New("option --clusters: leave it out; this server submits to its own cluster")
	case len(r.Parts) > 0:
		return errors.New("heterogeneous jobs (packjob, hetjob) cannot be priced here; submit separate jobs")
	case r.Job.Kind != cluster.Batch:
		return errors.New("option --external: leave it out; submit a script")
	}
	return nil
}

// withoutKeys leaves out the key of another submission.
func withoutKeys(env []string) (out []string) {
	for _, v := range env {
		if !strings.HasPrefix(v, "MUSTER_SUBMIT_KEY=") {
			out = append(out, v)
		}
	}
	return out
}

// refused tells why a script is refused, with the remarks on it.
func (c *caller) refused(why string, in *submitIn) error {
	text := "refused: " + strings.TrimSpace(why)
	if notes := c.remarks(in.Script); notes != "" {
		text += "\nremarks:\n" + notes
	}
	return errors.New(text)
}

// remarks are what muster lint says of a script, one on a line.
func (c *caller) remarks(script string) string {
	var out strings.Builder
	c.w.Lint(c.w.Sys("muster", strings.NewReader(script), &out, io.Discard))
	var list []string
	for line := range strings.Lines(out.String()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "-")
		if line, ok := strings.CutPrefix(line, ":"); ok {
			if number, text, ok := strings.Cut(line, ": "); ok && number != "" {
				line = "line " + number + ": " + text
			}
			list = append(list, strings.TrimSpace(line))
		}
	}
	return strings.Join(list, "\n")
}

// planned tells what a submission would cost, and when it would start.
func (c *caller) planned(s *front.Sys, r *submit.Request, in *submitIn, t *api.TestResponse, said string) string {
	var b strings.Builder
	b.WriteString("plan (nothing is submitted yet)\n")
	fmt.Fprintf(&b, "price: %s\n", c.price(s, r, t))
	fmt.Fprintf(&b, "start: %s on %s in partition %s\n", front.Stamp(t.StartsAt), front.NodeText(t.Nodes), t.Partition)
	if notes := strings.TrimSpace(said + c.remarks(in.Script)); notes != "" {
		b.WriteString("remarks:\n" + notes + "\n")
	}
	fmt.Fprintf(&b, "confirm: %s\n", newConfirm(in))
	return b.String()
}

// price tells the GPU hours that a job takes at most.
func (c *caller) price(s *front.Sys, r *submit.Request, t *api.TestResponse) string {
	gpus, tasks := r.Job.Asks().GPUs, 1
	if r.Job.Array != nil {
		tasks = r.Job.Array.Tasks.Len()
	}
	limit := r.Job.Limit
	if limit == 0 {
		limit = c.defaultLimit(s, t.Partition)
	}
	if r.Job.Sharing == cluster.ShareExclusive {
		gpus = max(gpus, c.gpusOn(s, t.Nodes))
	}
	if limit <= 0 || limit == cluster.Unlimited {
		return fmt.Sprintf("%d GPUs without a time limit: no upper bound; set --time", gpus)
	}
	each := float64(gpus) * limit.Hours()
	if tasks > 1 {
		return fmt.Sprintf("at most %.2f GPU hours (%d tasks x %d GPUs x %s)", each*float64(tasks), tasks, gpus,
			format.Duration(limit))
	}
	return fmt.Sprintf("at most %.2f GPU hours (%d GPUs x %s)", each, gpus, format.Duration(limit))
}

// gpusOn returns how many GPUs nodes have, all of which a job with --exclusive takes.
func (c *caller) gpusOn(s *front.Sys, nodes []cluster.NodeName) (n int64) {
	resp, err := front.Call(s, api.ListNodes, api.NodeQuery{Names: nodes})
	if err != nil {
		return 0
	}
	for i := range resp.Nodes {
		n += int64(roomOf(&resp.Nodes[i]).gpus)
	}
	return n
}

// defaultLimit returns the time limit of jobs of a partition that ask for none; 0 if it is unknown.
func (c *caller) defaultLimit(s *front.Sys, partition string) time.Duration {
	about, err := front.Call(s, api.ShowCluster, api.Empty{})
	if err != nil {
		return 0
	}
	for _, p := range about.Config.Partitions {
		if p.Name == partition {
			return cmp.Or(p.DefaultTime, p.MaxTime)
		}
	}
	return 0
}

// newConfirm makes a value that belongs to one plan: a submission with it is made once, however often it is asked for.
func newConfirm(in *submitIn) string {
	nonce := rand.Text()[:12]
	return nonce + "." + digest(nonce, in)
}

// confirms reports whether a value belongs to a script and its options.
func confirms(value string, in *submitIn) bool {
	nonce, sum, _ := strings.Cut(value, ".")
	return len(nonce) == 12 && sum == digest(nonce, in)
}

func digest(nonce string, in *submitIn) string {
	h := sha256.New()
	for _, part := range append([]string{nonce, in.Script}, in.Options...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
