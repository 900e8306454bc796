package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/slurmtest"
	"golang.org/x/sys/unix"
)

// ask makes a request of root's at a server with fixed records.
func ask(t *testing.T, f *slurmtest.Server, method, path, body string) (status int, mime, text string) {
	t.Helper()
	var out bytes.Buffer
	path, query, _ := strings.Cut(path, "?")
	q := &api.RESTRequest{Method: method, Path: path, Query: map[string][]string{}, Body: []byte(body),
		Host: "here",
		Who:  api.Caller{Identity: cluster.Identity{User: "root"}}, Dial: f.Dial(t)}
	for word := range strings.SplitSeq(query, "&") {
		if k, v, ok := strings.Cut(word, "="); ok {
			q.Query[k] = []string{v}
		}
	}
	Answer(q, func(s int, m string) io.Writer {
		status, mime = s, m
		return &out
	})
	return status, mime, out.String()
}

// fixed is a server that answers all calls of the paths.
func fixed() *slurmtest.Server {
	f := slurmtest.New()
	f.Own = f.Mux()
	slurmtest.WithBooks(f.Own, f)
	slurmtest.WithCounts(f.Own, f)
	return f
}

// fill puts names of fixed records into a path.
var fill = strings.NewReplacer("{job_id}", "734", "{node_name}", "gpu-node-001", "{partition_name}", "train",
	"{reservation_name}", "r",
	"{qos}", "normal", "{name}", "alice", "{account_name}", "team-a", "{cluster_name}", "oracle", "{id}", "1")

// TestReading: every path that reads answers in every version by its schema: nothing unknown, nothing missing.
func TestReading(t *testing.T) {
	f := fixed()
	for v := data.Oldest; v <= data.Newest; v++ {
		s := data.Load(v)
		for _, p := range s.Paths() {
			if p.Method != "GET" || reading()["GET "+p.Path] == nil {
				continue
			}
			kind, rest, _ := strings.Cut(p.Path[1:], "/")
			status, mime, text := ask(t, f, "GET", "/"+kind+"/"+s.Name()+"/"+fill.Replace(rest), "")
			var got any
			if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || mime != "application/json" {
				t.Errorf("%s of v0.0.%d: %d %s %v: %.300s", p.Path, v, status, mime, err, text)
				continue
			}
			for _, w := range data.Check(s.Type(p.Answer), got, true) {
				t.Errorf("%s of v0.0.%d: %s", p.Path, v, w)
			}
		}
	}
}

// TestConditions: lists of the books are of what their parameters ask for.
func TestConditions(t *testing.T) {
	for _, c := range []struct {
		path, member string
		want         int
	}{
		{"associations?cluster=oracle&account=team-a&user=alice", "associations", 1},
		{"associations?cluster=other", "associations", 0},
		{"associations?parent_account=nosuch", "associations", 0},
		{"associations?qos=nosuch", "associations", 0},
		{"association?id=1", "associations", 1},
		{"users?default_account=team-a", "users", 1},
		{"users?default_account=nosuch", "users", 0},
		{"accounts?description=nosuch", "accounts", 0},
		{"qos?id=1", "qos", 1},
		{"wckeys?cluster=other", "wckeys", 0},
	} {
		status, _, text := ask(t, fixed(), "GET", "/slurmdb/v0.0.45/"+c.path, "")
		var got map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 {
			t.Errorf("%s: %d %v %.300s", c.path, status, err, text)
			continue
		}
		if list, _ := got[c.member].([]any); len(list) != c.want {
			t.Errorf("%s: %d %s, want %d", c.path, len(list), c.member, c.want)
		}
	}
}

// TestServed counts the paths that nothing answers.
func TestServed(t *testing.T) {
	for v := data.Oldest; v <= data.Newest; v++ {
		for _, p := range data.Load(v).Paths() {
			if name := p.Method + " " + p.Path; routes()[name] == nil {
				t.Errorf("nothing answers %s of v0.0.%d", name, v)
			}
		}
	}
	for name := range routes() {
		method, path, _ := strings.Cut(name, " ")
		there := false
		for v := data.Oldest; v <= data.Newest; v++ {
			for _, p := range data.Load(v).Paths() {
				there = there || p.Method == method && p.Path == path
			}
		}
		if !there {
			t.Errorf("no version has %s", name)
		}
	}
}

