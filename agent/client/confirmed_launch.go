package client

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dev.muster/cluster"
	"dev.muster/durable"
)

// A gang's batch script is started once all its nodes have confirmed. If the daemon dies in between,
// its next life must know whether an earlier one has started the script: it has not, if the supervisor
// is the one of then and does not know the step. So the first node keeps, from its own confirmation
// until the job is over, a file that names the supervisor's instance.

const stagedDir = "staged"

func (k runKey) file() string { return fmt.Sprintf("%d.%d.%s", k.job, k.attempt, k.node) }

// loadStaged reads which attempts an earlier life confirmed under this supervisor.
func (c *Client) loadStaged(instance string) error {
	dir := filepath.Join(c.cfg.Dir, stagedDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep staged gangs: %w", err)
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read staged gangs: %w", err)
	}
	for _, f := range found {
		var k runKey
		id, rest, _ := strings.Cut(f.Name(), ".")
		attempt, node, _ := strings.Cut(rest, ".")
		_, err1 := fmt.Sscan(id, &k.job)
		_, err2 := fmt.Sscan(attempt, &k.attempt)
		k.node = cluster.NodeName(node)
		text, err3 := os.ReadFile(filepath.Join(dir, f.Name()))
		if errors.Join(err1, err2, err3) == nil && instance != "" && string(text) == instance {
			c.staged[k] = true
		} else if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// stage keeps that this life confirms the attempt. Called with mu held.
func (c *Client) stage(k runKey) {
	instance := c.cfg.Runner.Instance()
	if instance == "" {
		return
	}
	if err := durable.Swap(filepath.Join(c.cfg.Dir, stagedDir, k.file()), []byte(instance), 0o600); err != nil {
		c.slog.Warn("a gang could not be staged: a crash of this daemon now would lose it", "job", k.job, "err", err)
		return
	}
	c.staged[k] = true
}

// unstage forgets the attempts of nodes that the servers name no more. Called with mu held.
func (c *Client) unstage(fresh map[cluster.NodeName]uint64, named map[runKey]bool) {
	for k := range c.staged {
		if _, ok := fresh[k.node]; ok && !named[k] {
			delete(c.staged, k)
			_ = os.Remove(filepath.Join(c.cfg.Dir, stagedDir, k.file())) // if it stays, the next start removes it
		}
	}
}
