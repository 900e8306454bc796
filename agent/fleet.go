package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/durable"
)

// fleet is the list of servers that a member knows, kept in a file.
type fleet struct {
	file   string
	client *api.Client // of whichever server answers

	writing sync.Mutex // held while the file is written; taken before mu
	kept    []string   // what the file holds, sorted; guarded by writing

	mu    sync.Mutex // never held while the disk is waited for: calls go on when that hangs
	addrs []string   // the one in use first
}

// openFleet reads the file; first are the addresses to begin with.
func openFleet(file string, conf *tls.Config, first []string) (*fleet, error) {
	f := &fleet{file: file, addrs: slices.Clone(first)}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	kept := strings.Fields(string(text))
	f.kept = slices.Sorted(slices.Values(kept))
	for _, a := range kept {
		if !slices.Contains(f.addrs, a) {
			f.addrs = append(f.addrs, a)
		}
	}
	f.client = &api.Client{Dial: func(ctx context.Context) (api.Conn, error) {
		return f.dial(ctx,
			func(ctx context.Context, addr string) (api.Conn, error) { return dialMember(ctx, addr, conf) })
	}}
	return f, nil
}

// nextDial is how long a server may take to be connected to before the next one is tried beside it.
const nextDial = 750 * time.Millisecond

// attempt is what came of connecting to a server.
type attempt struct {
	conn api.Conn
	addr string
	err  error
}

// dial connects to whichever server is there first. One that is stopped accepts connections all the same and says
// no more, and one that has much to do says it late: so none is given up for another, but all are tried, one after
// the other.
func (f *fleet) dial(ctx context.Context, connect func(context.Context, string) (api.Conn, error)) (api.Conn, error) {
	list := f.list()
	if len(list) == 0 {
		return nil, cluster.Errorf(cluster.Unavailable, "", "no server is known; give one with --join")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()                           // the others' attempts end
	answers := make(chan attempt, len(list)) // whoever comes late finds room
	var last error
	for tried, waiting := 0, 0; tried < len(list) || waiting > 0; {
		var late <-chan time.Time
		if tried < len(list) {
			addr := list[tried]
			tried, waiting = tried+1, waiting+1
			go func() {
				conn, err := connect(ctx, addr)
				answers <- attempt{conn, addr, err}
			}()
			late = time.After(nextDial)
		}
		select {
		case a := <-answers:
			waiting--
			if a.err == nil {
				f.prefer(a.addr)
				go closeAll(answers, waiting)
				return a.conn, nil
			}
			last = a.err
		case <-late:
		}
	}
	return nil, last
}

// closeAll closes the connections of so many attempts that come too late.
func closeAll(attempts <-chan attempt, n int) {
	for range n {
		if a := <-attempts; a.err == nil {
			a.conn.Close()
		}
	}
}

func (f *fleet) list() []string { f.mu.Lock(); defer f.mu.Unlock(); return slices.Clone(f.addrs) }

// first is the server in use.
func (f *fleet) first() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.addrs) == 0 {
		return ""
	}
	return f.addrs[0]
}

// next turns to another server.
func (f *fleet) next() { f.leave(f.first()) }

// leave turns from a server to the next one, unless that was done already: many calls may fail at once.
func (f *fleet) leave(addr string) {
	f.mu.Lock()
	left := len(f.addrs) > 1 && f.addrs[0] == addr
	if left {
		f.addrs = append(f.addrs[1:], f.addrs[0])
	}
	f.mu.Unlock()
	if left {
		f.client.Close()
	}
}

// prefer puts a server first.
func (f *fleet) prefer(addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.addrs, addr); i > 0 {
		f.addrs = slices.Concat(f.addrs[i:], f.addrs[:i])
	}
}

// maxHeard bounds the list as far as it is hearsay: whoever has a key of the gossip can make up servers. A group has
// seven at most, and a server tells all of them (learn).
const maxHeard = 32

// add puts servers that are new at the end of the list, while it is shorter than maxHeard.
func (f *fleet) add(addrs []string) error {
	return f.change(func(now []string) []string {
		for _, a := range addrs {
			if len(now) >= maxHeard {
				break
			}
			now = union(now, []string{a})
		}
		return now
	})
}

// learn replaces the list by what a server says, keeping the order of those that stay.
func (f *fleet) learn(servers []api.Server) error {
	var fresh []string
	for _, s := range servers {
		fresh = append(fresh, s.Addr)
	}
	return f.change(func(now []string) []string {
		stay := slices.DeleteFunc(now, func(a string) bool { return !slices.Contains(fresh, a) })
		return union(stay, fresh)
	})
}

// union adds to a list what it lacks.
func union(list, more []string) []string {
	for _, a := range more {
		if a != "" && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// change makes another list of a copy of the present one, unless nothing would be left, and has the file hold it.
func (f *fleet) change(how func(now []string) []string) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	out := how(slices.Clone(f.addrs))
	if len(out) > 0 {
		f.addrs = slices.Clone(out)
	}
	f.mu.Unlock()
	list := slices.Sorted(slices.Values(out)) // the order is of the moment: it is no reason to write
	if len(out) == 0 || slices.Equal(list, f.kept) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f.file), 0o700); err != nil {
		return err
	}
	if err := durable.WriteFile(f.file, []byte(strings.Join(out, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	f.kept = list
	return nil
}