// TestRefusedPaths lists the paths of all versions that are there, and always refused: each says why.
func TestRefusedPaths(t *testing.T) {
	f := fixed()
	want := map[string]string{
		"POST /slurmdb/tres":                     "are those of the configuration",
		"POST /slurmdb/clusters":                 "are those of the configuration",
		"DELETE /slurmdb/cluster/{cluster_name}": "There is one cluster, which cannot be deleted",
	}
	bodies := map[string]string{"POST /slurmdb/tres": `{"TRES":[{"type":"gres","name":"x"}]}`,
		"POST /slurmdb/clusters": `{"clusters":[{"name":"x"}]}`}
	for v := data.Oldest; v <= data.Newest; v++ {
		s := data.Load(v)
		for _, p := range s.Paths() {
			kind, rest, _ := strings.Cut(p.Path[1:], "/")
			name := p.Method + " " + p.Path
			_, _, text := ask(t, f, p.Method, "/"+kind+"/"+s.Name()+"/"+fill.Replace(rest), bodies[name])
			refused := strings.Contains(text, `"error_number":1010`)
			if reason, known := want[name]; known != refused || !strings.Contains(text, reason) {
				t.Errorf("%s of v0.0.%d: %.300s", name, v, text)
			}
		}
	}
}

// TestResources: what a running job has, told to its user; of others, and of jobs that have nothing, Slurm's errors.
func TestResources(t *testing.T) {
	f := fixed()
	asked := func(uid uint32, id string) (status int, text string) {
		var out bytes.Buffer
		q := &api.RESTRequest{Method: "GET", Path: "/slurm/v0.0.45/resources/" + id, Host: "here", Dial: f.Dial(t),
			Who: api.Caller{Identity: cluster.Identity{UID: uid, User: "x"}}}
		Answer(q, func(s int, _ string) io.Writer {
			status = s
			return &out
		})
		return status, out.String()
	}
	var running, pending string
	for _, j := range f.Jobs {
		id := fmt.Sprint(j.ID)
		switch {
		case j.Alloc != nil && j.Phase == cluster.Running && len(j.Alloc.Shares) > 0:
			running = id
		case j.Phase == cluster.Pending && j.Spec.Array == nil:
			pending = id
		}
	}
	for _, c := range []struct {
		uid    uint32
		id     string
		status int
		says   string
	}{
		{0, running, 200, `"core_bitmap":"0x`},
		{0, running, 200, `"sockets_per_node":`},
		{4711, running, 422, `"error_number":2010`},
		{0, "99999", 404, `"error_number":2017`},
		{0, pending, 422, `"error_number":2085`},
		{0, "abc", 422, "RFC7320"},
	} {
		if status, text := asked(c.uid, c.id); status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("job %s asked by %d: %d %s, want %d with %s", c.id, c.uid, status, text, c.status, c.says)
		}
	}
}

// TestConf: the configuration has what scontrol and sacctmgr show, by the types of the schema.
func TestConf(t *testing.T) {
	f := fixed()
	status, _, text := ask(t, f, "GET", "/slurm/v0.0.45/conf", "")
	for _, want := range []string{`"ClusterName":"`, `"MaxArraySize":`, `"controllers":[{"address":`,
		`"SLURM_VERSION":"26.05.3"`, `"TCPTimeout":`, `"JobRequeue":`} {
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("%d, no %s in %s", status, want, text)
		}
	}
	if status, _, text := ask(t, f, "GET", "/slurmdb/v0.0.45/conf", ""); status != 200 ||
		!strings.Contains(text, `"PurgeJobAfter":{"set":false,"hours":0,`) {
		t.Errorf("%d %s", status, text)
	}
}

