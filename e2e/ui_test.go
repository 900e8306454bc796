package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestUI: muster ui opens a session on one server that all others take; what is asked for there is done by the leader;
// logging out on one ends it on all.
func TestUI(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	id := g.must("s1", "sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "true")
	link, err := url.Parse(g.must("s1", "muster", "ui"))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var cookie *http.Cookie
	ask := func(method, server, path string, form url.Values) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+g.pageAt(g.host(server))+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if cookie != nil {
			r.AddCookie(cookie)
		}
		w, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		body, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if c := w.Cookies(); len(c) > 0 {
			cookie = c[0]
		}
		return w.StatusCode, string(body)
	}
	once := url.Values{"once": {link.Query().Get("once")}}
	for _, server := range []string{"s3", "s1"} {
		if code, body := ask("GET", server, "/login?"+once.Encode(), nil); code != 200 ||
			!strings.Contains(body, "Log in as") {
			t.Fatalf("%s does not know the link: %d %s", server, code, body)
		}
	}
	if code, body := ask("POST", "s2", "/login", once); code != 303 {
		t.Fatalf("login at another server than the link's: %d %s", code, body)
	}
	for _, server := range []string{"s1", "s2", "s3"} {
		kept := cookie
		if code, body := ask("POST", server, "/login", once); code != 410 {
			t.Fatalf("%s takes the link again: %d %s", server, code, body)
		}
		cookie = kept
	}
	mine := cookie
	token := func(server, path string) string {
		t.Helper()
		_, body := ask("GET", server, path, nil)
		m := regexp.MustCompile(`name="csrf" value="([0-9a-f]+)"`).FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("%s%s has no form:\n%s", server, path, body)
		}
		return m[1]
	}
	g.wait("the job at a follower", func() bool {
		code, _ := ask("GET", g.others(g.leader("s1"))[0], "/jobs/"+id, nil)
		return code == 200
	})
	follower := g.others(g.leader("s1"))[0]
	if code, body := ask("POST", follower, "/jobs/"+id+"/cancel", url.Values{"csrf": {token(follower, "/jobs/"+id+"/cancel")}}); code != 303 {
		t.Fatalf("cancel at a follower: %d %s", code, body)
	}
	g.wait("the job to end",
		func() bool { return g.must("s1", "squeue", "-h", "-j", id, "-t", "all", "-o", "%t") == "CA" })
	past := g.must("s1", "sbatch", "--parsable", "-w", "c1-001", "-o", "out-%N-%j", "--wrap",
		"echo hello from $SLURMD_NODENAME")
	g.wait("the job's end at "+follower, func() bool {
		_, body := ask("GET", follower, "/jobs/"+past, nil)
		return strings.Contains(body, "/jobs/"+past+"/log\">full output<")
	})
	if _, body := ask("GET", follower, "/jobs/"+past+"/log", nil); !strings.Contains(body, "hello from c1-001") ||
		!strings.Contains(body, "out-c1-001-"+past) {
		t.Errorf("the output of a job that has ended on c1: %s", body)
	}
	if _, errs, code := g.run("c1", "muster", "ui"); code == 0 || !strings.Contains(errs, "root") {
		t.Errorf("root of a compute node got a link: %d %s", code, errs)
	}
	g.at["c1"].kill()
	if _, body := ask("GET", follower, "/jobs/"+past+"/log", nil); !strings.Contains(body,
		"out-%N-%j, on node c1-001): ") {
		t.Errorf("the output of a job whose node is away: %s", body)
	}
	servers := []string{"s1", "s2", "s3"}
	for _, s := range servers {
		g.at[s].kill()
	}
	g.at["s2"].start()
	g.wait("the page of s2 alone", func() bool {
		code, _ := fetch(t, "http://"+g.pageAt(g.host("s2"))+"/livez")
		return code == 200
	})
	if _, body := ask("GET", "s2", "/", nil); strings.Contains(body, "log out") {
		t.Error("a server that has heard of no leader takes a session: it may have ended")
	}
	g.at["s1"].start()
	g.at["s3"].start()
	for _, s := range servers {
		g.wait("the session at "+s, func() bool {
			code, body := fetch(t, "http://"+g.pageAt(g.host(s))+"/livez")
			if code == 200 {
				_, body = ask("GET", s, "/", nil)
			}
			return strings.Contains(body, "log out")
		})
	}
	csrf := token("s3", "/")
	g.at["s2"].kill()
	g.wait("a leader without s2", func() bool {
		code, _ := ask("POST", "s3", "/logout", url.Values{"csrf": {csrf}})
		return code == 303
	})
	g.at["s3"].kill()
	for _, s := range []string{"s2", "s3"} { // one was down at the logout, the other one has restarted
		g.at[s].start()
	}
	cookie = mine
	for _, s := range []string{"s2", "s3"} {
		g.wait("the page of "+s, func() bool {
			code, _ := fetch(t, "http://"+g.pageAt(g.host(s))+"/livez")
			return code == 200
		})
		if _, body := ask("GET", s, "/", nil); strings.Contains(body, "log out") {
			t.Errorf("%s takes a session that has ended", s)
		}
	}
	g.wait("s1 to know, which has not restarted and may have lost its leader", func() bool {
		_, body := ask("GET", "s1", "/", nil)
		return !strings.Contains(body, "log out")
	})
}

