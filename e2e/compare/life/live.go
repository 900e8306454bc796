package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// life is what was seen of one cell on one side.
type life struct {
	trouble string             // the cell could not be run
	events  map[string][]event // by role
	texts   map[string]string  // rows, outputs, exit codes
}

// Bounds of a cell's parts.
const (
	readyTime = 40 * time.Second
	limitTime = 280 * time.Second
	endTime   = 60 * time.Second
)

// live runs one cell on one side.
func (r *runner) live(s *side, c cell, number int, node string) life {
	l := life{events: map[string][]event{}, texts: map[string]string{}}
	dir := fmt.Sprintf("%s/%03d", s.dir, number)
	check(os.RemoveAll(dir))
	check(os.MkdirAll(dir, 0o777))
	check(os.Chmod(dir, 0o777))
	sh, e := shapes[c.shape], ends[c.end]
	name := fmt.Sprintf("cell%03d", number)
	words := e.words
	if node == "" {
		words += " -x gpu-node-[005-008]"
	}
	if c.program == "hog" {
		words += " --mem-per-cpu=200"
	} else if !strings.Contains(sh.text, "--mem") {
		words += " --mem-per-cpu=100"
	}
	words = strings.ReplaceAll(words, "$N", node)
	vars := []string{
		"NAME=" + name, "P=" + r.probe + " " + dir + " " + c.program + " task", "W=" + words, "N=" + node,
		"SHAPE=" + c.shape,
	}
	w := watchLog(dir + "/log")
	defer w.stop()
	b := &bash{side: s, dir: dir, env: vars}
	var front *exec.Cmd
	if sh.batch {
		id := strings.TrimSpace(b.do(strings.ReplaceAll(sh.text, "$W", words)))
		if id == "" {
			l.trouble = "not submitted: " + b.err
			return l
		}
		b.env = append(b.env, "J="+id)
	} else {
		front = b.start(sh.text)
		b.env = append(b.env, "F="+strconv.Itoa(front.Process.Pid))
	}
	ready := w.wait(readyTime, func() bool { return w.count("ready") >= sh.tasks })
	if !sh.batch {
		id := ""
		for range 50 {
			if id = strings.TrimSpace(b.do("squeue -h -t all -o %A -n " + name)); id != "" {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		b.env = append(b.env, "J="+id)
	}
	if !ready {
		l.trouble = "no probe was ready: " + b.do("cat out* err* 2>/dev/null; scancel $J")
		return l
	}
	time.Sleep(700 * time.Millisecond) // what the program does first is done
	asked := time.Now()
	b.do(strings.ReplaceAll(e.text, "$F", strconv.Itoa(pidOf(front))))
	within := endTime
	if e.first {
		within = limitTime
	}
	if out := b.do(fmt.Sprintf("until_ %d over $J || echo late", int(within.Seconds()*10))); out != "" {
		l.texts["over"] = "the job was not over after " + within.String()
		b.do("scancel -s KILL $J; scancel $J; until_ 100 over $J")
	}
	if front != nil {
		l.texts["rc"] = waitFront(front)
	}
	w.wait(2*time.Second, func() bool { return !w.lives() })
	b.read(&l, c)
	l.events = w.roles(asked, e.first)
	return l
}

func pidOf(c *exec.Cmd) int {
	if c == nil {
		return 0
	}
	return c.Process.Pid
}

// waitFront is the exit code of a front-end, which is killed if it does not end.
func waitFront(front *exec.Cmd) string {
	done := make(chan error, 1)
	go func() { done <- front.Wait() }() // ends with the process
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		_ = front.Process.Kill()
		<-done
		return "no end in 15 s"
	}
	ws := front.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return ws.Signal().String()
	}
	return strconv.Itoa(ws.ExitStatus())
}

// bash runs lines in a cell's folder.
type bash struct {
	side *side
	dir  string
	env  []string
	err  string // what the last one wrote on standard error
}

func (b *bash) command(line string) *exec.Cmd {
	c := exec.Command("/bin/bash", "-c", line)
	c.Dir, c.Env = b.dir, append(append(slices.Clone(b.side.env), b.env...), "PWD="+b.dir)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c
}

func (b *bash) do(line string) string {
	var out, errs bytes.Buffer
	c := b.command(line)
	c.Stdout, c.Stderr = &out, &errs
	_ = c.Run()
	b.err = errs.String()
	return out.String()
}

// start runs a front-end whose output goes to files.
func (b *bash) start(line string) *exec.Cmd {
	c := b.command(line)
	out, err := os.Create(filepath.Join(b.dir, "out"))
	check(err)
	errs, err := os.Create(filepath.Join(b.dir, "err"))
	check(err)
	c.Stdout, c.Stderr = out, errs
	check(c.Start())
	out.Close()
	errs.Close()
	return c
}

// read collects what is left of the cell.
func (b *bash) read(l *life, c cell) {
	id := strings.TrimSpace(b.do("echo $J"))
	clean := func(text string) string { return replaceVarying(text, id) }
	l.texts["rows"] = clean(b.do("rows $J")) // with those of each attempt
	files, _ := filepath.Glob(filepath.Join(b.dir, "*"))
	for _, f := range files {
		name := filepath.Base(f)
		if text, err := os.ReadFile(f); err == nil && (strings.HasPrefix(name, "out") || strings.HasPrefix(name, "err")) {
			l.texts[name] = clean(string(text))
		}
	}
}

var varying = []struct {
	find *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`gpu-node-(\d+|\[[-0-9,]+\])`), "node"}, // one or two for two tasks is chance
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`line \d+: +\d+ `), "line N: PID "},
	{regexp.MustCompile(`\S+/slurm_script`), "SCRIPT"},
	{regexp.MustCompile(`/tmp/cmp\.\w+/`), "DIR/"},
	{regexp.MustCompile(`DIR/[sm]/`), "DIR/"},
	{regexp.MustCompile(`(JOB |STEP |StepId=)(J'*|\d+)`), "${1}J"}, // tasks of an array get their numbers in any order
	{regexp.MustCompile(`tasks? [-0-9,]+:`), "TASKS:"},             // how many end at once is chance
	{regexp.MustCompile(`[a-z]+: why: .*\n`), ""},                  // what Slurm does not say
	// whether an allocation waits for its node is the other cells' doing
	{regexp.MustCompile(`(srun|salloc): job J (queued and waiting for|has been allocated) resources\n`), ""},
	{regexp.MustCompile(`salloc: Pending job allocation J\n`), ""},
	{regexp.MustCompile(`srun: Required node not available \(down, drained or reserved\)\n`), ""}, // said or not, by chance
	{regexp.MustCompile(`\[1:open\]\[0:open\]`), "[0:open][1:open]"},                              // which of two tasks dies first
	{regexp.MustCompile(`\x00|\^@`), ""},                                                          // as a terminal shows it
}

// replaceVarying takes the job's number, nodes and times out of a text, and sorts its lines, each once: several
// processes write it.
func replaceVarying(text, id string) string {
	if n, err := strconv.Atoi(id); err == nil {
		for k := 2; k >= 0; k-- { // an array's records, or components
			text = regexp.MustCompile(`(^|\D)`+strconv.Itoa(n+k)+`(\D|$)`).ReplaceAllString(text, "${1}J"+strings.Repeat("'", k)+"${2}")
		}
	}
	text = strings.ReplaceAll(text, "\r", "")
	for _, v := range varying {
		text = v.find.ReplaceAllString(text, v.by)
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}
