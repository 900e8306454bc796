package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// rerunTimeout limits one rerun. The longest tests take less than half of it.
const rerunTimeout = "-timeout=5m"

// runner runs go test and then the tests that failed.
type runner struct {
	out          io.Writer
	tries, flaky int
	budget       time.Duration
	end          time.Time // of the last rerun to begin
}

// failedTest names a test to run again.
type failedTest struct{ pkg, name string }

// run runs all tests and judges the results.
func (r *runner) run(args []string) error {
	if len(args) == 0 {
		return errors.New("which packages? the last argument names them: ./...")
	}
	res, err := goTest(r.out, args...)
	if err != nil {
		return err
	}
	failed, err := res.collect()
	if err != nil {
		return err
	}
	r.end = time.Now().Add(r.budget)
	var flaky []string
	var errs []error
	for _, t := range failed {
		if r.passes(t, args[:len(args)-1]) {
			flaky = append(flaky, t.name)
			continue
		}
		errs = append(errs, fmt.Errorf("%s of %s failed %d times", t.name, t.pkg, 1+r.tries))
	}
	for _, name := range flaky {
		fmt.Fprintln(r.out, "FLAKY:", name)
	}
	if len(flaky) > r.flaky {
		errs = append(errs, fmt.Errorf("%d tests are flaky; at most %d may be", len(flaky), r.flaky))
	}
	return errors.Join(errs...)
}

// collect returns the tests to run again, or an error if something else failed.
func (r *results) collect() (failed []failedTest, err error) {
	var errs []error
	for _, name := range r.names {
		p := r.packages[name]
		if why := p.failure(); why != "" {
			errs = append(errs, fmt.Errorf("package %s failed, but %s", name, why))
		}
		for _, t := range p.failed {
			failed = append(failed, failedTest{name, t})
		}
	}
	if r.err != nil && len(failed) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("go test: %w", r.err))
	}
	return failed, errors.Join(errs...)
}

// passes runs a test again until it passes, and reports whether it did.
func (r *runner) passes(t failedTest, flags []string) bool {
	args := slices.Concat(flags, []string{"-count=1", rerunTimeout, "-run=^" + t.name + "$", t.pkg})
	for range r.tries {
		if time.Now().After(r.end) {
			fmt.Fprintf(r.out, "rerun: no time is left for %s of %s\n", t.name, t.pkg)
			return false
		}
		fmt.Fprintf(r.out, "rerun: %s of %s\n", t.name, t.pkg)
		res, err := goTest(r.out, args...)
		if err != nil {
			fmt.Fprintln(r.out, "rerun:", err)
			return false
		}
		if p := res.packages[t.pkg]; res.err == nil && p != nil && !p.broken && p.passed[t.name] {
			return true
		}
	}
	return false
}