// TestRefusals: what a request must not be, and what is not there.
func TestRefusals(t *testing.T) {
	f := fixed()
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/slurm/v0.0.44/node/nope", "", 404, "Invalid node name specified"},
		{"GET", "/slurm/v0.0.44/job/99999", "", 404, "Invalid job id specified"},
		{"GET", "/slurm/v0.0.44/job/abc", "", 422, "RFC7320"},
		{"GET", "/slurm/v0.0.44/jobs?flags=BOGUS", "", 422, "Unknown flag"},
		{"GET", "/slurm/v0.0.41/jobs", "", 404, "Unable to find requested URL endpoint"},
		{"PUT", "/slurm/v0.0.44/jobs", "", 404, "Unable to find requested URL endpoint"},
		{"POST", "/slurm/v0.0.44/job/submit", "{bad", 400, "Failure during parsing"},
		{"POST", "/slurm/v0.0.44/job/submit", "[]", 422, "no object"},
		{"POST", "/slurm/v0.0.44/job/submit", "{}", 422, "required for job submission"},
		{"POST", "/slurm/v0.0.44/job/submit", `{"script":"#!/bin/sh","job":{"tasks":"x"}}`, 422, "#/job/tasks/"},
		{"POST", "/slurm/v0.0.44/job/submit", `{"script":"#!/bin/sh","job":{"name":"x","environment":["A=b"]}}`,
			422, "working directory"},
		{"POST", "/slurm/v0.0.44/job/submit",
			`{"script":"#!/bin/sh","job":{"x11":["FORWARD_ALL_NODES"],"environment":["A=b"],
			"current_working_directory":"/"}}`,
			422, "x11 cannot be done here"},
		{"POST", "/slurm/v0.0.44/job/submit",
			`{"script":"#!/bin/sh","job":{"rlimits":{"cpu":{"set":true,"number":5}},"environment":["A=b"],
			"current_working_directory":"/"}}`,
			422, "rlimits cannot be done here"},
		{"POST", "/slurm/v0.0.44/job/submit",
			`{"script":"#!/bin/sh","job":{"user_id":"7","environment":["A=b"],"current_working_directory":"/"}}`,
			422, "user_id: a job is the caller's own"},
		{"POST", "/slurmdb/v0.0.45/jobs", `{"job_rec":{"wckey":"w"}}`, 422, "names no job"},
		{"POST", "/slurmdb/v0.0.45/jobs", `{"job_id_list":["7"],"job_rec":{"tres":{"allocated":[{"type":"cpu","count":1}]}}}`, 422,
			"tres cannot be done here"},
		{"POST", "/slurmdb/v0.0.45/jobs", `{"job_id_list":["7"]}`, 422, "Nothing to change"},
		{"GET", "/slurmdb/v0.0.44/jobs?reservation=x", "", 422, "reservation cannot be done here"},
		{"DELETE", "/slurm/v0.0.44/jobs", `{}`, 422, "Neither jobs nor a filter"},
		{"POST", "/slurmdb/v0.0.44/tres", `{"TRES":[{"type":"gres"}]}`, 422, "configuration"},
	} {
		status, _, text := ask(t, f, c.method, c.path, c.body)
		if status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s %s %s: %d %s, want %d with %s", c.method, c.path, c.body, status, text, c.status, c.says)
		}
	}
}

// TestSubmission: a job's members become what sbatch would have asked for; directives of the script do not count.
func TestSubmission(t *testing.T) {
	f := fixed()
	status, _, text := ask(t, f, "POST", "/slurm/v0.0.44/job/submit",
		`{"script":"#!/bin/sh\n#SBATCH -n 9\nhostname\n","job":{"name":"x","tasks":2,
		"partition":"train","time_limit":{"set":true,"infinite":false,"number":5},
		"memory_per_node":{"set":true,"number":512},"tres_per_node":"gres/gpu:h100:2",
		"environment":["A=b"],"current_working_directory":"/tmp","nice":3,"account":"","hold":true,"bogus":1}}`)
	if status != 200 || !strings.Contains(text, "Ignoring unknown field bogus") {
		t.Fatalf("%d %s", status, text)
	}
	log := strings.Join(f.Log, "\n")
	for _, want := range []string{`"name":"x"`, `"tasks":2`, `"partitions":["train"]`, `"limit":300000000000`,
		`"mem":{"per":1,"mb":512}`,
		`"per_node":[{"name":"gpu","type":"h100","count":2}]`, `"nice":3`, `"hold":true`, `"work_dir":"/tmp"`} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in %s", want, log)
		}
	}
}

