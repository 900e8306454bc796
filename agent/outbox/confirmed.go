package outbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dev.muster/cluster"
	"dev.muster/durable"
)

// Confirmed are the launches of gangs whose batch script is started here once all their nodes have confirmed. If the
// daemon dies in between, its next life must know whether an earlier one has started the script: it has
// not, if the supervisor is the one of then and does not know the step. So the first node keeps, from
// its own confirmation until the job is over, a file that names the supervisor's instance. The caller
// sees to it that one at a time uses it.
type Confirmed struct {
	dir string
	has map[Attempt]bool
}

// OpenConfirmed reads which attempts an earlier life confirmed under this supervisor, from a folder that
// it makes; the files of others go.
func OpenConfirmed(dir, instance string) (*Confirmed, error) {
	s := &Confirmed{dir: filepath.Join(dir, "staged"), has: map[Attempt]bool{}}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep confirmed launches: %w", err)
	}
	found, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("read confirmed launches: %w", err)
	}
	for _, f := range found {
		path := filepath.Join(s.dir, f.Name())
		k, err := parseAttempt(f.Name())
		if err == nil && instance != "" && holds(path, instance) {
			s.has[k] = true
			continue
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// file is where an attempt is kept: JOB.ATTEMPT.NODE.
func (s *Confirmed) file(k Attempt) string {
	return filepath.Join(s.dir, fmt.Sprintf("%d.%d.%s", k.Job, k.Attempt, k.Node))
}

func parseAttempt(name string) (k Attempt, err error) {
	id, rest, _ := strings.Cut(name, ".")
	attempt, node, _ := strings.Cut(rest, ".")
	_, err1 := fmt.Sscan(id, &k.Job)
	_, err2 := fmt.Sscan(attempt, &k.Attempt)
	k.Node = cluster.NodeName(node)
	return k, errors.Join(err1, err2)
}

func holds(path, text string) bool {
	is, err := os.ReadFile(path)
	return err == nil && string(is) == text
}

// Add keeps that this life confirms an attempt under this supervisor; without an instance nothing is kept.
func (s *Confirmed) Add(k Attempt, instance string) error {
	if instance == "" {
		return nil
	}
	if err := durable.Swap(s.file(k), []byte(instance), 0o600); err != nil {
		return err
	}
	s.has[k] = true
	return nil
}

// Has reports whether an attempt was confirmed under this supervisor.
func (s *Confirmed) Has(k Attempt) bool { return s.has[k] }

// Forget forgets the attempts of fresh nodes that are not named.
func (s *Confirmed) Forget(fresh map[cluster.NodeName]uint64, named map[Attempt]bool) {
	for k := range s.has {
		if _, ok := fresh[k.Node]; !ok || named[k] {
			continue
		}
		delete(s.has, k)
		_ = os.Remove(s.file(k)) // if it stays, the next start removes it
	}
}
