package e2e

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sys/unix"
)

var (
	benchImage     = flag.Int("bench-image", 0, "how many nodes TestBenchImage fetches an image on; 0: none")
	benchImageSize = flag.Int("bench-image-mib", 128, "the image's size")
	benchImageRate = flag.String("bench-image-rate", "80mbit", "of each node's link, as tc writes it")
)

// hubOn is a registry on a host of its own, and counts what it sends.
type hubOn struct {
	image string
	sent  atomic.Int64
	heads atomic.Int64
}

// startHubOn starts a registry on a host, with one image.
func startHubOn(t *testing.T, h *hosts, host int, img v1.Image) *hubOn {
	t.Helper()
	hub := &hubOn{image: fmt.Sprintf("10.77.0.%d:5000#lab/big:1", host)}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	listener := listenOn(t, h, host, ":5000")
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			hub.heads.Add(1)
		}
		inner.ServeHTTP(&countedAnswer{w, &hub.sent}, r)
	})}
	go func() { _ = srv.Serve(listener) }() // ends with Close
	t.Cleanup(func() { srv.Close() })
	near, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	push := &http.Server{Handler: inner}
	go func() { _ = push.Serve(near) }() // ends with Close
	defer push.Close()
	ref, err := name.ParseReference(near.Addr().String() + "/lab/big:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	return hub
}

type countedAnswer struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *countedAnswer) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// listenOn listens on a host of the test's network.
func listenOn(t *testing.T, h *hosts, host int, addr string) net.Listener {
	t.Helper()
	type result struct {
		l   net.Listener
		err error
	}
	done := make(chan result)
	go func() { // on a thread that ends with it
		runtime.LockOSThread()
		ns, err := os.Open("/run/netns/" + h.name(host))
		if err == nil {
			defer ns.Close()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- result{nil, err}
			return
		}
		l, err := net.Listen("tcp", addr)
		done <- result{l, err}
	}()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.l
}

// limit bounds what a host sends and is sent.
func (h *hosts) limit(i int, rate string) error {
	for _, link := range [][2]string{{h.name(i), "eth0"}, {h.prefix + "-sw", fmt.Sprintf("s%d", i)}} {
		out, err := exec.Command("tc", "-n", link[0], "qdisc", "add", "dev", link[1], "root", "tbf",
			"rate", rate, "burst", "256k", "latency", "100ms").CombinedOutput()
		if err != nil {
			return fmt.Errorf("tc: %w: %s", err, out)
		}
	}
	return nil
}

// bigImage is an image of incompressible layers.
func bigImage(t *testing.T, count, size int) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layerOf(t, true))
	if err != nil {
		t.Fatal(err)
	}
	from := rand.NewChaCha8([32]byte{1})
	for i := range count {
		body := make([]byte, size)
		_, _ = from.Read(body)
		if img, err = mutate.AppendLayers(img, layerOf(t, false, fmt.Sprintf("data/%d=%s", i, body))); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

// packed is how many bytes an image's layers are.
func packed(t *testing.T, img v1.Image) (n int64) {
	t.Helper()
	list, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		size, err := l.Size()
		if err != nil {
			t.Fatal(err)
		}
		n += size
	}
	return n
}

// imageNodes is a cluster of one server and clients of a node each, all on hosts, and a registry on another.
func imageNodes(t *testing.T, nodes int, img v1.Image) (*group, *hubOn) {
	t.Helper()
	needsContainers(t)
	h, err := newHosts(t, nodes+2)
	if err != nil {
		t.Skip(err)
	}
	hub := startHubOn(t, h, nodes+2, img)
	g := newGroupOn(t, h)
	for i := range nodes {
		c := fmt.Sprintf("c%02d", i+1)
		g.join(c, "s1", "--hollow", "1x2c1g", "--hollow-prefix", c+"-", "--hollow-exec")
	}
	g.wait("all nodes", func() bool {
		out, _, _ := g.run("s1", "sinfo", "-hN", "-t", "idle", "-o", "%N")
		return strings.Count(out, "\n") == nodes
	})
	return g, hub
}

// TestImageTravels: an image that several nodes want at once comes from its registry once, and a node that wants it
// later has it from the others while the registry answers no more than whether it may.
func TestImageTravels(t *testing.T) {
	const nodes, size = 4, 4 << 20
	img := bigImage(t, 2, size)
	g, hub := imageNodes(t, nodes, img)
	run := func(args ...string) {
		t.Helper()
		args = append(append([]string{"--container-image=" + hub.image}, args...), "busybox", "true")
		if out, errs, code := g.run("s1", "srun", args...); code != 0 {
			t.Fatal(code, out, errs)
		}
	}
	run("-N3", "-w", "c01-001,c02-001,c03-001")
	whole, all := hub.sent.Load(), packed(t, img)
	if whole > all*11/10 {
		t.Errorf("the registry has sent %d bytes of an image of %d to three nodes", whole, all)
	}
	run("-w", "c04-001")
	if more := hub.sent.Load() - whole; more > 4<<10 {
		t.Errorf("the registry has sent %d bytes more to a fourth node", more)
	}
	if hub.heads.Load() < nodes {
		t.Errorf("it was asked %d times whether a user may have the image: less often than there are nodes",
			hub.heads.Load())
	}
}

// TestBenchImage fetches one image on many nodes whose links are limited, and on one. See make bench-image.
func TestBenchImage(t *testing.T) {
	if *benchImage == 0 {
		t.Skip("see make bench-image")
	}
	const layers = 4
	img := bigImage(t, layers, *benchImageSize<<20/layers)
	measure := func(nodes int) (time.Duration, float64) {
		g, hub := imageNodes(t, nodes, img)
		for i := range nodes + 2 {
			if err := g.hosts.limit(i+1, *benchImageRate); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		g.must("s1", "srun", fmt.Sprint("-N", nodes), "--container-image="+hub.image, "busybox", "true")
		took := time.Since(began)
		g.cleanup()
		return took, float64(hub.sent.Load()) / float64(packed(t, img))
	}
	one, _ := measure(1)
	many, sent := measure(*benchImage)
	t.Logf("an image of %d MiB over links of %s: one node %v, %d nodes %v, ratio %.2f; the registry has sent it %.2f times",
		*benchImageSize, *benchImageRate, one.Round(time.Millisecond), *benchImage, many.Round(time.Millisecond), float64(many)/float64(one), sent)
}