// TestSubmissionJoined: what several members say together, and what no option says, arrives too.
func TestSubmissionJoined(t *testing.T) {
	for _, c := range []struct{ members, want string }{
		{`"admin_comment":"{\"pod\":1}"`, `"admin_comment":"{\"pod\":1}"`},
		{`"flags":["KILL_INVALID_DEPENDENCY"]`, `"kill_invalid_depend":true`},
		{`"flags":["SPREAD_JOB","PREFER_MINIMUM_NODE_COUNT"]`, `"spread":true`},
		{`"cpus_per_tres":"gres/gpu:2","tres_per_job":"gres/gpu:1"`, `"cpus_per_gpu":2`},
		{`"memory_per_tres":"gres/gpu=100","tres_per_job":"gres/gpu:1"`, `"mem":{"per":3,"mb":100}`},
		{`"kill_warning_signal":"USR1"`, `"signal":{"num":10,"before":60000000000}`},
		{`"kill_warning_flags":["BATCH_JOB"],"kill_warning_signal":"USR2",
			"kill_warning_delay":{"set":true,"number":90}`, `"signal":{"num":12,"before":90000000000,"batch_only":true}`},
		{`"wait_for_switch":90,"required_switches":{"set":true,"number":2}`, `"switches":2,`},
		{`"distribution_plane_size":{"set":true,"number":3},"tasks":6`, `"plane_size":3`},
	} {
		f := fixed()
		status, _, text := ask(t, f, "POST", "/slurm/v0.0.44/job/submit", `{"script":"#!/bin/sh\n","job":{`+
			c.members+`,"environment":["A=b"],"current_working_directory":"/tmp"}}`)
		if log := strings.Join(f.Log, "\n"); status != 200 || !strings.Contains(log, c.want) {
			t.Errorf("%s: %d, no %s in %s\n%s", c.members, status, c.want, log, text)
		}
	}
	for members, says := range map[string]string{
		`"flags":["CRON_JOB"]`:              "flags: CRON_JOB cannot be done here",
		`"kill_warning_flags":["FULL_JOB"]`: "kill_warning_flags: FULL_JOB cannot be done here",
		`"wait_for_switch":90`:              "required_switches says for how many",
	} {
		status, _, text := ask(t, fixed(), "POST", "/slurm/v0.0.44/job/submit", `{"script":"#!/bin/sh\n","job":{`+
			members+`,"environment":["A=b"],"current_working_directory":"/tmp"}}`)
		if status != 422 || !strings.Contains(text, says) {
			t.Errorf("%s: %d %s, want %s", members, status, text, says)
		}
	}
}

// TestConfig: all of the books in one answer has what each list of its own has.
func TestConfig(t *testing.T) {
	f := fixed()
	_, _, text := ask(t, f, "GET", "/slurmdb/v0.0.45/config", "")
	var all map[string]any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"accounts", "users", "associations", "qos", "tres", "clusters", "wckeys"} {
		_, _, text := ask(t, f, "GET", "/slurmdb/v0.0.45/"+member, "")
		var one map[string]any
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			t.Fatal(err)
		}
		for name, list := range one { // TRES of the path tres
			if strings.EqualFold(name, member) && !reflect.DeepEqual(list, all[member]) {
				t.Errorf("%s: %v, alone %v", member, all[member], list)
			}
		}
	}
}

// TestSince: lists are told to be unchanged only where the server is sure, of jobs by an empty list.
func TestSince(t *testing.T) {
	f := fixed()
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{"jobs?update_time=100", 200, `"jobs":[{`},
		{"jobs?update_time=200", 200, `"jobs":[],`},
		{"jobs?update_time=200", 200, "No job changes since update_time[200]="},
		{"nodes?update_time=100", 200, `"nodes":[{`},
		{"nodes?update_time=200", 304, ""},
		{"partitions?update_time=200", 304, ""},
		{"reservations?update_time=200", 304, ""},
		{"jobs?update_time=abc", 422, "Parsing of abc for timestamp failed"},
	} {
		path, at, _ := strings.Cut(c.path, "?update_time=")
		status, out := 0, bytes.Buffer{}
		Answer(&api.RESTRequest{Method: "GET", Path: "/slurm/v0.0.44/" + path, Host: "here", Dial: f.Dial(t),
			Query:     map[string][]string{"update_time": {at}},
			Who:       api.Caller{Identity: cluster.Identity{User: "root"}},
			Unchanged: func(since time.Time) bool { return since.Unix() > 150 }},
			func(s int, _ string) io.Writer {
				status = s
				return &out
			})
		if status != c.status || !strings.Contains(out.String(), c.says) || status == 304 && out.Len() > 0 {
			t.Errorf("%s: %d %.300s, want %d with %s", c.path, status, out.String(), c.status, c.says)
		}
	}
}

// TestSharesBasic: without priority/multifactor there are no shares, which is an error of the server's, not of who
// asks.
func TestSharesBasic(t *testing.T) {
	f := slurmtest.New()
	f.Own = f.Mux()
	slurmtest.WithBooks(f.Own, f)
	if status, _, text := ask(t, f, "GET", "/slurm/v0.0.44/shares", ""); status != 500 ||
		!strings.Contains(text, `"error_number":-1`) {
		t.Errorf("%d %.300s", status, text)
	}
}

