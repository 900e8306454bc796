package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
)

// hosts is a network of its own: a bridge, and a network namespace for each host. Front-ends reach daemons
// there by their sockets in the file system.
type hosts struct {
	t      *testing.T
	prefix string
}

var networks atomic.Int32

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// newHosts makes n hosts, or says why it can not.
func newHosts(t *testing.T, n int) (*hosts, error) {
	h := &hosts{t: t, prefix: fmt.Sprintf("mt%d-%d", os.Getpid(), networks.Add(1))}
	t.Cleanup(func() { h.down(n) })
	steps := [][]string{{"netns", "add", h.prefix + "-sw"}, {"-n", h.prefix + "-sw", "link", "add", "br0", "type", "bridge"},
		{"-n", h.prefix + "-sw", "link", "set", "br0", "up"}}
	for i := 1; i <= n; i++ {
		ns, far, near := h.name(i), fmt.Sprintf("h%d", i), fmt.Sprintf("s%d", i)
		steps = append(steps, []string{"netns", "add", ns},
			[]string{"-n", h.prefix + "-sw", "link", "add", near, "type", "veth", "peer", "name", far, "netns", ns},
			[]string{"-n", h.prefix + "-sw", "link", "set", near, "master", "br0", "up"},
			[]string{"-n", ns, "link", "set", "lo", "up"}, []string{"-n", ns, "link", "set", far, "name", "eth0"},
			[]string{"-n", ns, "addr", "add", fmt.Sprintf("10.77.0.%d/24", i), "dev", "eth0"}, []string{"-n", ns, "link", "set", "eth0", "up"})
	}
	for _, s := range steps {
		if err := ip(s...); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *hosts) name(i int) string { return fmt.Sprintf("%s-n%d", h.prefix, i) }

func (h *hosts) down(n int) {
	for i := 1; i <= n; i++ {
		_ = ip("netns", "del", h.name(i)) // some were never made
	}
	_ = ip("netns", "del", h.prefix+"-sw")
}

// cut takes a host off the network; heal brings it back.
func (h *hosts) cut(i int)  { h.set(i, "down") }
func (h *hosts) heal(i int) { h.set(i, "up") }

func (h *hosts) set(i int, state string) {
	if err := ip("-n", h.prefix+"-sw", "link", "set", fmt.Sprintf("s%d", i), state); err != nil {
		h.t.Error(err)
	}
}

// mute makes one host's packets to another one vanish, the other direction works; unmute ends that.
func (h *hosts) mute(from, to int)   { h.route("add", from, to) }
func (h *hosts) unmute(from, to int) { h.route("del", from, to) }

func (h *hosts) route(what string, from, to int) {
	if err := ip("-n", h.name(from), "route", what, "blackhole", fmt.Sprintf("10.77.0.%d/32", to)); err != nil {
		h.t.Error(err)
	}
}
