package bandwidth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/burnin/pairs"
	"dev.muster/wire"
)

// Options of a test.
type Options struct {
	Nodes   []string // at least two, each with a peer
	Addrs   []string // by which muster knows them, without ports; "": this machine
	Rails   []string // network interfaces; none: the address, or all ports that the nodes have for ib_write_bw
	Tool    string   // TCP or IB; "": IB if all nodes have it and active ports, otherwise TCP
	Time    time.Duration
	Streams int
	Min     float64 // Gb/s that are expected at least; 0: only the other pairs count
	// First bounds the time until the first node answers, and Rest from then on that of the others.
	First, Rest time.Duration
	// Patience is how much longer than the transfer a node may take to report it; 0: as long as it can take.
	Patience time.Duration
	Say      func(format string, args ...any) // progress
	Began    func(job uint64)                 // the first node has answered
}

// Report is what a test found.
type Report struct {
	Tool  string
	Rails []string
	Job   uint64
	Test  pairs.Test
	pairs.Verdict
	// Silent are the nodes that did not answer, or no longer, by index; Lacks are the rails that a node has not.
	Silent map[int]string
	Lacks  map[int][]string
}

// Blocked returns the error of a test in which no transfer at all succeeded; "": one did.
func (r *Report) Blocked() (text string) {
	for _, s := range r.Test.Samples {
		if s.Err == "" {
			return ""
		}
		text = s.Err
	}
	return text
}

// lead is the command that tests nodes.
type lead struct {
	Options
	out    io.Writer
	news   <-chan heard
	peers  []*hello // by node; nil: silent
	here   []int    // the nodes that have answered
	silent map[int]string
	rails  []string
	tool   string
	lacks  map[int][]string
	phases int
}

// heard is a message of the peer of a task.
type heard struct {
	task int
	news
}

// Run tests the network between nodes. The peers read out; in has what they write, with "TASK: " before each line.
// Peers that do not answer in time are left out, so it always ends.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	news := make(chan heard)
	go func() { // ends with the input or ctx
		defer close(news)
		hear(ctx, in, news)
	}()
	l := &lead{
		Options: o,
		out:     out,
		news:    news,
		peers:   make([]*hello, len(o.Nodes)),
		silent:  map[int]string{},
		lacks:   map[int][]string{},
	}
	defer func() { _ = send(out, order{End: true}) }() // peers that have gone need no order
	tasks, err := l.greet(ctx)
	if err != nil {
		return nil, err
	}
	l.here = slices.Sorted(maps.Values(tasks))
	if err := l.choose(); err != nil {
		return nil, err
	}
	if err := l.begin(); err != nil {
		return nil, err
	}
	return l.test(ctx, tasks)
}

// hear reads the messages of peers. Other lines, such as those of a site's prolog, are not for it.
func hear(ctx context.Context, in io.Reader, news chan<- heard) {
	s := lines(in)
	for s.Scan() {
		label, text, ok := strings.Cut(s.Text(), ": ")
		task, err := strconv.Atoi(strings.TrimSpace(label))
		if !ok || err != nil {
			continue
		}
		h := heard{task: task}
		if wire.Unmarshal([]byte(text), &h.news) != nil {
			continue
		}
		select {
		case news <- h:
		case <-ctx.Done():
			return
		}
	}
}

// greet waits for the peers. It returns the node of each task.
func (l *lead) greet(ctx context.Context) (tasks map[int]int, err error) {
	tasks = map[int]int{}
	limit := time.NewTimer(l.First)
	defer limit.Stop()
	for len(tasks) < len(l.Nodes) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.C:
			if len(tasks) == 0 {
				return nil, fmt.Errorf("no node has begun the test within %v", l.First)
			}
			return l.without(tasks)
		case h, ok := <-l.news:
			if !ok {
				return l.without(tasks)
			}
			if h.Hello == nil {
				continue
			}
			if i := slices.Index(l.Nodes, h.Hello.Node); i >= 0 && l.peers[i] == nil {
				if len(tasks) == 0 {
					limit.Reset(l.Rest)
					l.Began(h.Hello.Job)
				}
				tasks[h.task], l.peers[i] = i, h.Hello
			}
		}
	}
	return tasks, nil
}

