package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/users"
	"dev.muster/cluster"
)

// Bounds of what the leader does outside of the state.
const (
	hooksAtOnce  = 64
	mailLimit    = time.Minute           // one run of MailProg, or of the script of JobCompLoc
	hookSays     = 1 << 10               // bytes of a program's output that are told of
	triggerLimit = 5 * time.Minute       // of a trigger's program, as in Slurm
	hookGather   = 20 * time.Millisecond // what ends within this is told in one entry
)

// Hooks is what the programs and scripts of hooks find.
type Hooks struct {
	// Socket is where these programs find a server.
	Socket string
	// Front is the program that becomes muster's front-ends; "": there is none.
	Front string
	// Filter runs the site's script; nil: there is none.
	Filter JobFilter
	// Burst calls functions of the script for burst buffers; nil: there is none.
	Burst BurstCaller
}

// topicHooks is that there is something to be done outside.
const topicHooks = "hooks"

// hooks does for one term what the state says is to be done outside, of one kind, and tells what came of it. What the
// state does not say any more is stopped.
func (s *Server) hooks(term context.Context, of *lane) {
	if s.cfg.Dialect == nil {
		return
	}
	busy := map[uint64]context.CancelFunc{}
	ends, began := make(chan cluster.HookEnd), time.Now()
	running := 0
	defer func() {
		for ; running > 0; running-- {
			<-ends // they end with the term; the next leader does them again
		}
	}()
	for {
		moved := s.wakeups.await(topicHooks)
		snap := s.committed()
		if _, full := snap.HookCount(); full && of.calls == nil {
			s.slog.Warn("messages about jobs are left out: too many wait to be sent")
		}
		stopGone(snap, of, busy)
		for e := range snap.Hooks() {
			if running == of.atOnce {
				break
			}
			if busy[e.ID] != nil || !of.takes(e) {
				continue
			}
			one, stop := context.WithCancel(term)
			busy[e.ID] = stop
			running++
			go func() { ends <- s.hook(one, e, snap.Config(), e.At.Before(began)) }()
		}
		select {
		case <-term.Done():
			return
		case <-moved:
		case end := <-ends:
			over := s.gather(ends, end)
			running -= len(over)
			if term.Err() != nil {
				return // whatever was killed by that has not been done
			}
			s.tellEnds(term, over)
			for _, e := range over {
				busy[e.ID]()
				delete(busy, e.ID)
			}
		}
	}
}

// stopGone stops the hooks that the state does not say any more.
func stopGone(snap *cluster.Snapshot, of *lane, busy map[uint64]context.CancelFunc) {
	if of.calls == nil || len(busy) == 0 {
		return
	}
	wanted := map[uint64]bool{}
	for e := range snap.Hooks() {
		wanted[e.ID] = true
	}
	for id, stop := range busy {
		if !wanted[id] {
			stop()
		}
	}
}

// tellEnds tells what came of hooks, until that is written down or the term ends.
func (s *Server) tellEnds(term context.Context, over []cluster.HookEnd) {
	for {
		_, _, err := s.propose(term, cluster.Identity{System: true}, &cluster.HooksDone{Ends: over})
		if err == nil || term.Err() != nil {
			return
		}
		s.slog.Warn("ends of hooks were not taken", "err", err)
		select {
		case <-term.Done():
		case <-time.After(time.Second):
		}
	}
}

// gather waits a little for more ends.
func (s *Server) gather(ends <-chan cluster.HookEnd, first cluster.HookEnd) []cluster.HookEnd {
	out := []cluster.HookEnd{first}
	for limit := time.After(hookGather); len(out) < hooksAtOnce; {
		select {
		case e := <-ends:
			out = append(out, e)
		case <-limit:
			return out
		}
	}
	return out
}

// hook runs one hook and says why it failed, if it did. It may be one that an earlier leader has done and not
// told of.
func (s *Server) hook(term context.Context, e *cluster.Hook, cfg *cluster.Config, again bool) cluster.HookEnd {
	var err error
	switch e.Kind {
	case cluster.HookBurst:
		return stage(term, s, e, cfg, again)
	case cluster.HookCall:
		err = s.call(term, e, cfg)
	case cluster.HookRetain:
		err = s.forgetOld(term, e, cfg)
	default:
		err = s.runHook(term, e, cfg, again)
	}
	if err == nil {
		return cluster.HookEnd{ID: e.ID}
	}
	if term.Err() == nil {
		about := slog.Any("node", e.Nodes)
		if e.Job != nil {
			about = slog.Any("job", e.Job.ID)
		} else if e.Reservation != "" {
			about = slog.Any("reservation", e.Reservation)
		}
		s.slog.Warn("a hook failed", "kind", e.Kind, about, "err", err)
	}
	return cluster.HookEnd{ID: e.ID, Failed: err.Error()}
}

