package bandwidth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"dev.muster/wire"
)

// Bounds of connections to a peer.
const (
	maxStrangers = 64   // that have not shown yet that they know the secret
	maxFriends   = 4096 // that have
)

// Peer measures on one node.
type Peer struct {
	Node  string
	Job   uint64
	Ports []Port
	Tool  string            // the path of ib_write_bw; "": it is not installed
	Addrs map[string]string // the address of each interface
	Out   io.Writer         // to the lead

	mu    sync.Mutex // of Out
	start *start
	self  int
}

// Run serves a lead, whose orders come by in, until that ends or says so.
func (p *Peer) Run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, peerTime)
	defer cancel()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return err
	}
	defer l.Close()
	me := hello{
		Node:  p.Node,
		Job:   p.Job,
		Port:  l.Addr().(*net.TCPAddr).Port,
		Addrs: p.Addrs,
		Ports: p.Ports,
		Tool:  p.Tool != "",
	}
	if err := p.say(news{Hello: &me}); err != nil {
		return err
	}
	orders := make(chan order)
	broken := make(chan error, 1)
	go func() { // ends with the input; the process ends then, too
		broken <- read(ctx, in, orders)
	}()
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-broken:
			return err
		case o := <-orders:
			if o.End {
				return nil
			}
			if err := p.obey(ctx, o, l, &work); err != nil {
				return err
			}
		}
	}
}

// read passes on orders.
func read(ctx context.Context, in io.Reader, orders chan<- order) error {
	s := lines(in)
	for s.Scan() {
		var o order
		if err := wire.Unmarshal(s.Bytes(), &o); err != nil {
			return fmt.Errorf("read an order: %w", err)
		}
		select {
		case orders <- o:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.Err() != nil {
		return s.Err()
	}
	return io.ErrUnexpectedEOF // the lead has gone
}

// obey begins what an order asks for.
func (p *Peer) obey(ctx context.Context, o order, l net.Listener, work *sync.WaitGroup) error {
	switch {
	case o.Start != nil:
		if err := p.begin(o.Start); err != nil {
			return err
		}
		work.Go(func() { p.listen(ctx, l) })
	case o.Phase != nil:
		if p.start == nil {
			return errors.New("the test was not started")
		}
		to := p.partner(o.Phase)
		if to < 0 {
			return nil
		}
		for rail := range p.start.Rails {
			work.Go(func() { p.measure(ctx, o.Phase.Phase, to, rail) })
		}
	}
	return nil
}

// begin takes the settings of the test.
func (p *Peer) begin(s *start) error {
	if p.start != nil {
		return errors.New("the test was started twice")
	}
	if err := s.check(); err != nil {
		return err
	}
	p.start = s
	p.self = slices.Index(s.Nodes, p.Node)
	return nil
}

// partner finds the node to which this one sends in a phase; -1: it sends to none.
func (p *Peer) partner(ph *phase) int {
	i := slices.IndexFunc(ph.Pairs, func(pair [2]int) bool { return pair[0] == p.self })
	if i < 0 || ph.Phase < 0 || ph.Phase > maxPhases {
		return -1
	}
	to := ph.Pairs[i][1]
	if to < 0 || to >= len(p.start.Nodes) {
		return -1
	}
	return to
}

// say writes a message to the lead.
func (p *Peer) say(n news) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return send(p.Out, n)
}

// measure sends to another node by a rail, and reports the bandwidth.
func (p *Peer) measure(ctx context.Context, phase, to, rail int) {
	r := result{Phase: phase, To: to, Rail: rail}
	var err error
	if p.start.Tool == IB {
		r.Gbits, err = p.measureIB(ctx, phase, to, rail)
	} else {
		r.Gbits, err = p.measureTCP(ctx, phase, to, rail)
	}
	if err != nil {
		r.Err = cut(err.Error())
	}
	_ = p.say(news{Result: &r}) // if it fails the lead has gone, and so does this process
}

// dial connects to another node's listener.
func (p *Peer) dial(ctx context.Context, h header) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTime}
	if own := p.Addrs[p.start.Rails[h.Rail]]; p.start.Tool == TCP && own != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(own)} // so the data leaves by this rail
	}
	at := p.start.Addrs[int(h.To)*len(p.start.Rails)+int(h.Rail)]
	c, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	if err := greet(c, p.start.Secret, h); err != nil {
		c.Close()
		return nil, fmt.Errorf("greet %s: %w", at, err)
	}
	return c.(*net.TCPConn), nil
}