// without notes the nodes that have not answered. Two must have.
func (l *lead) without(tasks map[int]int) (map[int]int, error) {
	for i, p := range l.peers {
		if p == nil {
			l.silent[i] = "did not answer"
		}
	}
	switch len(tasks) {
	case 0:
		return nil, errors.New("the test ended before any node has answered, see above; " +
			"simulated nodes cannot be tested")
	case 1:
		return nil, errors.New("only one node has answered: a test needs two")
	}
	return tasks, nil
}

// choose settles the tool and the rails.
func (l *lead) choose() error {
	counts := map[string]int{} // nodes with a port
	rdma := true
	for _, i := range l.here {
		p := l.peers[i]
		rdma = rdma && p.Tool && len(p.Ports) > 0
		for _, port := range p.Ports {
			counts[portName(port)]++
		}
	}
	l.tool = cmp.Or(l.Tool, TCP)
	if l.Tool == "" && rdma && len(l.Rails) == 0 {
		l.tool = IB
	}
	l.rails = l.Rails
	if l.tool == IB && !rdma {
		return errors.New("--tool ib_write_bw: some nodes lack ib_write_bw or an active InfiniBand or RoCE port")
	}
	if l.tool == IB && len(l.rails) == 0 {
		l.rails = common(counts, len(l.here))
	}
	if len(l.rails) == 0 {
		l.rails = []string{""}
	}
	return l.require()
}

// common lists the ports that most of n nodes have.
func common(counts map[string]int, n int) (out []string) {
	for name, c := range counts {
		if 2*c > n {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), maxRails)]
}

func portName(p Port) string { return fmt.Sprintf("%s:%d", p.Device, p.Port) }

// require notes the rails that a node lacks, and refuses rails that no node has.
func (l *lead) require() error {
	for _, rail := range l.rails {
		have := 0
		for _, i := range l.here {
			if l.has(l.peers[i], rail) {
				have++
				continue
			}
			l.lacks[i] = append(l.lacks[i], rail)
		}
		if have == 0 {
			return fmt.Errorf("--rails %s: no node has an interface with this name and an address, "+
				"or such a port that is active", rail)
		}
	}
	return nil
}

func (l *lead) has(p *hello, rail string) bool {
	if l.tool == IB {
		return slices.ContainsFunc(p.Ports, func(port Port) bool { return portName(port) == rail })
	}
	return rail == "" || net.ParseIP(p.Addrs[rail]) != nil
}

// begin tells the peers about the test.
func (l *lead) begin() error {
	s := start{
		Secret:  make([]byte, secretLen),
		Nodes:   l.Nodes,
		Rails:   l.rails,
		Tool:    l.tool,
		Seconds: l.Time.Seconds(),
		Streams: l.Streams,
	}
	_, _ = rand.Read(s.Secret) // never fails
	for i, p := range l.peers {
		for _, rail := range l.rails {
			at := ""
			if p != nil {
				host := cmp.Or(l.Addrs[i], "127.0.0.1")
				if own := p.Addrs[rail]; l.tool == TCP && net.ParseIP(own) != nil {
					host = own
				}
				at = net.JoinHostPort(host, strconv.Itoa(p.Port))
			}
			s.Addrs = append(s.Addrs, at)
		}
	}
	if err := s.check(); err != nil {
		return err
	}
	return send(l.out, order{Start: &s})
}

