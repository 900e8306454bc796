package lua

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// world is a cluster whose submissions a script looks at.
type world struct {
	t      *testing.T
	mu     sync.Mutex // of snapshots
	state  *cluster.State
	filter *Filter
	logged *bytes.Buffer
	index  uint64
}

func newWorld(t *testing.T, script string) *world {
	logged := &bytes.Buffer{}
	w := &world{t: t, state: cluster.NewState(), logged: logged,
		filter: &Filter{Log: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}}
	cfg := cluster.DefaultConfig()
	part := func(name string, tier int, most time.Duration) cluster.Partition {
		return cluster.Partition{Name: name, All: true, State: cluster.PartitionUp, PriorityTier: tier,
			PartitionLimits: cluster.PartitionLimits{MaxTime: most}}
	}
	cfg.Partitions = []cluster.Partition{
		part("cpu", 1, 0), part("small", 1, 2*time.Hour), part("large", 3, 24*time.Hour),
	}
	cfg.Partitions[0].Default = true
	cfg.SubmitPlugins, cfg.Scripts = []string{"lua"}, map[string]string{SubmitFile: script}
	w.apply(&cluster.RaiseLevel{Level: cluster.Newest})
	w.apply(&cluster.Configure{Config: &cfg})
	return w
}

func (w *world) apply(cmd cluster.Command) any {
	w.t.Helper()
	w.index++
	got := w.state.Apply(cluster.Entry{Index: w.index, At: time.Now(), By: cluster.Identity{System: true}, Cmd: cmd})
	if got.Err != nil {
		w.t.Fatalf("%T: %v", cmd, got.Err)
	}
	return got.Result
}

func (w *world) scene(by uint32) api.FilterScene {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := api.FilterScene{Snap: w.state.Snapshot(), By: by}
	all := at.Snap.Config().Partitions
	for i := range all {
		at.Open = append(at.Open, &all[i])
	}
	return at
}

// batch is a submission of a script.
func batch(change func(s *cluster.JobSpec)) *api.SubmitRequest {
	q := &api.SubmitRequest{Script: cluster.BlobText("#!/bin/sh\nhostname\n"),
		Env: cluster.BlobText("HOME=/home/alice\x00A=1\x00"),
		Spec: cluster.JobSpec{Layout: &cluster.Layout{}, Name: "x", UID: 7001, GID: 7001, User: "alice",
			Command: "/tmp/x.sh", Args: []string{"a"}, SubmitHost: "login1", WorkDir: "/tmp"}}
	change(&q.Spec)
	return q
}

func (w *world) submit(q *api.SubmitRequest) ([]string, error) {
	return w.filter.Submit(context.Background(), w.scene(q.Spec.UID), q, -1)
}

