package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// pkg collects the results of one package.
type pkg struct {
	output  strings.Builder
	running map[string]bool // root tests without a result
	passed  map[string]bool
	failed  []string // root tests, in the order of their results
	broken  bool     // the package failed
	// finished reports that the test program ran all tests: it printed FAIL and exited with status 1, for which
	// go test prints nothing but its own line. It prints other statuses and signals in between.
	finished bool
}

// failure returns why the package failed without a test that could be rerun, or "".
func (p *pkg) failure() string {
	switch {
	case !p.broken:
		return ""
	case len(p.failed) == 0:
		return "no test of it failed"
	case len(p.running) > 0 || !p.finished:
		return "its tests did not run to the end"
	}
	return ""
}

// results are the results of one run of go test.
type results struct {
	packages map[string]*pkg
	names    []string // of packages, in the order in which they finished
	err      error    // of the go command
}

// goTest runs go test -json and copies the output to out, one package at a time.
func goTest(out io.Writer, args ...string) (*results, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	res := &results{packages: map[string]*pkg{}}
	in := bufio.NewReader(pipe)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			res.read(line, out)
		}
		if err != nil {
			break
		}
	}
	res.err = cmd.Wait()
	for name, p := range res.packages {
		if !slices.Contains(res.names, name) { // killed before it finished
			p.broken = true
			res.names = append(res.names, name)
			io.WriteString(out, p.output.String())
		}
	}
	return res, nil
}

// read records one line. A line that is not an event, such as an error of the go command, is printed.
func (r *results) read(line []byte, out io.Writer) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		out.Write(line)
		return
	}
	if e.Package == "" { // build output
		io.WriteString(out, e.Output)
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &pkg{running: map[string]bool{}, passed: map[string]bool{}}
		r.packages[e.Package] = p
	}
	p.output.WriteString(e.Output)
	if e.Test != "" {
		p.readTest(e)
		return
	}
	switch e.Action {
	case "output":
		p.finished = e.Output == "FAIL\n" || p.finished && strings.HasPrefix(e.Output, "FAIL\t")
	case "pass", "fail", "skip":
		p.broken = e.Action == "fail"
		r.names = append(r.names, e.Package)
		io.WriteString(out, p.output.String())
		p.output.Reset()
	}
}

// readTest records an event of a root test. The result of a subtest is part of the root test's.
func (p *pkg) readTest(e event) {
	if strings.Contains(e.Test, "/") {
		return
	}
	switch e.Action {
	case "run":
		p.running[e.Test] = true
	case "pass", "fail", "skip":
		delete(p.running, e.Test)
		p.passed[e.Test] = e.Action == "pass"
	}
	if e.Action == "fail" {
		p.failed = append(p.failed, e.Test)
	}
}
