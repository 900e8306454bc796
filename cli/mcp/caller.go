package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dev.muster/api"
	"dev.muster/slurm/front"
)

// World is what the tools need of the world outside.
type World struct {
	Version string
	// Sys returns the surroundings of a front-end that acts for the caller and reads in.
	Sys func(prog string, in io.Reader, out, errs io.Writer) *front.Sys
	// Lint prints remarks on the job script that it reads.
	Lint func(s *front.Sys)
	// Query answers a question in SQL about jobs, in bounded memory and time; without one it lists the tables.
	Query func(ctx context.Context, s *front.Sys, query string, records []api.JobHistory) (Table, error)
	// Begin reserves the memory for a question of the caller, before its jobs are read; nil: there is no need.
	Begin func(s *front.Sys) (end func(), err error)
	// Manual returns the manual page of a command as plain text, or with an empty name the list of pages.
	Manual func(name string) (text string, ok bool)
	// Schemas keeps the schemas of the tools' arguments for further servers; nil: they are made again.
	Schemas *sdk.SchemaCache
	// Modules returns the modules that the caller can load; none: unknown.
	Modules func() []string
}

// Table is the answer to a question in SQL.
type Table struct {
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	More    bool       `json:"more,omitempty"` // there were more rows
}

// tool is one of the server's, before its arguments are known.
type tool struct {
	name, title, help          string
	writes, destroys, repeatOK bool
}

// caller is for whom tools act.
type caller struct{ w *World }

// errorText returns what is wrong, in Slurm's words and in the servers'.
func errorText(err error) string {
	var e *api.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text, _ := front.ErrorText(err)
	var parts []string
	for _, part := range []string{text, e.Message, e.Hint} {
		if part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// sys returns the surroundings of calls that print nothing.
func (c *caller) sys() *front.Sys {
	return c.w.Sys("muster", strings.NewReader(""), io.Discard, io.Discard)
}

// run runs a front-end and returns what it printed. An exit code other than 0 is an error with its words.
func (c *caller) run(prog string, f func(*front.Sys, []string) int, argv ...string) (string, error) {
	var out, errs bytes.Buffer
	s := c.w.Sys(prog, strings.NewReader(""), &out, &errs)
	if code := f(s, argv); code != 0 {
		said := strings.TrimSpace(errs.String() + out.String())
		return "", errors.New(cmp.Or(said, fmt.Sprintf("%s: exit code %d", prog, code)))
	}
	return out.String() + errs.String(), nil
}
