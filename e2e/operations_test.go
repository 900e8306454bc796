package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// block is one block of commands of the pages for admins. Its first line says on which machine they
// are typed, and:
//
//	daemon   the last command stays in the foreground
//	crash    the machine's daemon was killed before
//	lost=M   the daemon of machine M was killed before
//	prints=V what the command prints is $V from now on
type block struct {
	on       string
	flags    map[string]string
	commands []string
}

func readBlocks(t *testing.T, file string) (out []block) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 0 {
			continue
		}
		head, body, _ := strings.Cut(part, "\n")
		words := strings.Fields(head)
		if len(words) < 2 || words[0] != "sh" {
			t.Fatalf("%s: a block begins with %q, want sh and a machine", file, head)
		}
		b := block{on: words[1], flags: map[string]string{}, commands: strings.Split(strings.TrimSpace(body), "\n")}
		for _, w := range words[2:] {
			name, value, _ := strings.Cut(w, "=")
			b.flags[name] = value
		}
		out = append(out, b)
	}
	return out
}

// page are the machines on which the commands of the page are typed: namespaces with folders of
// their own at /run and /var/lib, so that nothing needs to be told where it is.
type page struct {
	*hosts
	dir      string
	machines map[string]*dev
	order    []string // machine n is host n
	vars     []string
}

func (p *page) machine(name string) *dev {
	p.t.Helper()
	if m, ok := p.machines[name]; ok {
		return m
	}
	m := newDev(p.t, filepath.Join(p.dir, name), "", nil)
	for _, dir := range []string{"run", "lib"} {
		if err := os.MkdirAll(filepath.Join(m.dir, dir), 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
	p.machines[name] = m
	if p.order = append(p.order, name); len(p.order) > pageMachines {
		p.t.Fatalf("the page has more machines than %v", p.order)
	}
	return m
}

// pageMachines is how many machines the page has.
const pageMachines = 6

// typed is a command as it is typed on a machine.
func (p *page) typed(name, command string) *exec.Cmd {
	m := p.machine(name)
	const inside = `hostname "$0" && mount --make-rprivate / && mount --bind "$1/run" /run && mount --bind "$1/lib" /var/lib && eval "exec $2"`
	cmd := exec.Command("ip", "netns", "exec", p.name(slices.Index(p.order, name)+1), "unshare", "-um",
		"sh", "-c", inside, name, m.dir, command)
	for _, e := range m.env {
		if !strings.HasPrefix(e, "MUSTER_SOCKET=") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, p.vars...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// daemon types a command that stays, and waits until it is ready.
func (p *page) daemon(name, command string) {
	p.t.Helper()
	m := p.machine(name)
	_ = os.Remove(m.dir + "/log")
	log, err := os.Create(m.dir + "/log")
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	m.cmd = p.typed(name, command)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if err := m.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(m.cleanup)
	m.tells(`muster: (ready) at`)
	if len(p.vars) > 0 {
		return
	}
	// The first one: what it writes is the page's variables.
	commands := p.types(name, "cat "+m.tells(`others join it by the commands in (\S+)`))
	token := func(expr string) string {
		found := regexp.MustCompile(expr).FindStringSubmatch(commands)
		if found == nil {
			p.t.Fatalf("%s is not in %q", expr, commands)
		}
		return found[1]
	}
	p.vars = []string{"S1=10.77.0.1", "SERVER_TOKEN=" + token(`muster server --join \S+ --token (\S+)`),
		"CLIENT_TOKEN=" + token(`muster client --join \S+ --token (\S+)`)}
}

// types types a command, again while it fails, as somebody would who sees that something is on its
// way still.
func (p *page) types(name, command string) string {
	p.t.Helper()
	var out, errs bytes.Buffer
	for end := time.Now().Add(patience(30 * time.Second)); ; time.Sleep(100 * time.Millisecond) {
		out.Reset()
		errs.Reset()
		cmd := p.typed(name, command)
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if err == nil {
			return strings.TrimSpace(out.String())
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s$ %s\n%s%s%v", name, command, &out, &errs, err)
		}
	}
}

// operationPages are the pages for admins whose commands are typed, in this order.
var operationPages = []string{"install", "hardware", "members", "upkeep", "configuration", "accounting"}

// TestOperations does what the pages for admins say, to the letter.
func TestOperations(t *testing.T) {
	t.Parallel()
	h, err := newHosts(t, pageMachines)
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &page{hosts: h, dir: dir, machines: map[string]*dev{}}
	results := map[string]string{}
	var blocks []block
	for _, name := range operationPages {
		blocks = append(blocks, readBlocks(t, "../docs/"+name+".md")...)
	}
	for _, b := range blocks {
		if m := b.flags["lost"]; m != "" {
			p.machine(m).kill()
		}
		if _, crash := b.flags["crash"]; crash {
			p.machine(b.on).kill()
		}
		for i, c := range b.commands {
			if _, stays := b.flags["daemon"]; stays && i == len(b.commands)-1 {
				p.daemon(b.on, c)
				continue
			}
			out := p.types(b.on, c)
			results[c] = out
			t.Logf("%s# %s\n%s", b.on, c, out)
			if v := b.flags["prints"]; v != "" {
				p.vars = append(p.vars, v+"="+out)
			}
		}
	}
	for command, want := range map[string][]string{
		"srun -N 2 hostname":    {"c1", "c2"},
		"sinfo -N -l":           {"c1", "c2"},
		"muster server members": {"s1", "s2", "s3", "leads"},
		"muster node list":      {"s1", "s2", "s3", "c1", "c2"},
	} {
		for _, w := range want {
			if !strings.Contains(results[command], w) {
				t.Errorf("%s does not show %s:\n%s", command, w, results[command])
			}
		}
	}
	p.until("one to lead, all servers and nodes to be back", "s2", "muster server members", func(out string) bool {
		return strings.Count(out+"\n", "follows\n") == 2 && strings.Count(out+"\n", "leads\n") == 1
	})
	p.until("both nodes to be idle", "l1", "sinfo -h -N -t idle -o %N",
		func(out string) bool { return out == "c1\nc2" })
}

// until types a command until it shows what is waited for.
func (p *page) until(what, name, command string, ok func(string) bool) {
	p.t.Helper()
	p.machine(name).wait(what, func() bool { return ok(p.types(name, command)) })
}
