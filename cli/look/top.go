package look

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// Pace of muster top.
const (
	topPace  = time.Second      // between two looks at the cluster, at least
	topClock = time.Second      // how often the times are renewed
	topAnew  = 30 * time.Second // a look even when nothing is told, for what the stream does not tell
)

// TopSorts names the orders of muster top.
func TopSorts() (names []string) {
	for _, o := range topOrders {
		names = append(names, o.name)
	}
	return names
}

// Top shows jobs and the use of GPUs, live on a terminal and else once (muster top). order is one of TopSorts.
func Top(sys *front.Sys, order string) int {
	s := &topScreen{sys: sys, paint: painterOf(sys)}
	if s.order = slices.Index(TopSorts(), order); s.order < 0 {
		return sys.Fail("jobs cannot be sorted by %q: want %s", order, strings.Join(TopSorts(), ", "))
	}
	st, err := askStatus(sys)
	if err != nil {
		return sys.Failed(err)
	}
	s.st = st
	out, ok := sys.Stdout.(*os.File)
	in, typed := sys.Stdin.(*os.File)
	if !ok || !typed || !front.IsTerminal(out) || !front.IsTerminal(in) {
		fmt.Fprintln(sys.Stdout, strings.Join(s.lines(0, 0), "\n"))
		return 0
	}
	return s.live(in, out)
}

// live follows the cluster until q or an interrupt.
func (s *topScreen) live(in, out *os.File) int {
	restore, err := front.MakeRaw(in)
	if err != nil {
		return s.sys.Fail("the terminal cannot be read key by key: %v", err)
	}
	defer restore()
	_, _ = out.WriteString("\x1b[?1049h\x1b[?25l") // another screen, without a cursor
	defer func() { _, _ = out.WriteString("\x1b[?25h\x1b[?1049l") }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	keys, changed, signals := make(chan string), make(chan struct{}, 1), make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGWINCH)
	defer signal.Stop(signals)
	go readKeys(ctx, in, keys) // ends with the process: a read of a terminal cannot be called off
	go watchChanges(s.sys, ctx, changed)
	clock := time.NewTicker(topClock)
	defer clock.Stop()
	due := false
	for looked := time.Now(); ; {
		if since := time.Since(looked); due && since >= topPace || since >= topAnew {
			s.look()
			looked, due = time.Now(), false
		}
		s.draw(out)
		select {
		case <-changed:
			due = true
		case <-clock.C:
			s.panel.renew()
		case sig := <-signals:
			if sig != syscall.SIGWINCH {
				return 0
			}
			s.shown = nil
		case k := <-keys:
			if s.key(k) {
				return 0
			}
		}
	}
}

// look asks again; while nobody answers the last answer stays.
func (s *topScreen) look() {
	st, err := askStatus(s.sys)
	if s.trace = ""; err != nil {
		text, _ := front.ErrorText(err)
		s.trace = text + "; trying again"
		return
	}
	s.st = st
}

// readKeys hands on what is typed, a key at a time: a character, or the name that topKeys has for a sequence.
func readKeys(ctx context.Context, in *os.File, keys chan<- string) {
	b := make([]byte, 64)
	for {
		n, err := in.Read(b)
		if n == 0 || err != nil {
			return
		}
		for _, k := range splitKeys(string(b[:n])) {
			select {
			case keys <- k:
			case <-ctx.Done():
				return
			}
		}
	}
}

// watchChanges tells of every change until ctx ends.
func watchChanges(s *front.Sys, ctx context.Context, changed chan<- struct{}) {
	c := s.Client()
	defer c.Close()
	var since *uint64
	for ctx.Err() == nil {
		err := api.Follow(ctx, c, api.WatchEvents, api.EventQuery{Since: since}, func(e *api.Event) error {
			if since = &e.Index; e.Kind == api.EventBeat {
				return nil
			}
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
		if errors.Is(err, context.Canceled) {
			return
		}
		time.Sleep(show.FollowPause)
	}
}

// draw puts what has changed on the terminal, at once.
func (s *topScreen) draw(out *os.File) {
	size, err := front.TerminalSize(out)
	if err != nil || size.Cols == 0 {
		size.Rows, size.Cols = 24, 80
	}
	now := s.sys.Now()
	for i := range s.st.jobs {
		s.st.jobs[i].View.Now = now
	}
	lines := s.lines(int(size.Cols), int(size.Rows))
	w := bufio.NewWriter(out)
	if s.shown == nil {
		_, _ = w.WriteString("\x1b[2J")
	}
	for i, l := range lines {
		if i >= len(s.shown) || s.shown[i] != l {
			fmt.Fprintf(w, "\x1b[%d;1H%s\x1b[K", i+1, l)
		}
	}
	if len(lines) < len(s.shown) {
		fmt.Fprintf(w, "\x1b[%d;1H\x1b[J", len(lines)+1)
	}
	s.shown = lines
	_ = w.Flush() // if the terminal has gone a signal comes
}

// lines are the lines for a screen of a width and a height; 0: all, as long as they are.
func (s *topScreen) lines(width, height int) []string {
	st, p := s.st, s.paint
	head := []string{cut(fmt.Sprintf("%s  %d running, %d pending  nodes %d of %d up  servers %s", st.Cluster,
		st.Jobs.Running, st.Jobs.Pending, st.Nodes.Up, st.Nodes.Total, cmp.Or(st.Leader+" leads", "-")), width)}
	for _, g := range append(slices.Clone(st.GPUs), st.CPUs) {
		head = append(head, fmt.Sprintf("%-12s %6d of %-6d %s", cmp.Or(g.Type, "CPUs"), g.Used, g.Total,
			p.bar(g, barWidth(width))))
	}
	if s.trace != "" {
		head = append(head, p.bad(cut(s.trace, width)))
	}
	if width > 0 {
		head = append(head, p.soft(cut(s.status(), width)))
	} else {
		head = append(head, "")
	}
	room := height - len(head) - 1
	switch {
	case height <= 0:
		return append(head, s.table(width, 0)...)
	case s.panel != nil:
		return append(head, s.panel.lines(width, max(room, 0))...)
	}
	return append(head, s.table(width, max(room, 1))...)
}
