package e2e

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestPageShell: in a browser one opens a terminal in a job of one's own, types, and sees what is said; it has the size
// of the window, and ends with the session. It is for the job's user alone.
func TestPageShell(t *testing.T) {
	t.Parallel()
	s := startFormUser(t, "PageShell=yes\n")
	id := s.submitAs(daemonUID, "-o", "/dev/null", "--gpus=1", "--wrap", "sleep 1000")
	roots := s.must("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 1000")
	s.wait("the jobs", func() bool {
		return s.must("squeue", "-h", "-t", "R", "-o", "%i") != "" && s.must("squeue", "-h", "-t", "PD") == ""
	})
	s.wait("a shell", func() bool { // squeue calls a job running before its node has confirmed it
		w, _ := answer(t, s.http, "GET", s.page+"/jobs/"+id+"/shell", nil)
		return w.StatusCode == 200
	})
	if w, text := answer(t, s.http, "GET", s.page+"/jobs/"+roots+"/shell", nil); w.StatusCode != 403 ||
		!strings.Contains(text, "only in your own jobs") {
		t.Errorf("in another's job: %d %s", w.StatusCode, text)
	}
	for _, path := range []string{"/shell?node=/etc/passwd", "/shell/socket?node=nosuch"} {
		w, text := answer(t, s.http, "GET", s.page+"/jobs/"+id+path, nil)
		if w.StatusCode != 403 || !strings.Contains(text, "choose one of its nodes") {
			t.Errorf("%s: %d %s", path, w.StatusCode, text)
		}
	}
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13",
		"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
	socket := s.page + "/jobs/" + id + "/shell/socket"
	if w, _ := answer(t, webClient(t, ""), "GET", socket, nil, upgrade...); w.StatusCode != 303 {
		t.Errorf("without a session: %d", w.StatusCode)
	}
	for why, header := range map[string][]string{"from another site": {"Origin", "http://evil.example"},
		"without TLS": {"X-Forwarded-For", "10.0.0.1"}} {
		w, _ := answer(t, s.http, "GET", socket, nil, slices.Concat(upgrade, header)...)
		if w.StatusCode != 403 {
			t.Errorf("%s: %d", why, w.StatusCode)
		}
	}
	b := startBrowser(t, s.dir)
	if b == nil {
		return
	}
	b.enter(&visitor{t: t, addr: strings.TrimPrefix(s.page, "http://"), http: s.http})
	shows := func() string {
		return b.seen(`[...document.querySelectorAll(".xterm-rows > div")].map((e) => e.textContent).join("\n")`)
	}
	told := func() string { return b.seen(`document.getElementById("told")?.textContent ?? ""`) }
	typed := func(text string) {
		b.call("Input.insertText", map[string]any{"text": text}, nil)
		for _, kind := range []string{"keyDown", "keyUp"} {
			b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Enter", "code": "Enter",
				"windowsVirtualKeyCode": 13, "text": "\r"}, nil)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1440, 390} {
			b.look(s.page, "/jobs/"+id+"/shell", width, scheme)
			s.wait("the shell", func() bool { return told() == "connected" && strings.Contains(shows(), "$") })
			typed("echo user $(id -un) in job $SLURM_JOB_ID with $CUDA_VISIBLE_DEVICES, $(tput cols) wide; tty")
			s.wait("its answer", func() bool {
				return strings.Contains(strings.ReplaceAll(shows(), "\n", ""), "user daemon in job "+id+" with 0,")
			})
			b.judge("shell, " + scheme)
			b.keep("shell" + shotName(scheme, width))
			if strings.Contains(shows(), " 80 wide") {
				t.Errorf("the terminal has not the size of the window: %s", shows())
			}
		}
	}
	typed("exit")
	s.wait("its end", func() bool { return strings.HasPrefix(told(), "the shell has ended") })
	b.look(s.page, "/jobs/"+id+"/shell", 1440, "light")
	s.wait("another", func() bool { return told() == "connected" && strings.Contains(shows(), "$") })
	_, front := answer(t, s.http, "GET", s.page+"/", nil)
	answer(t, s.http, "POST", s.page+"/logout", url.Values{"csrf": {csrfField.FindStringSubmatch(front)[1]}})
	s.wait("the end with the session", func() bool { return strings.HasPrefix(told(), "the session is over") })
	s.wait("the steps to end", func() bool { return s.must("squeue", "-h", "-s", "-j", id, "-o", "%j") == "batch" })
	for _, want := range []string{`msg="shell opened" job=` + id, "user=daemon", `msg="shell closed"`,
		`why="the session is over"`} {
		if !strings.Contains(s.soFar("log"), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	off := startFormUser(t, "")
	own := off.submitAs(daemonUID, "-o", "/dev/null", "--wrap", "sleep 1000")
	off.wait("the job", func() bool { return off.must("squeue", "-h", "-t", "R", "-o", "%i") == own })
	w, text := answer(t, off.http, "GET", off.page+"/jobs/"+own+"/shell", nil)
	if w.StatusCode != 403 || !strings.Contains(text, "Shells are disabled (PageShell in muster.conf)") {
		t.Errorf("without PageShell: %d %s", w.StatusCode, text)
	}
}
