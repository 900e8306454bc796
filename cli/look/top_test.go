package look

import (
	"slices"
	"strings"
	"testing"

	"dev.muster/slurm/front"
	"dev.muster/slurm/slurmtest"
)

// topOf is muster top of the fake cluster.
func topOf(t *testing.T) *topScreen {
	t.Helper()
	f := slurmtest.New()
	f.AddJobs()
	s := &topScreen{sys: &front.Sys{}, st: statusOf(f, &front.Sys{}, threeServers...)}
	s.st.nodes = f.Nodes
	for i := range s.st.jobs[:3] {
		job, spec := *s.st.jobs[i].Job, *s.st.jobs[i].Spec
		spec.User, job.Spec = "alice", &spec
		s.st.jobs[i].Job = &job
	}
	return s
}

// TestSplitKeys: what a terminal sends at once is cut into keys, and unknown sequences are left out.
func TestSplitKeys(t *testing.T) {
	for text, want := range map[string]string{
		"q":                        "q",
		"\x1b[A\x1b[Bj":            "up down j",
		"\x1b":                     "esc",
		"\x1b[5~\x1b[6~\x1bOH\x1b": "page up page down home esc",
		"/bø\x7f\r":                "/ b ø back enter",
		"\x1b[1;5Cx":               "x",
		"\x1b[200":                 "",
		"\x03":                     "quit",
	} {
		if got := strings.Join(splitKeys(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestTopViews: each view has its rows, with a filter those that have it in them.
func TestTopViews(t *testing.T) {
	s := topOf(t)
	for k, want := range map[string]string{"1": "JOB", "2": "gpu-node-007", "3": "alice", "4": "h100"} {
		s.key(k)
		all := strings.Join(s.lines(100, 200), "\n")
		if !strings.Contains(all, want) {
			t.Errorf("view %s has no %q:\n%s", k, want, all)
		}
	}
	s.key("3")
	for _, k := range []string{"/", "a", "l", "i", "x", "back", "c", "enter"} {
		s.key(k)
	}
	if rows := s.kept(); len(rows) != 1 || rows[0].id != "alice" {
		t.Fatalf("users with alic: %v", rows)
	}
	s.key("enter")
	if s.view != 0 || len(s.kept()) == 0 {
		t.Fatalf("alice's jobs: view %d, %d rows", s.view, len(s.kept()))
	}
	for _, r := range s.kept() {
		if r.job.Spec.User != "alice" {
			t.Errorf("a job of %s among alice's", r.job.Spec.User)
		}
	}
	s.key("esc")
	if n := len(s.kept()); n != len(s.st.jobs) {
		t.Errorf("%d of %d jobs without a filter", n, len(s.st.jobs))
	}
}

// TestTopMoves: the chosen row stays on the screen, and stays the same when others come before it.
func TestTopMoves(t *testing.T) {
	s := topOf(t)
	s.key("4")
	for _, k := range []string{"down", "page down", "up", "end", "home", "page down", "page down"} {
		s.key(k)
		r, ok := s.row()
		if lines := s.lines(90, 14); !ok || len(lines) > 13 || !slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, r.text)
		}) {
			t.Fatalf("after %s: row %q is not among\n%s", k, r.text, strings.Join(lines, "\n"))
		}
	}
	was, _ := s.row()
	s.st.nodes = s.st.nodes[1:]
	if is, _ := s.row(); is.id != was.id {
		t.Errorf("chosen was %s, is %s after a node has gone", was.id, is.id)
	}
}

// TestTopHostileNames: what users call their jobs moves no cursor.
func TestTopHostileNames(t *testing.T) {
	s := topOf(t)
	for i := range s.st.jobs {
		spec := *s.st.jobs[i].Spec
		s.st.jobs[i].Spec = &spec
		spec.Name = "\x1b[2J\u009b1mgone"
	}
	for _, l := range s.lines(120, 60) {
		if strings.ContainsAny(l, "\x1b\u009b") {
			t.Fatalf("%q", l)
		}
	}
	if all := strings.Join(s.lines(0, 0), "\n"); strings.ContainsAny(all, "\x1b\u009b") {
		t.Error("printed once, they do")
	}
}

// TestTopQuestion: only y cancels.
func TestTopQuestion(t *testing.T) {
	s := topOf(t)
	for _, k := range []string{"n", "esc", "c", "enter"} {
		s.key("c")
		if s.ask == nil || !strings.Contains(s.status(), "y/n") {
			t.Fatalf("nothing is asked: %q", s.status())
		}
		asked := s.ask
		asked.yes = func() string { t.Errorf("%s was a yes", k); return "" }
		if s.key(k); s.ask != nil {
			t.Errorf("after %s it is asked still", k)
		}
	}
	s.key("c")
	s.ask.yes = func() string { return "done" }
	if s.key("y"); s.status() != "done" {
		t.Errorf("after y: %q", s.status())
	}
}

// TestTopPanel: a panel scrolls within its text, follows what is written, and does not print what moves the cursor.
func TestTopPanel(t *testing.T) {
	text := "one\ntwo\n\x1b[31mred\nfour\nfive\n"
	p := newPanel("log", func() string { return text })
	p.atEnd = true
	s := topOf(t)
	s.panel = p
	if got := strings.Join(p.lines(80, 2), "|"); got != "four|five" {
		t.Errorf("at its end: %q", got)
	}
	text += "six\n"
	p.renew()
	if got := strings.Join(p.lines(80, 2), "|"); got != "five|six" {
		t.Errorf("after a line was written: %q", got)
	}
	s.key("home")
	if got := strings.Join(p.lines(80, 3), "|"); got != "one|two| [31mred" {
		t.Errorf("from its beginning: %q", got)
	}
	if s.key("q") || s.panel != nil {
		t.Error("q did not go back")
	}
	if !s.key("q") {
		t.Error("q did not end")
	}
}