// maxTurns bounds how many turns from one role to the other wait for their program.
const maxTurns = 64

// runTurns runs the programs of a server that begins to lead, or leads no longer, one after the other.
func (s *Server) runTurns(ctx context.Context, turns <-chan cluster.HookKind) {
	for kind := range turns {
		e := &cluster.Hook{Kind: kind}
		if cfg := s.Snapshot().Config(); kind == cluster.HookLead && cfg.LeadProgram != "" || kind == cluster.HookFollow && cfg.FollowProgram != "" {
			s.hook(ctx, e, cfg, false)
		}
	}
}

// runHook runs a hook's program to its end.
func (s *Server) runHook(term context.Context, e *cluster.Hook, cfg *cluster.Config, again bool) error {
	p := s.cfg.Dialect.HookProgram(e, cfg)
	if p.Append != "" {
		return appendLine(p.Append, p.Line, again)
	}
	argv := p.Argv
	if len(argv) == 0 || argv[0] == "" {
		return fmt.Errorf("no program is configured for a hook of kind %s any more", e.Kind)
	}
	file, err := textFile(p.File)
	if err != nil {
		return err
	}
	limit := cfg.PrologTimeout
	switch e.Kind {
	case cluster.HookTrigger:
		limit = triggerLimit
	case cluster.HookMail, cluster.HookJobComp, cluster.HookLead, cluster.HookFollow:
		limit = mailLimit
	case cluster.HookResume, cluster.HookResumeFail, cluster.HookSuspend:
		limit = cfg.LongestSwitch()
	}
	ctx, cancel := term, context.CancelFunc(func() {})
	if limit > 0 {
		ctx, cancel = context.WithTimeout(term, limit)
	}
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "/", append(ownFirst(p.Environ), "MUSTER_SOCKET="+s.cfg.Hooks.Socket)
	if file != "" {
		defer os.Remove(file)
		cmd.Env = append(cmd.Env, p.FileVar+"="+file)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if e.Trigger != nil {
		err = runAsUser(cmd.SysProcAttr, e.Trigger.UID)
	} else {
		err = users.RunAs(cmd.SysProcAttr, cfg.ServerUser)
	}
	if err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	if text := strings.TrimSpace(string(out[:min(len(out), hookSays)])); err != nil && text != "" {
		return fmt.Errorf("%s: %w: %s", argv[0], err, text)
	}
	if errors.Is(err, exec.ErrWaitDelay) { // a program that it left behind holds its output
		return nil
	}
	return err
}

// appendLine adds a line to a file in one piece, making the file if need be; of one that may have been added
// before, the end of the file is looked through first.
func appendLine(file, line string, again bool) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if again {
		there, err := endsWith(f, line)
		if err != nil || there {
			return errors.Join(err, f.Close())
		}
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// fileEnd is how much of a file's end is looked through for a line: those of hooksAtOnce hooks fit many times.
const fileEnd = 1 << 20

// endsWith reports whether a line is at the end of a file.
func endsWith(f *os.File, line string) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	end, err := io.ReadAll(io.NewSectionReader(f, max(info.Size()-fileEnd, 0), fileEnd))
	return strings.Contains("\n"+string(end), "\n"+line+"\n"), err
}

// textFile makes a file that the programs of SlurmUser may read; "" for no text.
func textFile(text []byte) (string, error) {
	if len(text) == 0 {
		return "", nil
	}
	f, err := os.CreateTemp("", "muster-")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// ownFirst puts the folder of this program, where the front-ends lie, first in PATH.
func ownFirst(environ []string) []string {
	exe, err := os.Executable()
	if err != nil {
		return environ
	}
	out := slices.Clone(environ)
	for i, v := range out {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			out[i] = "PATH=" + filepath.Dir(exe) + ":" + path
		}
	}
	return out
}

// runAsUser makes a process run as the user of a trigger, with the user's groups.
func runAsUser(attr *syscall.SysProcAttr, uid uint32) error {
	if os.Getuid() != 0 || uid == 0 {
		return nil
	}
	_, gid, groups, err := users.Lookup(uid)
	if err != nil {
		return err
	}
	attr.Credential = &syscall.Credential{Uid: uid, Gid: gid, Groups: groups}
	return nil
}