func (p *Peer) header(phase, to, rail, stream int) header {
	return header{
		Phase:  uint32(phase),
		From:   uint32(p.self),
		To:     uint32(to),
		Rail:   uint16(rail),
		Stream: uint16(stream),
		Millis: uint32(duration(p.start.Seconds) / time.Millisecond),
	}
}

// measureTCP sends by several connections at once, and returns the sum, in Gb/s.
func (p *Peer) measureTCP(ctx context.Context, phase, to, rail int) (float64, error) {
	conns := make([]*net.TCPConn, p.start.Streams)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	for i := range conns {
		c, err := p.dial(ctx, p.header(phase, to, rail, i))
		if err != nil {
			return 0, err
		}
		conns[i] = c
		defer context.AfterFunc(ctx, func() { c.Close() })()
	}
	rates := make([]float64, len(conns))
	errs := make([]error, len(conns))
	var all sync.WaitGroup
	for i, c := range conns {
		all.Go(func() { rates[i], errs[i] = push(c, duration(p.start.Seconds)) })
	}
	all.Wait()
	sum := 0.0
	for i, rate := range rates {
		if errs[i] != nil {
			return 0, errs[i]
		}
		sum += rate
	}
	return sum * 8 / 1e9, nil
}

func (p *Peer) measureIB(ctx context.Context, phase, to, rail int) (float64, error) {
	h := p.header(phase, to, rail, 0)
	h.Tunnel = true
	c, err := p.dial(ctx, h)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return program{p.Tool}.send(ctx, c, p.start.Rails[rail], duration(p.start.Seconds))
}

// listen serves partners. Connections that do not know the secret are closed after a moment, and only so many of them
// are open at once.
func (p *Peer) listen(ctx context.Context, l net.Listener) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	strangers := make(chan struct{}, maxStrangers)
	friends := make(chan struct{}, maxFriends)
	var all sync.WaitGroup
	defer all.Wait()
	for ctx.Err() == nil {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() == nil { // too many files are open
				time.Sleep(10 * time.Millisecond)
			}
			continue
		}
		select {
		case strangers <- struct{}{}:
		default:
			c.Close()
			continue
		}
		all.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			h, err := welcome(c, p.start.Secret)
			<-strangers
			if err != nil || p.checkHeader(h) != nil {
				return
			}
			select {
			case friends <- struct{}{}:
				defer func() { <-friends }()
				p.receive(ctx, c.(*net.TCPConn), h)
			default:
			}
		})
	}
}

// checkHeader refuses a connection that is for another node, or that would take too long.
func (p *Peer) checkHeader(h header) error {
	known := int64(h.To) == int64(p.self) && int(h.Rail) < len(p.start.Rails)
	tool := h.Tunnel == (p.start.Tool == IB)
	if known && tool && h.Millis <= maxSeconds*1000 {
		return nil
	}
	return errors.New("not for this node")
}

func (p *Peer) receive(ctx context.Context, c *net.TCPConn, h header) {
	d := time.Duration(h.Millis) * time.Millisecond
	if h.Tunnel {
		_ = program{p.Tool}.receive(ctx, c, p.start.Rails[h.Rail], d) // the other side reports
		return
	}
	_ = drain(c, d) // the other side reports
}

// Interfaces lists the first global address of each interface of this machine that is up, without loopbacks.
func Interfaces() map[string]string {
	out := map[string]string{}
	all, _ := net.Interfaces() // without it, only the address that muster knows is tested
	for _, i := range all {
		const wanted, asked = net.FlagUp, net.FlagUp | net.FlagLoopback
		if i.Flags&asked != wanted {
			continue
		}
		if ip := firstAddr(i); ip != "" {
			out[i.Name] = ip
		}
	}
	return out
}

// firstAddr finds the first global address of an interface; "": it has none.
func firstAddr(i net.Interface) string {
	addrs, _ := i.Addrs() // one that is going away has none
	for _, a := range addrs {
		ip, _, err := net.ParseCIDR(a.String())
		if err == nil && ip.IsGlobalUnicast() {
			return ip.String()
		}
	}
	return ""
}
