package migrate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"dev.muster/adopt/nodes"
	"dev.muster/durable"
	"dev.muster/wire"
)

// defaultJournal is where the state of moving nodes is kept.
const defaultJournal = "/var/lib/muster/adopt-nodes.json"

// maxJournal bounds the journal, in bytes.
const maxJournal = 64 << 20

// moves is the journal, open for one process.
type moves struct {
	file  string
	lock  *os.File
	list  []*nodes.Move
	saved string // its text as it is on the disk
}

// openMoves reads the journal. Only one process at a time may change it.
func openMoves(file string, change bool) (*moves, error) {
	j := &moves{file: file}
	if change {
		lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("journal: %w; --journal FILE names another one", err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = lock.Close()
			return nil, fmt.Errorf("journal %s: another process moves nodes; wait until it ends", file)
		}
		j.lock = lock
	}
	text, err := readJournal(file)
	if err == nil && len(text) > 0 {
		err = wire.Unmarshal(text, &j.list)
	}
	if err != nil {
		j.close()
		return nil, fmt.Errorf("journal %s: %w", file, err)
	}
	j.saved = string(text)
	return j, nil
}

// readJournal reads a file of the caller's own: its commands are run. A file that is not there is empty.
func readJournal(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() || info.Mode()&0o022 != 0 {
		return nil, errors.New("other users may change it; it must be yours, with mode 0600")
	}
	return io.ReadAll(io.LimitReader(f, maxJournal))
}

func (j *moves) close() {
	if j.lock != nil {
		_ = j.lock.Close()
	}
}

// save puts the journal on the disk, if it has changed.
func (j *moves) save() error {
	text, err := wire.Marshal(j.list)
	if err != nil || string(text) == j.saved {
		return err
	}
	if err := durable.WriteFile(j.file, text, 0o600); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.saved = string(text)
	return nil
}

// find returns the move of a node, nil if it has none.
func (j *moves) find(name string) *nodes.Move {
	i := slices.IndexFunc(j.list, func(m *nodes.Move) bool { return m.Node == name })
	if i < 0 {
		return nil
	}
	return j.list[i]
}
