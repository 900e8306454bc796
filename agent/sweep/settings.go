package sweep

import (
	"os"
	"path/filepath"
	"slices"

	"dev.muster/durable"
	"dev.muster/gpu"
	"dev.muster/wire"
)

// A job's changes of its GPUs (their compute mode, clocks …) are undone when it is over. So the former values
// are read when a job comes, and kept in a file until the GPU is free: the daemon may be another one by
// then.

// settings are what GPUs with jobs were set to before, by UUID, in a file. Its user sees to it that one at a time
// changes them.
type settings struct {
	path string
	was  map[string]gpu.Settings
}

// loadSettings reads what an earlier life has kept in a folder. With an error nothing is known, and it goes on.
func loadSettings(dir string) (*settings, error) {
	s := &settings{path: filepath.Join(dir, "gpu-settings")}
	text, err := os.ReadFile(s.path)
	if err == nil {
		err = wire.Unmarshal(text, &s.was)
	}
	if os.IsNotExist(err) {
		err = nil
	}
	if s.was == nil {
		s.was = map[string]gpu.Settings{}
	}
	return s, err
}

// Of is what a whole GPU was set to; nil: nothing is kept.
func (s *settings) Of(board string) gpu.Settings { return s.was[board] }

// Keep keeps what boards are set to now, of which nothing is kept.
func (s *settings) Keep(boards []string, loads []gpu.Load) error {
	kept := false
	for i := range loads {
		l := &loads[i]
		if slices.Contains(boards, l.UUID) && s.was[l.UUID] == nil && len(l.Settings) > 0 {
			s.was[l.UUID] = l.Settings
			kept = true
		}
	}
	if !kept {
		return nil
	}
	return s.save()
}

// Forget lets go of what GPUs were set to before jobs that are over.
func (s *settings) Forget(list []GPU) error {
	dropped := false
	for i := range list {
		b := Board(&list[i].GPU)
		if list[i].Before != nil && s.was[b] != nil {
			delete(s.was, b)
			dropped = true
		}
	}
	if !dropped {
		return nil
	}
	return s.save()
}

func (s *settings) save() error {
	text, err := wire.Marshal(s.was)
	if err != nil {
		return err
	}
	return durable.Swap(s.path, text, 0o600)
}
