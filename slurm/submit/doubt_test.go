package submit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/wire"
)

// flaky is a daemon that answers submissions one after the other as it is told, the last answer again and again.
type flaky struct {
	answers []any    // a response, an *api.Error, nil for a connection that breaks, or an error for nobody there
	keys    []string // of the submissions that it got
	leaked  bool     // a job would have the name of its own submission in its environment
}

func (f *flaky) dial(context.Context) (api.Conn, error) {
	answer := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	if err, away := answer.(error); away && !isAPI(answer) {
		return nil, err
	}
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		r, err := http.ReadRequest(bufio.NewReader(far))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		var q api.SubmitRequest
		if wire.Unmarshal(body, &q) == nil {
			f.keys = append(f.keys, q.Key)
			f.leaked = f.leaked || strings.Contains(string(q.Env), submitKeyEnv)
		}
		if answer == nil {
			return
		}
		status := 200
		if e, ok := answer.(*api.Error); ok {
			status = api.Status(e.Code)
		}
		text, _ := wire.Marshal(answer)
		fmt.Fprintf(far, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(text), text)
	}()
	return near, nil
}

func isAPI(v any) bool { _, ok := v.(*api.Error); return ok }

// TestSubmitDoubt: sbatch submits again, under the same key, when an answer was lost, and if it never learns what
// became of the job it says so, and how to find out. A refusal that is sure is told as one.
func TestSubmitDoubt(t *testing.T) {
	made, gone := api.SubmitResponse{Job: 7}, errors.New("nobody listens")
	uncertain := cluster.Errorf(cluster.Unavailable, cluster.ErrUncertain, "the lead was lost")
	noLeader := cluster.Errorf(cluster.Unavailable, cluster.ErrNoLeader, "no server leads")
	denied := cluster.Errorf(cluster.Denied, cluster.ErrPartition, "no such partition")
	for _, c := range []struct {
		name    string
		answers []any
		key     string // given
		out     string
		doubt   bool
	}{
		{"answered", []any{made}, "", "Submitted batch job 7", false},
		{"a key is given", []any{made}, "mine", "Submitted batch job 7", false},
		{"nobody is there", []any{gone}, "", "Unable to contact", false},
		{"the daemon dies and comes back", []any{nil, gone, gone, made}, "", "Submitted batch job 7", false},
		{"the lead moves", []any{uncertain, uncertain, made}, "", "Submitted batch job 7", false},
		{"the daemon dies", []any{nil, gone}, "", "", true},
		{"nobody knows", []any{uncertain}, "", "", true},
		{"nobody knows, then nobody leads", []any{uncertain, noLeader}, "", "", true},
		{
			"the daemon is stopping",
			[]any{cluster.Errorf(cluster.Unavailable, cluster.ErrAway, "stopping"), gone, made}, "",
			"Submitted batch job 7", false,
		},
		{"nobody leads", []any{noLeader}, "", "no server leads", false},
		{"refused", []any{denied}, "", "Invalid partition name specified", false},
		{"refused when it was made again", []any{nil, denied}, "", "Invalid partition name specified", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &flaky{answers: c.answers}
				var both bytes.Buffer
				sys := &front.Sys{Prog: "sbatch", Stdin: strings.NewReader(""), Stdout: &both,
					Stderr: &both, Dial: f.dial, Environ: []string{"PATH=/bin"},
					Now: time.Now, Hostname: func() (string, error) { return "vm", nil },
					Getwd:   func() (string, error) { return "/tmp", nil },
					Rlimits: func() []cluster.Rlimit { return nil }}
				if c.key != "" {
					sys.Environ = append(sys.Environ, submitKeyEnv+"="+c.key)
				}
				began := time.Now()
				Sbatch(sys, []string{"--wrap", "true"})
				if !strings.Contains(both.String(), c.out) || strings.Contains(both.String(), "may have been submitted") != c.doubt {
					t.Errorf("it said %q", both.String())
				}
				if took := time.Since(began); took > submitAgain+time.Second {
					t.Errorf("it took %v", took)
				}
				for _, k := range f.keys {
					if k != f.keys[0] || c.key != "" && k != c.key || strings.Contains(k, " ") {
						t.Errorf("keys %q", f.keys)
					}
				}
				if f.leaked {
					t.Error("what the job submits would be taken for the job itself")
				}
				if c.doubt && !strings.Contains(both.String(), submitKeyEnv+"="+f.keys[0]) {
					t.Errorf("it does not tell the key %s: %q", f.keys[0], both.String())
				}
			})
		})
	}
}
