package farm

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// coordinated runs a list by workers in this process, as a step would.
func coordinated(t *testing.T, o Options, w WorkerOptions, list string) (sum Summary, out, errs string, err error) {
	t.Helper()
	w.CPUs = max(w.CPUs, 1)
	ordersIn, orders := io.Pipe()
	reportsIn, reports := io.Pipe()
	var mu sync.Mutex
	var over sync.WaitGroup
	var inputs []*io.PipeWriter
	for rank := range o.Workers {
		in, to := io.Pipe()
		inputs = append(inputs, to)
		r, from := io.Pipe()
		over.Go(func() {
			if err := Work(w, rank, in, from); err != nil {
				t.Errorf("worker %d: %v", rank, err)
			}
			from.Close()
		})
		over.Go(func() {
			for in := bufio.NewReader(r); ; {
				line, err := in.ReadString('\n')
				if err != nil {
					return
				}
				mu.Lock()
				fmt.Fprintf(reports, "%2d: %s", rank, line)
				mu.Unlock()
			}
		})
	}
	go func() { // the input of a step goes to all of its tasks
		for in := bufio.NewReader(ordersIn); ; {
			line, err := in.ReadBytes('\n')
			for _, to := range inputs {
				if err != nil {
					to.Close()
				} else {
					_, _ = to.Write(line)
				}
			}
			if err != nil {
				return
			}
		}
	}()
	var stdout, stderr bytes.Buffer
	sum, err = Coordinate(o, Streams{Tasks: strings.NewReader(list), Reports: reportsIn, Orders: orders,
		Out: &stdout, Err: &stderr})
	go func() { _, _ = io.Copy(io.Discard, reportsIn) }()
	over.Wait()
	return sum, stdout.String(), stderr.String(), err
}

// numbered is a list of so many lines of a command, with %d for the number.
func numbered(n int, command string) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, command+"\n", k+1)
	}
	return b.String()
}

// TestFarm: every task runs once, the output of each is whole, and failures are counted and told.
func TestFarm(t *testing.T) {
	sum, out, errs, err := coordinated(t, Options{Workers: 2}, WorkerOptions{},
		numbered(200, "for k in 1 2 3; do echo %[1]d.$k; done; echo e%[1]d >&2; test %[1]d != 17"))
	if err != nil || sum != (Summary{Done: 199, Failed: 1}) {
		t.Errorf("%+v, %v", sum, err)
	}
	for k := range 200 {
		if want := fmt.Sprintf("%[1]d.1\n%[1]d.2\n%[1]d.3\n", k+1); strings.Count("\n"+out, "\n"+want) != 1 {
			t.Errorf("the output of task %d is not whole: it is not there once as %q", k+1, want)
		}
	}
	for _, want := range []string{"task 17 (for k", "exit code 1", "e200\n"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in standard error:\n%s", want, errs)
		}
	}
}

// TestFarmKeepsOrder: output is in the order of the list, whichever task ends first, and however long it is.
func TestFarmKeepsOrder(t *testing.T) {
	_, out, _, err := coordinated(t, Options{Workers: 2, KeepOrder: true}, WorkerOptions{},
		"sleep 0.2; head -c 100000 /dev/zero | tr '\\0' x; echo\necho two\n"+numbered(50, "echo n%d"))
	want := strings.Repeat("x", 100000) + "\ntwo\n" + strings.ReplaceAll(numbered(50, "echo n%d"), "echo ", "")
	if err != nil || out != want {
		t.Errorf("%v, %d bytes, want %d: …%.80q", err, len(out), len(want), out[max(len(out)-80, 0):])
	}
}

// TestFarmRetries: a task that fails is tried again, and what the attempt before wrote is not shown.
func TestFarmRetries(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	list := "echo $MUSTER_FARM_ATTEMPT; test $MUSTER_FARM_ATTEMPT = 3\nfalse\n" +
		"test -e " + mark + " || { touch " + mark + "; kill -9 $$; }\n"
	sum, out, _, err := coordinated(t, Options{Workers: 1, Retries: 2}, WorkerOptions{}, list)
	if err != nil || sum != (Summary{Done: 2, Failed: 1, Retried: 5}) || out != "3\n" {
		t.Errorf("%+v, %v, %q", sum, err, out)
	}
}

// TestFarmLimit: a task over its time limit is ended with all that it has started.
func TestFarmLimit(t *testing.T) {
	began := time.Now()
	sum, _, errs, err := coordinated(t, Options{Workers: 1}, WorkerOptions{Limit: 100 * time.Millisecond},
		"sleep 300 & wait\n")
	if err != nil || sum.Failed != 1 || !strings.Contains(errs, "its time limit") || time.Since(began) > time.Minute {
		t.Errorf("%+v, %v after %v: %s", sum, err, time.Since(began), errs)
	}
}

// TestFarmTooLarge: tasks that fit nowhere are an error, not a wait without end.
func TestFarmTooLarge(t *testing.T) {
	_, _, _, err := coordinated(t, Options{Workers: 1}, WorkerOptions{CPUs: 100_000}, "true\n")
	if err == nil || !strings.Contains(err.Error(), "no task fits on node") {
		t.Errorf("%v", err)
	}
}

// TestJournal: what is done is not run again, what failed is; a line that was cut off counts for nothing; another list
// and another file are refused.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	run := func(list string, resume bool) (Summary, string, error) {
		j, err := OpenJournal(path, resume)
		if err != nil {
			return Summary{}, "", err
		}
		defer j.Close()
		sum, out, _, err := coordinated(t, Options{Workers: 1, Journal: j}, WorkerOptions{}, list)
		return sum, out, err
	}
	list := "echo one\nfalse\necho three\n"
	if sum, _, err := run(list, false); err != nil || sum != (Summary{Done: 2, Failed: 1}) {
		t.Fatalf("%+v, %v", sum, err)
	}
	if _, _, err := run(list, false); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a journal that exists, without --resume: %v", err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("4\t1\t0\t0\t2026"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	want := Summary{Done: 1, Failed: 1, Skipped: 2}
	if sum, out, err := run(list+"echo four\n", true); err != nil || sum != want || out != "four\n" {
		t.Errorf("%+v, %q, %v", sum, out, err)
	}
	if _, _, err := run("echo other\n", true); err == nil || !strings.Contains(err.Error(), "another command") {
		t.Errorf("another list: %v", err)
	}
	if err := os.WriteFile(path, []byte("precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := run(list, true); err == nil {
		t.Error("another file is taken for a journal")
	}
	if b, _ := os.ReadFile(path); string(b) != "precious\n" {
		t.Errorf("another file was changed: %q", b)
	}
}
