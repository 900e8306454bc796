package supervisor

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"dev.muster/agent/step"
	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// maxJournal bounds the records of a journal before it is written again, if most are history.
const maxJournal = 20_000

// journal is the append-only record of steps that lets a later supervisor know them. It is
// not synced: it must survive this process, not the machine. supervisor.mu guards it.
type journal struct {
	path string
	f    *os.File
	n    int
}

// record is one line of the journal.
type record struct {
	Op     string           `json:"op"`             // boot start task exit frozen note ended forget
	Boot   string           `json:"boot,omitempty"` // of boot: the kernel's boot_id of these processes
	ID     step.ID          `json:"id"`
	Spec   *step.Spec       `json:"spec,omitempty"` // start; without environment and script
	Rank   int              `json:"rank,omitempty"`
	PID    int              `json:"pid,omitempty"`
	Ticks  uint64           `json:"ticks,omitempty"`  // task: not started after this, in clock ticks since boot
	Status *step.TaskStatus `json:"status,omitempty"` // exit
	Frozen bool             `json:"frozen,omitempty"`
	Note   []byte           `json:"note,omitempty"` // note: that of Spec from now on
}

// past is what a journal tells of one step.
type past struct {
	spec   step.Spec
	frozen bool
	ended  bool
	tasks  map[int]step.TaskStatus
	ticks  map[int]uint64
	gone   bool // the machine was restarted meanwhile: its process numbers are others' now
}

// bootID names this boot of the machine; "" if the kernel does not tell.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// openJournal reads what an earlier supervisor left and begins a new journal.
func (s *supervisor) openJournal(path string) (map[step.ID]*past, error) {
	old := map[step.ID]*past{}
	if b, err := os.ReadFile(path); err == nil {
		old = readJournal(bytes.NewReader(b), bootID())
	} else if !os.IsNotExist(err) {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	s.jour = &journal{path: path}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	f.Write([]byte("\n")) // ends a line cut short
	s.jour.f = f
	return old, nil
}

// readJournal replays a journal on a boot of the machine.
func readJournal(r io.Reader, boot string) map[step.ID]*past {
	m, was := map[step.ID]*past{}, ""
	br := bufio.NewReader(r)
	for {
		line, err := br.ReadBytes('\n')
		var rec record
		if len(line) > 1 && wire.Unmarshal(line, &rec) == nil {
			rec.replay(m)
			was = cmp.Or(rec.Boot, was)
		}
		if err != nil {
			for _, p := range m {
				p.gone = was != "" && was != boot
			}
			return m
		}
	}
}

func (rec *record) replay(m map[step.ID]*past) {
	if rec.Op == "start" && rec.Spec != nil {
		m[rec.ID] = &past{spec: *rec.Spec, tasks: map[int]step.TaskStatus{}, ticks: map[int]uint64{}}
		return
	}
	p := m[rec.ID]
	if p == nil {
		return
	}
	switch rec.Op {
	case "task", "exit":
		if rec.Status != nil {
			p.tasks[rec.Rank] = *rec.Status
			p.ticks[rec.Rank] = rec.Ticks
		}
	case "frozen":
		p.frozen = rec.Frozen
	case "note":
		p.spec.Note = rec.Note
	case "ended":
		p.ended = true
	case "forget":
		delete(m, rec.ID)
	}
}

func (j *journal) append(rec *record) {
	b, err := wire.Marshal(rec)
	if err == nil {
		j.n++
		_, err = j.f.Write(append(b, '\n'))
	}
	if err != nil {
		slog.Error("journal not written", "err", err)
	}
}

func startRecord(r *run) *record {
	sp := r.spec
	sp.Env, sp.Script, sp.Hosts, sp.Groups = nil, nil, nil, nil
	if sp.Server != nil { // one that adopts the step has no pipes of it, and removes what it leaves
		sp.Server = &step.Server{Dir: sp.Server.Dir}
	}
	sp.Tasks = append([]step.Task(nil), sp.Tasks...)
	for i := range sp.Tasks {
		sp.Tasks[i].Env = nil
	}
	return &record{Op: "start", ID: r.id, Spec: &sp}
}

func (j *journal) start(r *run) { j.append(startRecord(r)) }

func (j *journal) task(t *task) {
	t.ticks = ticksNow()
	st := t.st
	j.append(&record{Op: "task", ID: t.run.id, Rank: st.Rank, PID: st.PID, Ticks: t.ticks, Status: &st})
}

func (j *journal) exit(t *task) {
	st := t.st
	j.append(&record{Op: "exit", ID: t.run.id, Rank: st.Rank, PID: st.PID, Ticks: t.ticks, Status: &st})
}

func (j *journal) frozen(r *run)     { j.append(&record{Op: "frozen", ID: r.id, Frozen: r.frozen}) }
func (j *journal) note(r *run)       { j.append(&record{Op: "note", ID: r.id, Note: r.spec.Note}) }
func (j *journal) ended(r *run)      { j.append(&record{Op: "ended", ID: r.id}) }
func (j *journal) forget(id step.ID) { j.append(&record{Op: "forget", ID: id}) }

// compact writes the journal again when most of it is history.
func (j *journal) compact(s *supervisor) {
	if j.n < maxJournal || j.n < 8*len(s.steps) {
		return
	}
	if err := j.rewrite(s); err != nil {
		slog.Error("journal not compacted", "err", err)
	}
}

func (j *journal) rewrite(s *supervisor) error {
	f, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	fresh := &journal{path: j.path, f: f}
	fresh.append(&record{Op: "boot", Boot: bootID()})
	for _, r := range s.steps {
		fresh.start(r)
		for _, t := range r.tasks {
			if t.st.PID > 0 || !t.st.Ended.IsZero() {
				fresh.exit(t)
			}
		}
		if r.frozen {
			fresh.frozen(r)
		}
		if r.state == step.Ended {
			fresh.ended(r)
		}
	}
	if err := os.Rename(j.path+".new", j.path); err != nil {
		f.Close()
		return err
	}
	j.f.Close()
	*j = *fresh
	j.n = len(s.steps)
	return nil
}

// ticksNow is the time since boot in the unit of /proc/PID/stat, rounded up.
func ticksNow() uint64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return uint64(ts.Nano()/10_000_000) + 1 // USER_HZ is 100 everywhere
}
