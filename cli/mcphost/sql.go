package mcphost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cli/mcp"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/wire"
)

// Bounds of the process that answers a question in SQL about some jobs: a question can ask for endless work.
const (
	maxMemory = 1 << 30 // bytes
	maxTime   = 15 * time.Second
	maxInput  = 256 << 20
	maxOutput = 4 << 20
	maxRows   = 10_000
)

// question is what that process reads.
type question struct {
	Query   string           `json:"query"`
	Records []api.JobHistory `json:"records"`
}

// SQLMain answers a question in SQL about the jobs that it reads, in bounded memory and time: muster internal sql.
func SQLMain([]string) int {
	for what, most := range map[int]uint64{
		syscall.RLIMIT_DATA:  maxMemory,
		syscall.RLIMIT_FSIZE: 0,
		syscall.RLIMIT_CORE:  0,
		syscall.RLIMIT_CPU:   uint64(2 * maxTime / time.Second),
	} {
		if err := syscall.Setrlimit(what, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			fmt.Fprintln(os.Stderr, "limit the process:", err)
			return 1
		}
	}
	if err := answer(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// answer reads a question with its jobs, and writes the answer.
func answer(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(io.LimitReader(in, maxInput))
	if err != nil {
		return err
	}
	var q question
	if err := wire.Unmarshal(text, &q); err != nil {
		return fmt.Errorf("read the jobs: %w", err)
	}
	var jobs []*cluster.Job
	var steps []*cluster.Step
	for _, r := range q.Records {
		jobs, steps = append(jobs, r.Job), append(steps, r.Steps...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	t, err := acct.Ask(ctx, jobs, steps, q.Query)
	if err != nil {
		return err
	}
	text, err = wire.Marshal(written(t))
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

// written is a table with texts for cells, and no more rows than are told.
func written(t acct.Table) mcp.Table {
	out := mcp.Table{Columns: t.Columns, More: t.More || len(t.Rows) > maxRows}
	for _, row := range t.Rows[:min(len(t.Rows), maxRows)] {
		cells := make([]string, len(row))
		for i, v := range row {
			if v == nil {
				v = "null"
			}
			cells[i] = cutText(fmt.Sprint(v))
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}

// cutText bounds a cell.
func cutText(text string) string { return text[:min(len(text), 1<<10)] }

// ask has a process of the caller answer a question about jobs; without a question it lists the tables.
func ask(ctx context.Context, s *front.Sys, query string, records []api.JobHistory) (t mcp.Table, err error) {
	if query == "" {
		return written(acct.OwnTables()), nil
	}
	input, err := wire.Marshal(question{query, records})
	if err != nil {
		return t, err
	}
	if len(input) > maxInput {
		return t, errors.New("the jobs of these days are too many for one question: use fewer days")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*maxTime)
	defer cancel()
	var out, errs limitedBuffer
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "internal", "sql")
	cmd.Args[0] = "muster"
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stdout = &out
	cmd.Stderr = &errs
	cmd.WaitDelay = time.Second
	if os.Getuid() == 0 && s.UID != 0 { // the question is the user's, and so is the process
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: step.Credential(s.UID, s.GID, nil)}
	}
	if err := cmd.Run(); err != nil {
		return t, whyFailed(cmd.ProcessState.ExitCode(), errs.String())
	}
	return t, wire.Unmarshal(out.Bytes(), &t)
}

// whyFailed tells why the process gave no answer: it exits with 1 if it says so itself.
func whyFailed(code int, said string) error {
	if line, _, _ := strings.Cut(said, "\n"); code == 1 && line != "" {
		return errors.New(line)
	}
	return errors.New("the question takes too much memory or time: use WHERE, LIMIT or aggregates")
}

// limitedBuffer keeps what a process says, up to a bound.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxOutput {
		return 0, errors.New("the answer is too large: use LIMIT")
	}
	return b.Buffer.Write(p)
}
