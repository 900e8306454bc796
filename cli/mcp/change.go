package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dev.muster/slurm/control"
	"dev.muster/slurm/jobfield"
)

var cancelTool = tool{name: "cancel", title: "Cancel jobs", writes: true, destroys: true, repeatOK: true,
	help: "Cancel jobs, or send them a signal. Cancelled work is lost."}

type cancelIn struct {
	IDs    []any  `json:"ids" jsonschema:"job IDs"`
	Signal string `json:"signal,omitempty" jsonschema:"signal to send instead of ending the jobs, e.g. USR1"`
}

func (c *caller) cancel(_ context.Context, in cancelIn) (string, error) {
	words, _, err := targets(in.IDs)
	if err != nil {
		return "", err
	}
	if len(words) == 0 {
		return "", errors.New("ids: name at least one job")
	}
	argv := words
	done := "cancelled"
	if in.Signal != "" {
		if !isWord(in.Signal) {
			return "", fmt.Errorf("signal %q: use a name such as USR1", cutAt(in.Signal, 40))
		}
		argv, done = append([]string{"--signal=" + in.Signal}, words...), "signalled"
	}
	// With -v, scancel also reports jobs that are unknown or have ended.
	said, err := c.run("scancel", control.Scancel, append([]string{"-v"}, argv...)...)
	if err != nil {
		return "", err
	}
	if problems := problemsIn(said); problems != "" {
		return "", errors.New(problems)
	}
	return done + ": " + strings.Join(words, " "), nil
}

// problemsIn returns the lines in which scancel says that something failed.
func problemsIn(said string) string {
	var list []string
	for line := range strings.Lines(said) {
		if strings.Contains(line, "error: ") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return strings.Join(list, "\n")
}

// isWord reports whether a text has letters, digits and underscores only.
func isWord(text string) bool {
	const known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	return text != "" && len(text) <= 32 && strings.Trim(text, known) == ""
}

var updateTool = tool{name: "update", title: "Change a job", writes: true, destroys: true, repeatOK: true,
	help: "Change a job by keys of scontrol update (e.g. timelimit, partition, qos, numnodes, dependency, nice, " +
		"comment), or hold, release or requeue it. Requeueing a running job ends its current attempt."}

type updateIn struct {
	ID     any               `json:"id" jsonschema:"job ID"`
	Set    map[string]string `json:"set,omitempty" jsonschema:"keys of scontrol update and their new values"`
	Action string            `json:"action,omitempty" jsonschema:"hold, release or requeue"`
}

func (c *caller) update(_ context.Context, in updateIn) (string, error) {
	word, _, err := target(in.ID)
	if err != nil {
		return "", err
	}
	argv := []string{"update", "jobid=" + word}
	for _, key := range slices.Sorted(maps.Keys(in.Set)) {
		if !isJobKey(key) {
			return "", fmt.Errorf("set: unknown key %q; see muster://manual/scontrol", cutAt(key, 40))
		}
		argv = append(argv, key+"="+in.Set[key])
	}
	switch {
	case !slices.Contains([]string{"", "hold", "release", "requeue"}, in.Action):
		return "", fmt.Errorf("action %q: use hold, release or requeue", cutAt(in.Action, 40))
	case len(in.Set) == 0 && in.Action == "":
		return "", errors.New("nothing to do: give set or action")
	}
	said := ""
	if len(in.Set) > 0 {
		if said, err = c.run("scontrol", control.Scontrol, argv...); err != nil {
			return "", err
		}
	}
	if in.Action != "" {
		more, err := c.run("scontrol", control.Scontrol, in.Action, word)
		if err != nil {
			return "", err
		}
		said += more
	}
	return "changed job " + word + "\n" + said, nil
}

// isJobKey reports whether a key of scontrol update is one of jobs.
func isJobKey(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(jobfield.Rows[:], func(r jobfield.Row) bool { return r.Key != "" && r.Key == key })
}