func site(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", "sites", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSites runs scripts in the manner of those that sites publish.
func TestSites(t *testing.T) {
	gpus := func(n int64) []cluster.GRES { return []cluster.GRES{{Name: "gpu", Type: "h100", Count: n}} }
	interactive := func(q *api.SubmitRequest) { q.Script, q.Spec.Kind = nil, cluster.Allocation }
	type ask = func(s *cluster.JobSpec)
	nothing := func(*cluster.JobSpec) {}
	spec := func(of func(s *cluster.JobSpec) any) func(q *api.SubmitRequest) any {
		return func(q *api.SubmitRequest) any { return of(&q.Spec) }
	}
	matlab := func(q *api.SubmitRequest) { q.Script = cluster.BlobText("#!/bin/sh\nmatlab -batch x\n") }
	licenses := spec(func(s *cluster.JobSpec) any { return s.Licenses })
	features := spec(func(s *cluster.JobSpec) any { return s.Constraint })
	for _, c := range []struct {
		script  string
		ask     ask
		also    func(q *api.SubmitRequest)
		refused string
		said    string
		want    func(q *api.SubmitRequest) any
		is      any
	}{
		{script: "partition_by_gpus.lua", ask: nothing, want: partitions, is: "cpu"},
		{script: "partition_by_gpus.lua", ask: func(s *cluster.JobSpec) { s.PerNode = gpus(2) },
			want: partitions, is: "small"},
		{script: "partition_by_gpus.lua", ask: func(s *cluster.JobSpec) { s.PerNode, s.MinNodes = gpus(8), 4 },
			want: partitions, is: "large"},
		{script: "partition_by_gpus.lua", ask: func(s *cluster.JobSpec) { s.Partitions = []string{"cpu", "small"} },
			want: partitions, is: "cpu,small"},
		{script: "time_limit.lua", ask: func(s *cluster.JobSpec) { s.Limit = time.Hour }, want: partitions, is: ""},
		{script: "time_limit.lua", ask: nothing,
			refused: "Requested time limit is invalid (missing or exceeds some limit)",
			said:    "You have to give a time limit with -t. See https://docs.example.org/limits"},
		{script: "qos_by_account.lua", ask: func(s *cluster.JobSpec) { s.Account = "team-a" },
			want: spec(func(s *cluster.JobSpec) any { return s.QOS }), is: "high"},
		{script: "licenses.lua", ask: nothing, want: licenses, is: ""},
		{script: "licenses.lua", ask: func(s *cluster.JobSpec) { s.Licenses = "ansys:2" }, also: matlab,
			said: "note: a matlab licence was added to your job", want: licenses, is: "ansys:2,matlab:1"},
		{
			script: "features.lua", ask: func(s *cluster.JobSpec) { s.Constraint = "v100&ib" },
			want: features, is: "volta&ib",
		},
		{script: "features.lua", ask: func(s *cluster.JobSpec) { s.PerNode = gpus(1) }, want: features, is: "gpu"},
		{script: "memory_per_core.lua",
			ask:  func(s *cluster.JobSpec) { s.Mem = cluster.Mem{Per: cluster.MemPerCPU, MB: 9000} },
			want: spec(func(s *cluster.JobSpec) any { return []int{int(s.Mem.MB), s.CPUsPerTask} }),
			is:   []int{4000, 3}},
		{script: "memory_per_core.lua", ask: func(s *cluster.JobSpec) { s.Mem = cluster.Mem{Per: cluster.MemPerNode} },
			refused: "Unspecified error", said: "--mem=0 needs --exclusive"},
		{script: "partitions_allowed.lua", ask: func(s *cluster.JobSpec) { s.Limit = 3 * time.Hour },
			want: partitions, is: "large,cpu"},
		{script: "interactive.lua", ask: nothing, also: interactive,
			want: spec(func(s *cluster.JobSpec) any { return []any{s.Limit, *s.Priority, s.MaxNodes, s.Comment} }),
			is:   []any{4 * time.Hour, uint32(90000), 1, "interactive"}},
		{script: "interactive.lua", ask: nothing,
			want: func(q *api.SubmitRequest) any {
				return []any{string(q.Env), q.Spec.AdminComment, q.Spec.Site, q.Spec.Nice}
			},
			is: []any{"HOME=/home/alice\x00A=1\x00SITE_BATCH=1\x00", "by alice from login1", 5, 10}},
		{script: "maintenance.lua", ask: func(s *cluster.JobSpec) { s.Partitions = []string{"large"} },
			want: partitions, is: "large"},
	} {
		t.Run(c.script, func(t *testing.T) {
			w := newWorld(t, site(t, c.script))
			q := batch(c.ask)
			if c.also != nil {
				c.also(q)
			}
			said, err := w.submit(q)
			if got := strings.Join(said, "|"); got != c.said {
				t.Errorf("it said %q, want %q", got, c.said)
			}
			if got := words(err); got != c.refused {
				t.Fatalf("refused with %q, want %q\n%s", got, c.refused, w.logged)
			}
			if c.want == nil {
				return
			}
			if got := c.want(q); !reflect.DeepEqual(got, c.is) {
				t.Errorf("got %#v, want %#v\n%s", got, c.is, w.logged)
			}
		})
	}
}

func partitions(q *api.SubmitRequest) any { return strings.Join(q.Spec.Partitions, ",") }

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestFields: the table names fields that there are, and what is set is what is read.
func TestFields(t *testing.T) {
	spec := reflect.TypeFor[cluster.JobSpec]()
	for _, f := range fields() {
		if _, ok := spec.FieldByName(f.of); f.of != "" && !ok {
			t.Errorf("%s: a job has no field %s", f.names, f.of)
		}
	}
	const script = `
function slurm_job_submit(d, parts, uid)
	local numbers = {time_limit=7, time_min=3, cpus_per_task=2, num_tasks=4, min_nodes=1, max_nodes=2,
		ntasks_per_node=2, min_mem_per_node=1234, nice=slurm.NICE_OFFSET+7, shared=1, requeue=1, contiguous=1,
		pn_min_cpus=3, pn_min_tmp_disk=9, mail_type=slurm.MAIL_JOB_END+slurm.MAIL_JOB_FAIL, req_switch=1,
		wait4switch=60, begin_time=1900000000, threads_per_core=1, site_factor=5, priority=77,
		bitflags=slurm.SPREAD_JOB}
	local texts = {partition="a,b", account="x", qos="high", comment="c d", features="f&g",
		tres_per_node="gres/gpu:h100:2", tres_per_job="gres/gpu:4", tres_per_task="gres/gpu:1",
		dependency="afterok:1,afterok:7,singleton", exc_nodes="n[1-3]", licenses="l:2", name="n", work_dir="/w",
		std_out="/o", array_inx="1-4%2", reservation="r", wckey="k", mail_user="a@b", cpus_per_tres="gres/gpu:3",
		admin_comment="ad", burst_buffer="bb", prefer="p", network="nw"}
	for k, v in pairs(numbers) do
		d[k] = v
		if d[k] ~= v then slurm.user_msg(k .. " is " .. tostring(d[k])) end
	end
	for k, v in pairs(texts) do
		d[k] = v
		if d[k] ~= v then slurm.user_msg(k .. " is " .. tostring(d[k])) end
	end
	local read = d.nosuch == nil and d.argv[0] == "/tmp/x.sh" and d.argv[1] == "a" and d.environment.HOME == "/home/alice"
	if not read then slurm.user_msg("read") end
	d.nosuch = 3
	return slurm.SUCCESS
end
function slurm_job_modify() return 0 end`
	w := newWorld(t, script)
	q := batch(func(*cluster.JobSpec) {})
	said, err := w.submit(q)
	if err != nil || len(said) > 0 {
		t.Errorf("%q %v\n%s", said, err, w.logged)
	}
	s := q.Spec
	got := []any{s.Limit, s.Mem.MB, s.PerNode[0].Count, s.Array.Limit, len(s.Exclude)}
	if want := []any{7 * time.Minute, cluster.MemMB(1234), int64(2), 2, 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestErring: what errs, hangs or grows refuses the job with a sentence, and the next one is looked at as ever.
func TestErring(t *testing.T) {
	for body, want := range map[string]string{
		`local x = nil; x.y = 1`:                    "job_submit.lua:2: ",
		`d.time_limit = "abc"`:                      "(number expected, got string)",
		`d.name = nil`:                              "(string expected, got nil)",
		`d.user_id = 0`:                             "user_id of a job cannot be set",
		`d.dependency = "afterok:x"`:                `job_desc.dependency: "afterok:x" cannot be read`,
		`while true do end`:                         "longer than 1s",
		`local s = string.rep("x", 1e9)`:            "resulting string too large",
		`io.open("/etc/passwd")`:                    "io.open cannot be called here",
		`os.execute("true")`:                        "os.execute cannot be called here",
		`require("posix")`:                          "require cannot be called here",
		`local function f() return f() + 1 end f()`: "stack overflow",
		`error("plain words")`:                      "plain words",
		`return slurm.ESLURM_INVALID_QOS`:           "",
	} {
		t.Run(body, func(t *testing.T) {
			w := newWorld(t, "function slurm_job_submit(d, parts, uid)\n if d.name == 'bad' then "+body+
				" end return 0 end\nfunction slurm_job_modify() return 0 end")
			said, err := w.submit(batch(func(s *cluster.JobSpec) { s.Name = "bad" }))
			if err == nil || !strings.Contains(strings.Join(said, "\n"), want) {
				t.Errorf("%q %v", said, err)
			}
			if _, err := w.submit(batch(func(*cluster.JobSpec) {})); err != nil {
				t.Errorf("the next: %v", err)
			}
		})
	}
	for script, want := range map[string]string{
		"function slurm_job_submit(":      "syntax error",
		"slurm.log_info('x')":             "job_submit.lua: missing required function slurm_job_submit",
		"function slurm_job_submit() end": "missing required function slurm_job_modify",
		"while true do end":               "longer than 1s",
	} {
		if err := Check(SubmitFile, script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", script, err)
		}
	}
}

// TestMemory: a script that takes all memory is ended, however long that takes here.
func TestMemory(t *testing.T) {
	const script = `function slurm_job_submit() local t = {} for i = 1, 1e9 do t[i] = string.rep("x", 1e6) end end`
	m, err := newMachine(SubmitFile, script, func(string, string) {})
	if err != nil {
		t.Fatal(err)
	}
	m.longest = time.Minute
	_, err = m.call(t.Context(), "slurm_job_submit")
	if !errors.Is(err, errMemory) || err.Error() != "job_submit.lua: it used more than 256 MB of memory" {
		t.Errorf("it ended with %v", err)
	}
}

// TestUpdate: the script sees a change and the job, and what it sets is asked for by the site.
func TestUpdate(t *testing.T) {
	w := newWorld(t, site(t, "modify.lua"))
	limit, comment := 3*24*time.Hour, "mine"
	j := &cluster.Job{ID: 7, Limit: time.Hour,
		Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, UID: 7001, Limit: time.Hour, Comment: "staff"}}
	said, _, err := w.filter.Update(context.Background(), w.scene(7001), j, &cluster.Patch{Limit: &limit})
	if err == nil || strings.Join(said, "") != "job 7: its limit grows by more than a day" {
		t.Errorf("%q %v", said, err)
	}
	p := &cluster.Patch{Comment: &comment}
	_, site, err := w.filter.Update(context.Background(), w.scene(7001), j, p)
	if err != nil || site == nil || *site.Comment != "mine (was: staff)" || p.Comment != nil {
		t.Errorf("%+v %+v %v", site, p, err)
	}
	if _, _, err = w.filter.Update(context.Background(), w.scene(0), j, &cluster.Patch{Limit: &limit}); err != nil {
		t.Errorf("root: %v", err)
	}
}

// TestUpdateRights: what only operators may set a script sets with the rights of who asks, and what cannot be changed
// any more is told.
func TestUpdateRights(t *testing.T) {
	w := newWorld(t, `function slurm_job_submit() return 0 end
function slurm_job_modify(d, rec, parts, uid)
	if d.comment == "script" then d.script = "#!/bin/sh" return 0 end
	if d.comment == "array" then d.array_inx = "1-2" return 0 end
	d.priority = 7; d.admin_comment = "x"; d.time_limit = 9
	return 0
end`)
	j := &cluster.Job{ID: 7, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, UID: 7001}}
	p := &cluster.Patch{}
	_, site, err := w.filter.Update(context.Background(), w.scene(7001), j, p)
	if err != nil || *p.Priority != 7 || *p.AdminComment != "x" || p.Limit != nil {
		t.Errorf("by the caller: %+v %v", p, err)
	}
	if site.Priority != nil || site.AdminComment != nil || *site.Limit != 9*time.Minute {
		t.Errorf("by the site: %+v", site)
	}
	for _, comment := range []string{"script", "array"} {
		asks := &cluster.Patch{Comment: &comment}
		if _, _, err := w.filter.Update(context.Background(), w.scene(7001), j, asks); err == nil {
			t.Errorf("%s can be changed", comment)
		}
	}
}

func BenchmarkSubmit(b *testing.B) {
	text, err := os.ReadFile("testdata/sites/partition_by_gpus.lua")
	if err != nil {
		b.Fatal(err)
	}
	w := newWorld(&testing.T{}, string(text))
	for b.Loop() {
		if _, err := w.submit(batch(func(*cluster.JobSpec) {})); err != nil {
			b.Fatal(err)
		}
	}
}