// TestSubmissionPath: a job whose environment has no PATH gets one that begins with the folder of muster's commands; a
// PATH that was given is kept.
func TestSubmissionPath(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for environ, want := range map[string]string{`"A=b"`: "PATH=" + filepath.Dir(exe) + ":/usr/local/bin:/usr/bin:/bin",
		`"PATH=/bin"`: "PATH=/bin"} {
		f := fixed()
		status, _, text := ask(t, f, "POST", "/slurm/v0.0.44/job/submit", `{"script":"#!/bin/sh\n","job":{`+
			`"environment":[`+environ+`],"current_working_directory":"/tmp"}}`)
		if log := strings.Join(f.Log, "\n"); status != 200 || !strings.Contains(log, want) {
			t.Errorf("%s: %d, no %s in %s\n%s", environ, status, want, log, text)
		}
	}
}

// TestNoFiles: a request names no files of the server's, which is root: neither what is in them nor whether they are
// there is told, and none is waited for.
func TestNoFiles(t *testing.T) {
	dir := t.TempDir()
	secret, pipe := filepath.Join(dir, "secret"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(secret, []byte("root-s-hash\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"required_nodes", "excluded_nodes"} {
		var said []string
		for _, file := range []string{secret, pipe, filepath.Join(dir, "none")} {
			f := fixed()
			done := make(chan string, 1)
			go func() {
				status, _, text := ask(t, f, "POST", "/slurm/v0.0.44/job/submit", `{"script":"#!/bin/sh\n","job":{"`+
					member+`":["`+file+`"],"environment":["A=b"],"current_working_directory":"/tmp"}}`)
				done <- fmt.Sprint(status, text, f.Log)
			}()
			select {
			case text := <-done:
				if strings.Contains(text, "root-s-hash") || strings.HasPrefix(text, "200") {
					t.Errorf("%s of %s: %s", member, file, text)
				}
				said = append(said, strings.ReplaceAll(text, file, "FILE"))
			case <-time.After(10 * time.Second):
				t.Fatalf("%s of %s is waited for", member, file)
			}
		}
		if said[0] != said[2] {
			t.Errorf("%s tells whether there is a file: %s, and else %s", member, said[0], said[2])
		}
	}
}

// TestSubmissionExternal: the submission of slurm-bridge becomes an external job, which takes no script.
func TestSubmissionExternal(t *testing.T) {
	f := fixed()
	status, _, text := ask(t, f, "POST", "/slurm/v0.0.44/job/submit", `{"job":{"name":"p1","flags":["EXTERNAL_JOB"],`+
		`"partition":"train","nodes":"1","required_nodes":["gpu-node-001","gpu-node-002"],`+
		`"admin_comment":"{\"pods\":[\"default/p1\"]}","tres_per_node":"gres/gpu=2","shared":["none"],`+
		`"current_working_directory":"/tmp"}}`)
	log := strings.Join(f.Log, "\n")
	for _, want := range []string{`"kind":3`, `"node_list":["gpu-node-001","gpu-node-002"]`, `"max_nodes":1`,
		`"admin_comment":"{\"pods\":[\"default/p1\"]}"`, `"per_node":[{"name":"gpu","count":2}]`} {
		if status != 200 || !strings.Contains(log, want) {
			t.Errorf("%d %s: no %s in %s", status, text, want, log)
		}
	}
	if strings.Contains(log, `"script":"`) || strings.Contains(text, "step_id\":\"batch") {
		t.Errorf("it has a script: %s %s", log, text)
	}
	_, _, text = ask(t, f, "POST", "/slurm/v0.0.44/job/submit",
		`{"script":"#!/bin/sh\n","job":{"flags":["EXTERNAL_JOB"],"current_working_directory":"/tmp"}}`)
	if !strings.Contains(text, "Invalid configuration for external job") {
		t.Errorf("with a script: %s", text)
	}
}

// TestLongHistory: an answer from history that would take much of a server's memory is refused before that is taken.
func TestLongHistory(t *testing.T) {
	f := fixed()
	pages := 0
	api.Handle(f.Own, api.ListHistory, func(context.Context, api.Caller, api.HistoryQuery) (api.HistoryResponse, error) {
		pages++
		out := api.HistoryResponse{Now: f.Now, Next: &api.HistoryCursor{Server: "s1", Seq: int64(pages)}}
		for range 10_000 {
			out.Records = append(out.Records, api.JobHistory{Job: f.Jobs[0]})
		}
		return out, nil
	})
	status, _, text := ask(t, f, "GET", "/slurmdb/v0.0.45/jobs", "")
	if status == 200 || !strings.Contains(text, "shorter time (start_time and end_time)") || pages > 6 {
		t.Errorf("status %d after %d pages: %.300s", status, pages, text)
	}
}
