package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/durable"
	"dev.muster/wire"
)

// Archive writes the records that a cutoff takes into a file, which is whole once it has its name. Without any
// there is none.
func (k *Keeper) Archive(ctx context.Context, c cluster.Cutoff, dir, name string) (file string, n int, err error) {
	f, err := os.CreateTemp(dir, ".archive-*")
	if err != nil {
		return "", 0, err
	}
	defer func() {
		if file == "" {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	out := bufio.NewWriterSize(f, 1<<16)
	first := time.Unix(c.Before, 0)
	line := api.AppendArchiveHead(nil, name, c.Kind)
	for a, err := range k.Old(ctx, c) {
		if err == nil {
			_, err = out.Write(append(line, '\n'))
		}
		if err == nil {
			line, err = wire.Append(line[:0], &a)
		}
		if err != nil {
			return "", 0, errors.Join(err, f.Close())
		}
		if at := a.Began(); n == 0 || at.Before(first) {
			first = at
		}
		n++
	}
	_, err = out.Write(append(line, '\n'))
	if err := errors.Join(err, out.Flush(), f.Sync(), f.Close()); err != nil || n == 0 {
		return "", 0, err
	}
	stamp := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }
	to := filepath.Join(dir,
		fmt.Sprintf("%s_%s_archive_%s_%s", name, c.Kind, stamp(first), stamp(time.Unix(c.Before, 0))))
	if err := durable.Rename(f.Name(), to); err != nil {
		return "", 0, err
	}
	return to, n, nil
}
