package launch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/submit"
)

// --x11: srun and salloc hold a tunnel to each of the nodes where programs are to have a display, and carry each
// connection to the X server of where they were called.

// xServer is where DISPLAY leads to, and how one proves there that one may use it.
type xServer struct {
	socket string // of this machine; "": none
	at     string // HOST:PORT
	cookie string
}

// xPort is that of display 0.
const xPort = 6000

// xServerOf finds the X server of a user, and the cookie; why says that it cannot.
func xServerOf(s *front.Sys) (x *xServer, why string) {
	display := s.Getenv("DISPLAY")
	if display == "" {
		return nil, "No DISPLAY variable set, cannot setup x11 forwarding."
	}
	host, number, ok := cutLast(display, ":")
	if !ok {
		return nil, badDisplay
	}
	number, _, _ = strings.Cut(number, ".")
	x = &xServer{}
	if host == "" || host == "unix" {
		x.socket = "/tmp/.X11-unix/X" + number
		if _, err := os.Stat(x.socket); err != nil {
			return nil, "Cannot stat() local X11 socket `" + x.socket + "`"
		}
	} else {
		n, ok := opt.Number(number)
		if !ok || n > 65535-xPort {
			return nil, badDisplay
		}
		x.at = host + ":" + strconv.Itoa(xPort+n)
	}
	text, ok := front.Output("xauth", "-i", "list", display) // nothing is written: no lock is waited for
	if !ok {
		return nil, "Problem running xauth command. Cannot use X11 forwarding."
	}
	if x.cookie = cookieIn(text); x.cookie == "" {
		return nil, "x11_get_xauth: Could not retrieve magic cookie. Cannot use X11 forwarding."
	}
	return x, ""
}

const badDisplay = "Error parsing DISPLAY environment variable. Cannot use X11 forwarding."

// cutLast cuts around the last of what stands between.
func cutLast(text, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// cookieIn is the first cookie of what xauth list prints.
func cookieIn(text string) string {
	for line := range strings.Lines(text) {
		if w := strings.Fields(line); len(w) == 3 && w[1] == "MIT-MAGIC-COOKIE-1" {
			return w[2]
		}
	}
	return ""
}

// dial reaches the X server.
func (x *xServer) dial() (api.Conn, error) {
	if x.socket != "" {
		return front.DialUnix(x.socket)
	}
	return front.Through("connect", x.at)
}

// x11Exit is srun's and salloc's exit code where a display cannot be had, as Slurm's.
const x11Exit = 255

// findX11 looks, before anything is submitted, whether what --x11 asks for can be done. A code other than 0 ends the
// command.
func findX11(s *front.Sys, r *submit.Request) (*xServer, int) {
	if r.Way.X11 == "" {
		return nil, 0
	}
	x, why := xServerOf(s)
	if why != "" {
		s.Fail("%s", why)
		return nil, x11Exit
	}
	if r.Client.NoShell {
		return nil, s.Fail("--x11 cannot be done with --no-shell: salloc has to stay, to carry what programs show")
	}
	resp, err := front.Call(s, api.ShowCluster, api.Empty{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return nil, s.Fail("%s", text)
	}
	if allowed, _ := cluster.X11(&resp.Config); allowed {
		return x, 0
	}
	if s.Prog == "salloc" {
		return nil, s.Fail("Job submit/allocate failed: X11 forwarding not available")
	}
	return nil, s.Fail("Unable to allocate resources: X11 forwarding not available")
}

// display is one node's.
type display struct {
	sys    *front.Sys
	server *xServer
	ask    api.X11Request
}

// forwardX11 serves the displays of a job's nodes until stop is called. A code other than 0 says that one could not be
// had.
func forwardX11(s *front.Sys, r *submit.Request, x *xServer, job *cluster.Job) (stop func(), code int) {
	if x == nil {
		return func() {}, 0
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	stop = func() {
		cancel()
		wg.Wait()
	}
	for _, ask := range displaysOf(s, r, job) {
		d := &display{s, x, ask}
		d.ask.Cookie = x.cookie
		tunnel, err := d.open(ctx)
		if err != nil {
			stop()
			return stop, s.Fail("X11 forwarding to %s failed: %v", ask.Node, err)
		}
		s.Tell(front.Told, "X11 forwarding established on DISPLAY=%s:%d.0", ask.Node, d.ask.Number)
		wg.Go(func() { d.serve(ctx, tunnel) })
	}
	return stop, 0
}

// displaysOf are the nodes of a job, and of the other components, that get a display.
func displaysOf(s *front.Sys, r *submit.Request, job *cluster.Job) (list []api.X11Request) {
	jobs := []*cluster.Job{job}
	if job.Het != nil {
		resp, err := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: job.ID}}})
		if err == nil && len(resp.Jobs) == job.Het.Size {
			jobs = resp.Jobs
		}
	}
	for _, j := range jobs {
		nodes := j.AllocNodes()
		switch r.Way.X11 {
		case "first", "batch":
			nodes = nodes[:1]
		case "last":
			nodes = nodes[len(nodes)-1:]
		}
		for _, n := range nodes {
			list = append(list, api.X11Request{Job: j.ID, Node: n})
		}
	}
	return list
}