// test measures all rounds, and the suspects again.
func (l *lead) test(ctx context.Context, tasks map[int]int) (*Report, error) {
	r := &Report{
		Tool:   l.tool,
		Rails:  l.rails,
		Job:    l.peers[l.here[0]].Job,
		Silent: l.silent,
		Lacks:  l.lacks,
	}
	r.Test = pairs.Test{
		Nodes: len(l.Nodes),
		Rails: len(l.rails),
		Min:   l.Min,
		Away:  map[int]bool{},
	}
	l.leave(&r.Test)
	rounds := pairs.Rounds(len(l.here)) // of those that answer, so that all rounds are full
	for k, round := range rounds {
		for i := range round {
			round[i] = pairs.Pair{l.here[round[i][0]], l.here[round[i][1]]}
		}
		l.Say("round %d of %d: %d pairs", k+1, len(rounds), len(round))
		s, err := l.round(ctx, round, tasks)
		if err != nil {
			return nil, err
		}
		r.Test.Samples = append(r.Test.Samples, s...)
	}
	l.leave(&r.Test)
	suspects := r.Test.Suspects()
	again := r.Test.Confirm(suspects)
	for k, round := range again {
		l.Say("measuring again what seems slow, round %d of %d: %d pairs", k+1, len(again), len(round))
		s, err := l.round(ctx, round, tasks)
		if err != nil {
			return nil, err
		}
		r.Test.Confirmed = append(r.Test.Confirmed, s...)
	}
	r.Verdict = r.Test.Judge(suspects, l.tool == IB || len(l.Rails) > 1)
	return r, nil
}

// leave takes the nodes that do not answer out of a test: their partners' transfers say nothing about the partners.
func (l *lead) leave(t *pairs.Test) {
	for i := range l.silent {
		t.Away[i] = true
	}
	t.Samples = pairs.Select(t.Samples, func(s pairs.Sample) bool {
		return !t.Away[s.From] && !t.Away[s.To]
	})
}

// round measures pairs in one direction, and then in the other.
func (l *lead) round(ctx context.Context, round []pairs.Pair, tasks map[int]int) (out []pairs.Sample, err error) {
	for _, back := range [2]bool{false, true} {
		ph := phase{Phase: l.phases}
		l.phases++
		for _, p := range round {
			if back {
				p[0], p[1] = p[1], p[0]
			}
			if l.silent[p[0]] == "" && l.silent[p[1]] == "" {
				ph.Pairs = append(ph.Pairs, p)
			}
		}
		s, err := l.phase(ctx, &ph, tasks)
		if err != nil {
			return nil, err
		}
		out = append(out, s...)
	}
	return out, nil
}

// phase has pairs transfer data, and waits for their results as long as those may take.
func (l *lead) phase(ctx context.Context, ph *phase, tasks map[int]int) (out []pairs.Sample, err error) {
	if err := send(l.out, order{Phase: ph}); err != nil {
		return nil, err
	}
	limit := time.NewTimer(l.phaseTime())
	defer limit.Stop()
	open := map[[2]int]int{} // sender, rail → receiver
	for _, p := range ph.Pairs {
		for rail, name := range l.rails {
			open[[2]int{p[0], rail}] = p[1]
			if slices.Contains(l.lacks[p[0]], name) || slices.Contains(l.lacks[p[1]], name) {
				delete(open, [2]int{p[0], rail}) // reported without it
			}
		}
	}
	for len(open) > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.C:
			for key := range open { // it would have reported an error by now
				l.silent[key[0]] = "stopped answering"
			}
			return out, nil
		case h, ok := <-l.news:
			if !ok {
				return nil, errors.New("the test has ended before its time")
			}
			from, known := tasks[h.task]
			if !known || h.Result == nil || h.Result.Phase != ph.Phase {
				continue
			}
			key := [2]int{from, h.Result.Rail}
			if to, asked := open[key]; asked && to == h.Result.To {
				delete(open, key)
				out = append(out, sample(from, h.Result))
			}
		}
	}
	return out, nil
}

// phaseTime bounds a phase.
func (l *lead) phaseTime() time.Duration {
	if l.Patience > 0 {
		return l.Time + l.Patience
	}
	d := dialTime + handshakeTime + l.Time + graceTime + time.Second
	if l.tool == IB {
		d += toolTime
	}
	return d
}

// sample makes a sample of a result.
func sample(from int, r *result) pairs.Sample {
	s := pairs.Sample{
		From:  from,
		To:    r.To,
		Rail:  r.Rail,
		Gbits: r.Gbits,
		Err:   cut(r.Err),
	}
	if !(s.Gbits >= 0) || math.IsInf(s.Gbits, 0) || s.Err != "" {
		s.Gbits = 0
	}
	return s
}