// TestUILive: the output of a job and what it uses while it runs are shown to its user, as far as the user may read
// them.
func TestUILive(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec", "--http", addr)
	id := d.must("sbatch", "--parsable", "-o", d.dir+"/out-%j", "--wrap",
		"echo '<b>hello</b>' $SLURM_JOB_ID; sleep 1000")
	d.wait("its output", func() bool { return strings.Contains(d.soFar("out-"+id), "hello") })
	v := logIn(t, d, addr)
	body := v.get("/jobs/" + id + "/log")
	for _, want := range []string{"&lt;b&gt;hello&lt;/b&gt; " + id, "out-" + id, "<td>script</td>", "CPU time"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	d.must("scancel", id)
	d.wait("its end", func() bool { return d.must("squeue", "-h") == "" })
	if body := v.get("/jobs/" + id); !strings.Contains(body, `<a href="/jobs/`+id+`/log">full output</a>`) {
		t.Errorf("an ended job has no link to its output: %s", body)
	}
	body = v.get("/jobs/" + id + "/log")
	for _, want := range []string{"&lt;b&gt;hello&lt;/b&gt; " + id, "out-" + id, "cancelled"} {
		if !strings.Contains(body, want) {
			t.Errorf("once it has ended: %q is not in %s", want, body)
		}
	}
	if err := os.Remove(d.dir + "/out-" + id); err != nil {
		t.Fatal(err)
	}
	if body := v.get("/jobs/" + id + "/log"); !strings.Contains(body, "No such file") || !strings.Contains(body,
		"on node node-001") {
		t.Errorf("a file that is gone: %s", body)
	}
}

// TestUISooner: who holds what a job is to get is shown to all, what would start it sooner to its user.
func TestUISooner(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-time", "1h", "--http", addr)
	holds := d.must("sbatch", "--parsable", "-N2", "--exclusive", "-t", "60", "-o", "/dev/null", "--wrap", "sleep 1000")
	d.wait("its start", func() bool { return d.must("squeue", "-h", "-o", "%t") == "R" })
	short := d.must("sbatch", "--parsable", "-N1", "--exclusive", "-t", "60", "-w", "node-001", "-o",
		"/dev/null", "--wrap", "true")
	d.must("scontrol", "update", "jobid="+holds, "timelimit=90")
	d.must("scontrol", "create", "reservation=later", "starttime=now+2hours", "duration=600", "nodes=ALL",
		"users=nobody", "flags=ignore_jobs")
	v := logIn(t, d, addr)
	d.wait("what is foretold", func() bool { return !strings.Contains(v.get("/jobs/"+short), "is being worked out") })
	body := v.get("/jobs/" + short)
	for _, want := range []string{"The resources that it needs are held by:", `<a href="/jobs/` + holds + `">`,
		"node-001, over in ", `href="/jobs/` + short + `/sooner">`} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	body = v.get("/jobs/" + short + "/sooner")
	for _, want := range []string{
		"Ways to start sooner", "data-still", "with 30 min instead of 1 h",
		"scontrol update jobid=" + short + " timelimit=30",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	r, err := http.Get("http://" + addr + "/jobs/" + short + "/sooner")
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != http.StatusForbidden {
		t.Errorf("who has not logged in gets %s", r.Status)
	}
}

// TestUILivePrivate: what a job writes below its own /tmp is shown while the job has it.
func TestUILivePrivate(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d, _ := startPrivate(t, "", "--http", addr)
	v := logIn(t, d, addr)
	for dir, want := range map[string][2]string{
		"/tmp":     {"hello from job ", "went with the job"},
		"/dev/shm": {"memory that only the job sees; srun --jobid ", "went with the job"},
	} {
		id := d.must("sbatch", "--parsable", "-o", dir+"/muster-out-%j", "--wrap",
			"echo hello from job $SLURM_JOB_ID; exec sleep 1000")
		d.wait("its output", func() bool {
			out, _, _ := d.run("srun", "--jobid", id, "--overlap", "cat", dir+"/muster-out-"+id)
			return strings.Contains(out, "hello")
		})
		// The script may write before the servers have heard that it began.
		d.wait("the page to show "+want[0]+id, func() bool {
			return strings.Contains(v.get("/jobs/"+id+"/log"), want[0]+id)
		})
		d.must("scancel", id)
		d.wait("its end", func() bool { return d.must("squeue", "-h") == "" })
		if body := v.get("/jobs/" + id + "/log"); !strings.Contains(body, want[1]) {
			t.Errorf("%s, once it has ended: %q is not in %s", dir, want[1], body)
		}
	}
}

// visitor is somebody who has logged in to a page.
type visitor struct {
	t    *testing.T
	addr string
	http *http.Client
}

// logIn opens a session with the link that muster ui prints.
func logIn(t *testing.T, d *dev, addr string) *visitor {
	t.Helper()
	link, err := url.Parse(d.must("muster", "ui"))
	if err != nil || link.Host != addr {
		t.Fatalf("%v: the link leads to %s, not %s", err, link.Host, addr)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, addr: addr, http: &http.Client{Jar: jar}}
	r, err := v.http.PostForm("http://"+addr+"/login", url.Values{"once": {link.Query().Get("once")}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != 200 {
		t.Fatalf("login: %d", r.StatusCode)
	}
	return v
}

func (v *visitor) get(path string) string {
	v.t.Helper()
	r, err := v.http.Get("http://" + v.addr + path)
	if err != nil {
		v.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		v.t.Fatalf("%s: %d %v %s", path, r.StatusCode, err, b)
	}
	return string(b)
}

// TestPageLog: in a browser the log opens at its end, shows a line within a second or two of its being written,
// and leaves who reads further up where they are; errors stand beside it; lines with a word are found, and all of
// it can be had as a file.
func TestPageLog(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec", "--http", addr)
	id := d.must("sbatch", "--parsable", "--array=7", "-o", d.dir+"/out", "-e", d.dir+"/err",
		"--wrap", "echo oh dear >&2; seq -f 'line %g of many' 20000; exec sleep 1000")
	d.wait("its output", func() bool { return strings.Contains(d.soFar("out"), "line 20000 of many") })
	d.wait("its start", func() bool { return d.must("squeue", "-h", "-o", "%t") == "R" }) // it may write before servers know
	v := logIn(t, d, addr)
	path := "/jobs/" + id + "_7/log"
	if body := v.get(path + "?stream=err"); !strings.Contains(body, "oh dear") || strings.Contains(body, "line 20000") {
		t.Errorf("its errors: %s", body)
	}
	if body := v.get(path + "?find=LINE+1777+"); !strings.Contains(body, "line 1777 of many\n") ||
		strings.Contains(body, "line 1778") {
		t.Errorf("what is found: %s", body)
	}
	if all := v.get(path + "/file/out"); !strings.HasPrefix(all, "line 1 of many\n") || strings.Count(all,
		"\n") != 20000 {
		t.Errorf("the file has %d lines", strings.Count(all, "\n"))
	}
	b := startBrowser(t, d.dir)
	if b == nil {
		return
	}
	b.enter(v)
	b.open("http://"+addr+path, 1200, "light")
	const page = `const box = document.getElementById("scroll"), pre = document.getElementById("tail"), at = box.getBoundingClientRect();`
	read := func() []string {
		return b.run(`(() => {` + page + ` return [box.scrollTop + "", pre.textContent.trimEnd().split("\n").at(-1),
			document.getElementById("follows").textContent]; })()`)
	}
	if at := read(); at[0] != "0" || at[1] != "line 20000 of many" {
		t.Errorf("it opens at %q", at)
	}
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(d.dir+"/out", os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	d.wait("the page to follow", func() bool { return read()[2] == "following" || read()[2] == "" })
	add("and one more\n")
	began := time.Now()
	d.wait("the line", func() bool { return read()[1] == "and one more" })
	if took := time.Since(began); took > patience(3*time.Second) {
		t.Errorf("the line was there after %v", took)
	}
	b.run(`(document.getElementById("scroll").scrollTop = -500, [])`)
	line := `(() => {` + page + ` const range = document.caretRangeFromPoint(at.x + 30, at.y + 60);
		return [range.startContainer.data.slice(range.startOffset).split("\n")[0]]; })()`
	before := b.run(line)
	add(strings.Repeat("much more\n", 50))
	d.wait("the lines", func() bool { return read()[1] == "much more" })
	if after := b.run(line); after[0] != before[0] {
		t.Errorf("who reads at %s is taken to %s", before, after)
	}
	d.must("scancel", id)
	d.wait("the page to say that it is over", func() bool { return read()[2] == "job ended" })
	for _, s := range b.said {
		t.Errorf("the browser says %s", s)
	}
}

// TestPagePlan: the plan has the starts that squeue --start has, at the same times and on the same nodes.
func TestPagePlan(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "4x8c16g", "--hollow-time", "1h", "--http", addr)
	d.must("sbatch", "--parsable", "-N3", "--exclusive", "-t", "60", "-J", "first", "-o", "/dev/null", "--wrap",
		"sleep 1000")
	d.wait("its start", func() bool { return d.must("squeue", "-h", "-o", "%t") == "R" })
	for _, n := range []string{"4", "2", "1", "3"} {
		d.must("sbatch", "-N"+n, "--exclusive", "-t", "90", "-J", "of-"+n, "-o", "/dev/null", "--wrap", "true")
	}
	v := logIn(t, d, addr)
	d.wait("the plan to be as squeue has it", func() bool {
		said := d.must("squeue", "--start", "-h", "-o", "%i %j %S %Y")
		body := v.get("/plan")
		n := 0
		for line := range strings.Lines(said) {
			f := strings.Fields(line)
			if len(f) < 4 || f[2] == "N/A" {
				continue
			}
			if want := f[0] + " " + f[1] + " of root, planned for " + f[2] + " on " + f[3]; !strings.Contains(body,
				want) {
				return false
			}
			n++
		}
		return n == 3
	})
}

// TestUINewcomer: whoever opens the page for the first time, and submits the form as it is offered, sees what the job
// wrote.
func TestUINewcomer(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "2x8c16g2gpu:h100", "--hollow-exec", "--http", addr)
	v, b := logIn(t, d, addr), startBrowser(t, d.dir)
	if b == nil {
		return
	}
	b.enter(v)
	b.open("http://"+addr+"/", 1200, "light")
	b.submit(func() { b.run(`(document.querySelector("nav a[href='/submit']").click(), [])`) })
	b.run(`(document.querySelector("[name=folder]").value = ` + strconv.Quote(d.dir) + `, [])`) // not the user's home
	b.submit(func() { b.run(`(document.querySelector("main button.do").click(), [])`) })
	if at := b.run(`[location.pathname]`); !strings.HasPrefix(at[0], "/jobs/") {
		t.Fatalf("the form leads to %s", at)
	}
	var text string
	defer func() {
		if t.Failed() {
			t.Logf("the job's page: %s", text)
		}
	}()
	d.wait("the output on the job's page", func() bool {
		text = b.run(`[document.querySelector("main").innerText]`)[0]
		return strings.Contains(text, "ended: ") && strings.Contains(text, "full output\ngpu-node-00")
	})
	if strings.Contains(text, "not found") || !strings.Contains(text, "completed") {
		t.Error("the default script did not run")
	}
	for _, path := range []string{"/", "/map", "/accounts", "/queue?state=ended"} {
		b.look("http://"+addr, path, 390, "light")
		b.judge(path)
		small := b.run(`[...document.querySelectorAll("td a, td input, .counts a, .pages a")].filter((e) => {
			const at = e.getBoundingClientRect(); return at.height < 24 || at.width < 24; }).map((e) => e.outerHTML)`)
		if len(small) > 0 {
			t.Errorf("%s: too small for a finger: %s", path, small)
		}
	}
	for _, s := range b.said {
		t.Errorf("the browser says %s", s)
	}
}

// enter gives the browser a visitor's session.
func (b *browser) enter(v *visitor) {
	b.t.Helper()
	base := "http://" + v.addr
	u, err := url.Parse(base)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range v.http.Jar.Cookies(u) {
		b.call("Network.setCookie", map[string]any{"name": c.Name, "value": c.Value, "url": base, "httpOnly": true,
			"sameSite": "Strict"}, nil)
	}
}

// TestPagePast: each server keeps samples of its own state, which SQL and the page read, and there is one of each
// minute though the leader was lost.
func TestPagePast(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	for _, s := range []string{"s1", "s2", "s3"} {
		g.wait("a sample at "+s, func() bool {
			return g.must(s, "muster", "sql", "--noheader",
				"SELECT count(*) > 0 FROM samples WHERE kind = 'node'") == "1"
		})
	}
	lead := g.leader("s1")
	g.at[lead].kill()
	for _, s := range g.others(lead) {
		r, err := http.Get("http://" + g.pageAt(g.host(s)) + "/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || !strings.Contains(string(body), `class="plot"`) {
			t.Errorf("%s has no curves: %v %s", s, err, body)
		}
	}
}

// TestPageBulk: by the keyboard alone jobs are searched for, and several are held and cancelled at once, each after
// a question.
func TestPageBulk(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec", "--http", addr)
	v, b := logIn(t, d, addr), startBrowser(t, d.dir)
	if b == nil {
		return
	}
	b.enter(v)
	busy := d.must("sbatch", "--parsable", "--exclusive", "-J", "busy", "-o", "/dev/null", "--wrap", "exec sleep 1000")
	var waiting []string
	for range 3 {
		waiting = append(waiting, d.must("sbatch", "--parsable", "--exclusive", "-J", "wanted", "-o", "/dev/null",
			"--wrap", "true"))
	}
	b.open("http://"+addr+"/", 1200, "light")
	b.press("/")
	b.call("Input.insertText", map[string]any{"text": "wanted"}, nil)
	b.submit(func() { b.press("Enter") })
	text := b.run(`[location.search, document.body.innerText]`)
	if text[0] != "?q=wanted" || strings.Contains(text[1], "busy") || !strings.Contains(text[1], "1 to 3 of 3") {
		t.Fatalf("the search leads to %s", text)
	}
	for _, c := range [][2]string{{"hold", "JobHeldAdmin"}, {"cancel", ""}} {
		b.open("http://"+addr+"/queue?q=wanted", 1200, "light")
		b.run(`([...document.querySelectorAll("[name=job]")].slice(0, 2).forEach((x) => x.click()), [])`)
		b.submit(func() { b.run(`(document.querySelector("[value=` + c[0] + `]").click(), [])`) })
		if text := b.run(`[document.querySelector("h1").innerText, document.querySelector("main").innerText]`); !strings.Contains(text[0], "2 jobs?") {
			t.Fatalf("%s asks %s", c[0], text)
		}
		b.submit(func() { b.run(`(document.querySelector(".do").click(), [])`) })
		if text := b.run(`[document.querySelector("h1").innerText]`); text[0] != c[0]+": done to 2 of 2." {
			t.Fatalf("%s: %s", c[0], text)
		}
		if c[1] != "" {
			if out := d.must("squeue", "-h", "-n", "wanted", "-o", "%i %r"); strings.Count(out, c[1]) != 2 {
				t.Errorf("after %s: %s", c[0], out)
			}
		}
	}
	if out := d.must("squeue", "-h", "-o", "%i"); strings.Contains(out, waiting[0]) || !strings.Contains(out,
		waiting[2]) || !strings.Contains(out, busy) {
		t.Errorf("left are %s of %s and %s", out, waiting, busy)
	}
	for _, s := range b.said {
		t.Errorf("the browser says %s", s)
	}
}

// press presses one key.
func (b *browser) press(key string) {
	b.t.Helper()
	text := map[string]string{"Enter": "\r"}[key]
	if text == "" {
		text = key
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": key}
		if kind == "keyDown" {
			p["text"] = text
		}
		b.call("Input.dispatchKeyEvent", p, nil)
	}
}

// submit does what leads to another page, and waits for that.
func (b *browser) submit(do func()) {
	b.t.Helper()
	b.loaded = false
	do()
	for !b.loaded {
		b.next("the next page")
	}
}
