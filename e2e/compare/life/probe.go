package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A probe is a program that writes down what happens to it: one line an event in the file "log"
// of the cell's folder, "seconds role pid event". Called as: probe FOLDER PROGRAM ROLE.

// program is how one kind of probe lives.
type program struct {
	catch []syscall.Signal   // written down; all others do what they do by default
	term  time.Duration      // with TERM it ends after this time with exit code 0; negative: it goes on
	after time.Duration      // it ends by itself, 0 never
	begin func(p *probe)     // what it does first
	last  func(p *probe) int // what it does at its end, instead of exit code 0
}

var most = []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGALRM, syscall.SIGTERM, syscall.SIGCONT, syscall.SIGXCPU, syscall.SIGTSTP}

// programs are the kinds of probes by name.
var programs = map[string]program{
	"save":     {catch: most, term: 3 * time.Second},
	"stubborn": {catch: most, term: -1},
	"usr":      {catch: []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2}, term: -1},
	"plain":    {term: -1, begin: becomeSleep},
	"parent":   {catch: most, term: time.Second, begin: func(p *probe) { p.spawn("child", "stubborn", false) }},
	"worker":   {catch: most, term: -1, begin: func(p *probe) { p.spawn("child", "usr", false) }},
	"forks": {
		catch: most, term: -1, after: time.Second,
		begin: func(p *probe) { p.spawn("away", "stubborn", true) },
	},
	"short":  {catch: most, term: -1, after: time.Second},
	"exit3":  {after: time.Second, last: func(*probe) int { return 3 }},
	"segv":   {after: time.Second, last: killed(syscall.SIGSEGV)},
	"fail1":  {catch: most, term: 3 * time.Second, begin: failFirst},
	"hog":    {after: time.Second, last: eatMemory},
	"pieces": {catch: most, term: 0, after: 6 * time.Second, begin: writePieces},
}

// probe is one process.
type probe struct {
	folder, role string
	rank         int
}

// runProbe is the whole life of a probe; the result is its exit code.
func runProbe(args []string) int {
	p := &probe{folder: args[0], role: args[2]}
	rank, set := os.LookupEnv("SLURM_PROCID")
	if p.rank, _ = strconv.Atoi(rank); set && p.role == "task" {
		p.role += roleOf(rank)
	}
	prog, known := programs[args[1]]
	if !known {
		fmt.Fprintln(os.Stderr, "probe: unknown program", args[1])
		return 2
	}
	heard := make(chan os.Signal, 64)
	if prog.catch != nil {
		for _, s := range prog.catch {
			signal.Notify(heard, s)
		}
	}
	p.note("ready")
	if prog.begin != nil {
		prog.begin(p)
	}
	var end <-chan time.Time
	if prog.after > 0 {
		end = time.After(prog.after)
	}
	for {
		select {
		case s := <-heard:
			p.note(name(s))
			if s == syscall.SIGTERM && prog.term >= 0 {
				end = time.After(prog.term)
			}
		case <-end:
			if prog.last != nil {
				p.note("last")
				return prog.last(p)
			}
			p.note("exit")
			return 0
		}
	}
}

// roleOf tells the tasks of arrays, steps and components apart.
func roleOf(rank string) string {
	for _, v := range []string{"SLURM_ARRAY_TASK_ID", "SLURM_STEP_ID"} {
		if n := os.Getenv(v); n != "" && n != "0" {
			rank += "." + n
		}
	}
	return rank
}

func name(s os.Signal) string {
	names := map[syscall.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGINT: "INT",
		syscall.SIGQUIT: "QUIT", syscall.SIGUSR1: "USR1",
		syscall.SIGUSR2: "USR2", syscall.SIGALRM: "ALRM", syscall.SIGTERM: "TERM", syscall.SIGCONT: "CONT",
		syscall.SIGXCPU: "XCPU", syscall.SIGTSTP: "TSTP"}
	return names[s.(syscall.Signal)]
}

// note writes one event down; a short append is whole.
func (p *probe) note(event string) {
	f, err := os.OpenFile(filepath.Join(p.folder, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%.3f %s %d %s\n", float64(time.Now().UnixMilli())/1000, p.role, os.Getpid(), event)
}

// spawn starts a child, in a session of its own if it is to get away.
func (p *probe) spawn(role, program string, away bool) {
	role += strings.TrimPrefix(p.role, "task")
	c := exec.Command(os.Args[0], p.folder, program, role)
	if away {
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	} else {
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
	}
	if err := c.Start(); err != nil {
		p.note("spawn: " + err.Error())
		return
	}
	go func() { // ends with the child, or with this process
		_ = c.Wait()
	}()
}

// becomeSleep is a program that knows nothing of signals.
func becomeSleep(p *probe) {
	p.note("exec: " + syscall.Exec("/bin/sleep", []string{"sleep", "600"}, os.Environ()).Error())
}

// failFirst: rank 0 goes on, every other one ends with exit code 3.
func failFirst(p *probe) {
	if p.rank > 0 {
		time.Sleep(200 * time.Millisecond)
		p.note("last")
		os.Exit(3)
	}
}

// killed ends by a signal of its own: a shell's, since this program would tell of a bad address itself.
func killed(s syscall.Signal) func(*probe) int {
	return func(p *probe) int {
		line := fmt.Sprintf("ulimit -c 0; kill -%d $$; sleep 10", int(s))
		p.note("exec: " + syscall.Exec("/bin/sh", []string{"sh", "-c", line}, os.Environ()).Error())
		return 9
	}
}

// eatMemory takes 600 MB.
func eatMemory(*probe) int {
	var kept [][]byte
	for range 600 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
	}
	return len(kept) - 600
}

// writePieces writes lines in parts, and a last one without its end.
func writePieces(p *probe) {
	for line := range 3 {
		for part := range 3 {
			fmt.Printf("[%d:%d:%d]", p.rank, line, part)
			time.Sleep(50 * time.Millisecond)
		}
		fmt.Println()
	}
	fmt.Printf("[%d:open]", p.rank)
}