// x11Tunnel is an open tunnel and what is read of it.
type x11Tunnel struct {
	api.Conn
	r *bufio.Reader
}

// open asks for the display, and reads which it is.
func (d *display) open(ctx context.Context) (*x11Tunnel, error) {
	conn, err := api.Tunnel(ctx, d.sys.Client(), api.ForwardX11, api.X11Protocol, d.ask)
	if err != nil {
		return nil, api.OldClient(err)
	}
	t := &x11Tunnel{conn, bufio.NewReader(conn)}
	line, err := t.r.ReadString('\n')
	line = strings.TrimSuffix(line, "\n")
	n, ok := opt.Number(line)
	if err == nil && !ok {
		err = errors.New(strings.TrimPrefix(line, "error: "))
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if old := d.ask.Number; old != 0 && old != n {
		d.sys.Say("error: X11 forwarding to %s: display :%d is taken there now: programs that are started find none",
			d.ask.Node, old)
	}
	d.ask.Number = n
	return t, nil
}

// x11Again is how soon a tunnel that broke off is made again.
const x11Again = 200 * time.Millisecond

// serve carries connections until ctx ends or the job is over on the node.
func (d *display) serve(ctx context.Context, t *x11Tunnel) {
	for {
		d.listen(ctx, t)
		for t = nil; t == nil; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(x11Again):
			}
			var err error
			if t, err = d.open(ctx); err != nil && !front.IsUnreachable(err) && !isAway(err) {
				d.sys.Tell(front.Told, "X11 forwarding to %s has ended: %v", d.ask.Node, err)
				return
			}
		}
	}
}

func isAway(err error) bool { return front.IsKind(err, cluster.ErrAway) }

// listen carries what a tunnel tells of, to its end.
func (d *display) listen(ctx context.Context, t *x11Tunnel) {
	stop := context.AfterFunc(ctx, func() { _ = t.Close() })
	defer stop()
	defer t.Close()
	for {
		line, err := t.r.ReadString('\n')
		if err != nil {
			return
		}
		n, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return
		}
		go d.carry(ctx, n) // ends with the connection, or with this program
	}
}

// carry takes a program's connection to the X server.
func (d *display) carry(ctx context.Context, n uint64) {
	ask := d.ask
	ask.Cookie, ask.Take = "", n
	near, err := d.server.dial()
	if err != nil {
		d.sys.Say("error: X11 forwarding: the X server cannot be reached: %v", err)
		near = nobody{} // the program there is told so
	}
	far, err := api.Tunnel(ctx, d.sys.Client(), api.ForwardX11, api.X11Protocol, ask)
	if err != nil {
		_ = near.Close()
		return
	}
	d.sys.Tell(front.Debug, "X11 forwarding: %s: a program of display :%d has come", ask.Node, ask.Number)
	api.Splice(ctx, near, far)
}

// nobody is a connection that has ended.
type nobody struct{}

func (nobody) Read([]byte) (int, error)    { return 0, io.EOF }
func (nobody) Write([]byte) (int, error)   { return 0, io.ErrClosedPipe }
func (nobody) Close() error                { return nil }
func (nobody) SetDeadline(time.Time) error { return nil }
