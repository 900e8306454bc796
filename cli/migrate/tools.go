package migrate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// Bounds of a command of Slurm.
const (
	toolTimeout  = 30 * time.Second
	toolMaxBytes = 64 << 20
)

// slurmTools calls Slurm's commands, in bounded time and memory.
type slurmTools struct {
	ctx     context.Context
	timeout time.Duration                        // 0: toolTimeout
	call    func(words []string) (string, error) // of tests; nil: programs are called
	env     []string                             // more variables
	in      string                               // the input
}

// check makes sure that the commands in PATH are Slurm's: after the move, the same names may be muster's.
func (t *slurmTools) check() error {
	text, err := t.run("scontrol", "--version")
	if err != nil {
		return err
	}
	if strings.Contains(text, "muster") {
		return errors.New("scontrol in PATH is a link to muster; put the folder of Slurm's commands first in PATH")
	}
	return nil
}

// run calls a command and returns its output.
func (t *slurmTools) run(words ...string) (string, error) {
	if t.call != nil {
		return t.call(words)
	}
	said, err := t.bytes(words...)
	return string(said), err
}

// bytes calls a command and returns its output, at most toolMaxBytes.
func (t *slurmTools) bytes(words ...string) ([]byte, error) {
	name := strings.Join(words, " ")
	ctx, cancel := context.WithTimeout(t.ctx, cmp.Or(t.timeout, toolTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(toolEnviron(os.Environ()), t.env...)
	cmd.Stdin = strings.NewReader(t.in)
	out, said := boundedBuffer{max: toolMaxBytes, full: cancel}, boundedBuffer{max: 4 << 10}
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	switch {
	case out.over:
		return nil, fmt.Errorf("%s: its output exceeds %d MB", name, toolMaxBytes>>20)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: no answer for %v", name, cmp.Or(t.timeout, toolTimeout))
	case err != nil && said.kept.Len() > 0:
		return nil, fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(said.kept.String()))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out.kept.Bytes(), nil
}

// boundedBuffer keeps the beginning of what is written. It has no ReadFrom, which would read without a bound.
type boundedBuffer struct {
	kept bytes.Buffer
	max  int
	over bool
	full func() // called when more is written; nil: the rest is dropped
}

// Write keeps p if there is room.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if room := b.max - b.kept.Len(); len(p) > room {
		b.over = true
		b.kept.Write(p[:room])
		if b.full != nil {
			b.full()
		}
		return len(p), nil
	}
	return b.kept.Write(p)
}

// toolEnviron leaves out the variables that change the output of Slurm's commands.
func toolEnviron(environ []string) []string {
	drop := []string{"SQUEUE_", "SCONTROL_", "SACCTMGR_", "SCANCEL_", "SLURM_TIME_FORMAT=", "SLURM_BITSTR_LEN=",
		"SLURM_CLUSTERS="}
	kept := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return slices.ContainsFunc(drop, func(name string) bool { return strings.HasPrefix(v, name) })
	})
	return append(kept, "SLURM_TIME_FORMAT=standard", "SLURM_BITSTR_LEN=0") // whole lists of tasks
}

// takeFlags sets the options behind the first argument, and returns the other words.
func takeFlags(c *cli.Context) (words []string, err error) {
	args := c.Args().Slice()
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		if !strings.HasPrefix(word, "-") {
			words = append(words, word)
			continue
		}
		name, value, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !has && len(args) == 0 {
			return nil, fmt.Errorf("%s needs a value", word)
		}
		if !has {
			value, args = args[0], args[1:]
		}
		if err := c.Set(name, value); err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
	}
	return words, nil
}
