package e2e

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// formUser is a cluster whose page takes jobs, and a visitor who is no operator.
type formUser struct {
	*dev
	page, folder string
	http         *http.Client
}

func startFormUser(t *testing.T, keys string) *formUser {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: jobs are submitted as another user")
	}
	addr, dir := freeAddr(t), t.TempDir()
	program := writeProgram(t, dir, "check", "#!/bin/sh\nread -r p\n[ \"$p\" = \"secret of $1\" ]\n")
	templates := filepath.Join(dir, "templates")
	if err := os.Mkdir(templates, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"two-gpus.sh": "#!/bin/bash\n# One node with two GPUs.\n#SBATCH --gpus=2\ntrue\n",
		"notes.txt":   "no script\n", "../job_submit.lua": `function slurm_job_submit(job, parts, uid)
	if job.name == "forbidden" then slurm.log_user("that name is taken") return slurm.ERROR end
	return slurm.SUCCESS
end
function slurm_job_modify(job, rec, parts, uid) return slurm.SUCCESS end
`} {
		if err := os.WriteFile(filepath.Join(templates, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/shadow", filepath.Join(templates, "link.sh")); err != nil {
		t.Fatal(err)
	}
	conf := confWith(t, dir, "PagePassword="+program+"\nSubmitTemplates="+templates+"\n"+keys)
	text := "ClusterName=c\nMinJobAge=2\nJobSubmitPlugins=lua\nPartitionName=p Nodes=ALL Default=YES MaxTime=2:00:00\n" +
		"PartitionName=long Nodes=ALL\nPartitionName=admins Nodes=ALL AllowGroups=root\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &formUser{page: "http://" + addr, http: webClient(t, "")}
	s.dev = startDev(t, "--hollow", "2x8c16g2gpu:h100", "--hollow-exec", "--http", addr, "--conf", conf)
	if w, text := answer(t, s.http, "POST", s.page+"/login/password", url.Values{"user": {"daemon"},
		"password": {"secret of daemon"}}); w.StatusCode != 303 {
		t.Fatalf("login: %d %s", w.StatusCode, text)
	}
	s.folder = filepath.Join(s.dir, "home")
	if err := errors.Join(os.Mkdir(s.folder, 0o700), os.Chown(s.folder, daemonUID, -1)); err != nil {
		t.Fatal(err)
	}
	return s
}

var csrfField = regexp.MustCompile(`name="csrf" value="([0-9a-f]+)"`)

// send sends the form.
func (s *formUser) send(path, script string, fields ...string) (*http.Response, string) {
	s.t.Helper()
	_, text := answer(s.t, s.http, "GET", s.page+"/submit", nil)
	m := csrfField.FindStringSubmatch(text)
	if m == nil {
		s.t.Fatalf("the form has no token: %s", text)
	}
	form := url.Values{"csrf": {m[1]}, "script": {script}, "folder": {s.folder}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	part := ""
	if strings.HasSuffix(path, "check") {
		part = "1"
	}
	return answer(s.t, s.http, "POST", s.page+path, form, "X-Part", part)
}

// TestPageSubmit: a job is submitted by a form as the visitor, with the rights of the visitor and by the rules of the
// site; before that it is told when the job would start, why it would be refused and what may be a mistake.
func TestPageSubmit(t *testing.T) {
	t.Parallel()
	s := startFormUser(t, "")
	if w, _ := answer(t, webClient(t, ""), "GET", s.page+"/submit", nil); w.StatusCode != 303 ||
		w.Header.Get("Location") != "/login?to=%2Fsubmit" {
		t.Errorf("without a login: %d to %s", w.StatusCode, w.Header.Get("Location"))
	}
	_, form := answer(t, s.http, "GET", s.page+"/submit", nil)
	for _, want := range []string{"<option>p</option>", "<option>long</option>", "2 h 0 min", "2 h100",
		`/submit?template=two-gpus.sh" title="One node with two GPUs."`} {
		if !strings.Contains(form, want) {
			t.Errorf("the form lacks %q:\n%s", want, form)
		}
	}
	for _, none := range []string{"<option>admins</option>", "notes.txt", "link.sh"} {
		if strings.Contains(form, none) {
			t.Errorf("the form has %q", none)
		}
	}
	for name, has := range map[string]bool{"two-gpus.sh": true, "link.sh": false, "../job_submit.lua": false} {
		_, text := answer(t, s.http, "GET", s.page+"/submit?template="+url.QueryEscape(name), nil)
		if strings.Contains(text, "#SBATCH --gpus=2") != has || strings.Contains(text, "root:") {
			t.Errorf("template %s: %s", name, text)
		}
	}
	secret := filepath.Join(s.dir, "secret")
	if err := os.WriteFile(secret, []byte("TOP=hush"), 0o600); err != nil {
		t.Fatal(err)
	}
	const refused = "Would be rejected"
	for name, x := range map[string]struct {
		script string
		fields []string
		says   []string
	}{
		"fits": {"#!/bin/sh\r\ntrue\r\n", []string{"cpus", "2", "time", "5"},
			[]string{"starts now", "2 CPUs on gpu-node-001, partition p"}},
		"a mistake":    {"#!/bin/sh\ntrue\n#SBATCH -N2\n", nil, []string{"starts now", "line 3</th>"}},
		"too much":     {"#!/bin/sh\ntrue\n", []string{"nodes", "9"}, []string{refused, "node"}},
		"too long":     {"#!/bin/sh\n#SBATCH -t 3:00:00\ntrue\n", nil, []string{refused, "PartitionTimeLimit"}},
		"the field":    {"#!/bin/sh\n#SBATCH -t 3:00:00\ntrue\n", []string{"time", "10"}, []string{"starts now"}},
		"the site":     {"#!/bin/sh\ntrue\n", []string{"name", "forbidden"}, []string{refused, "that name is taken"}},
		"not a value":  {"#!/bin/sh\ntrue\n", []string{"time", "soon"}, []string{refused, "Invalid --time"}},
		"others' file": {"#!/bin/sh\n#SBATCH --export-file=" + secret + "\ntrue\n", nil, []string{refused}},
		"no script":    {"", nil, []string{"Batch script is empty"}},
	} {
		w, text := s.send("/submit/check", x.script, x.fields...)
		for _, want := range x.says {
			if w.StatusCode != 200 || !strings.Contains(text, want) || strings.Contains(text, "<html") {
				t.Errorf("%s: %d, no %q in\n%s", name, w.StatusCode, want, text)
			}
		}
	}
	if out := s.must("squeue", "-h"); out != "" {
		t.Errorf("checks submit jobs: %s", out)
	}
	if w, text := s.send("/submit", "#!/bin/sh\ntrue\n", "csrf", "x"); w.StatusCode != 403 {
		t.Errorf("another's token: %d %s", w.StatusCode, text)
	}
	if w, text := s.send("/submit", "#!/bin/sh\ntrue\n", "name", "forbidden"); w.StatusCode != 422 ||
		!strings.Contains(text, "that name is taken") || !strings.Contains(text, `value="forbidden"`) {
		t.Errorf("refused by the site: %d %s", w.StatusCode, text)
	}
	w, text := s.send("/submit", "#!/bin/sh\r\n#SBATCH --wait\r\nid -un; echo $X; sleep 1000\r\n", "name", "by form",
		"gpus", "h100:1", "time", "30", "nodes", "1", "mem", "1G")
	id := regexp.MustCompile(`^/jobs/(\d+)\?did=submit$`).FindStringSubmatch(w.Header.Get("Location"))
	if w.StatusCode != 303 || id == nil {
		t.Fatalf("submit: %d to %s\n%s", w.StatusCode, w.Header.Get("Location"), text)
	}
	want := "daemon|by form|30:00|gres:gpu:h100:1|" + s.folder
	if out := s.must("squeue", "-h", "-o", "%u|%j|%l|%b|%Z"); out != want {
		t.Errorf("the job is %s", out)
	}
	if _, text := answer(t, s.http, "GET", s.page+w.Header.Get("Location"), nil); !strings.Contains(text,
		"Job "+id[1]+" was submitted.") || !strings.Contains(text, "/submit?job="+id[1]) {
		t.Errorf("its page: %s", text)
	}
	_, text = answer(t, s.http, "GET", s.page+"/submit?job="+id[1], nil)
	for _, want := range []string{`name="name" value="by form"`, `name="gpus" value="h100:1"`, `value="1024M"`,
		`name="time" value="0-00:30:00"`, `value="` + s.folder + `"`, "#SBATCH --wait\nid -un",
		"Filled in from job " + id[1]} {
		if !strings.Contains(text, want) {
			t.Errorf("the form of the job lacks %q:\n%s", want, text)
		}
	}
	roots := s.must("sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "echo hush")
	if _, text := answer(t, s.http, "GET", s.page+"/submit?job="+roots, nil); strings.Contains(text, "hush") {
		t.Errorf("another's script is shown: %s", text)
	}
	s.must("scancel", id[1], roots)
	s.wait("history alone to have it", func() bool { return s.must("squeue", "-h", "-t", "all") == "" })
	_, text = answer(t, s.http, "GET", s.page+"/submit?job="+id[1], nil)
	kept := strings.Contains(text, "id -un") || strings.Contains(text, "Its script is not kept any more: paste it.")
	if !strings.Contains(text, `value="by form"`) || !kept {
		t.Errorf("the form of a job of history: %s", text)
	}
}

// TestPageSubmitBrowser: in a browser the answer stands beside the script while it is written.
func TestPageSubmitBrowser(t *testing.T) {
	t.Parallel()
	s := startFormUser(t, "")
	b := startBrowser(t, s.dir)
	if b == nil {
		return
	}
	b.enter(&visitor{t: t, addr: strings.TrimPrefix(s.page, "http://"), http: s.http})
	says := func() string { return b.seen(`document.getElementById("check")?.textContent ?? ""`) }
	for _, width := range []int{1440, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(s.page, "/submit?template=two-gpus.sh", width, scheme)
			s.wait("the answer", func() bool { return strings.Contains(says(), "starts now") })
			b.judge("submit, " + scheme)
			b.keep("submit" + shotName(scheme, width))
		}
	}
	set := func(name, value string) {
		b.run(`((e) => { e.value = ` + strconv.Quote(value) + `; return []; })(document.querySelector("#submit [name=` +
			name + `]"))`)
		b.run(`(document.getElementById("submit").dispatchEvent(new Event("input")), [])`)
	}
	set("gpus", "5")
	s.wait("the refusal", func() bool { return strings.Contains(says(), "Would be rejected") })
	b.judge("a submission that is refused")
	b.keep("submit-refused")
	set("gpus", "")
	set("script", "#!/bin/bash\n#SBATCH --gpu=2\nsleep 1000\n")
	s.wait("a refusal of the script", func() bool { return strings.Contains(says(), "--gpu") })
	set("script", "#!/bin/bash\n#SBATCH --gpus=2 -t 10\nsleep 1000\n")
	set("name", "typed")
	set("folder", s.folder)
	s.wait("the answer to it", func() bool { return strings.Contains(says(), "starts now") })
	b.run(`(document.querySelector("#submit button.do").click(), [])`)
	s.wait("the job's page", func() bool {
		return strings.Contains(b.seen(`document.querySelector(".did")?.textContent ?? ""`), "was submitted")
	})
	if out := s.must("squeue", "-h", "-o", "%u %j"); out != "daemon typed" {
		t.Errorf("the queue: %s", out)
	}
}
