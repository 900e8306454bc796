package lua

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// burstScript has all functions, of which those of more are others.
func burstScript(more string) string {
	var b strings.Builder
	for _, name := range burstFunctions {
		b.WriteString("function slurm_bb_" + name + "(...) return slurm.SUCCESS end\n")
	}
	return b.String() + more
}

// TestBurstCall: what a function returns, and what it is told.
func TestBurstCall(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "job")
	job := &cluster.Job{ID: 7, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "n", UID: 1000, GID: 100}}
	for _, row := range []struct {
		name, more string
		call       cluster.BurstCall
		want       api.BurstReply
	}{
		{"success", "", "setup", api.BurstReply{}},
		{"says why", "function slurm_bb_setup() return slurm.ERROR, 'no space' end", "setup",
			api.BurstReply{Failed: "no space", Said: "no space"}},
		{"says nothing", "function slurm_bb_setup() return slurm.ERROR end", "setup",
			api.BurstReply{Failed: "the function returned -1, not slurm.SUCCESS"}},
		{"returns nothing", "function slurm_bb_setup() end", "setup",
			api.BurstReply{Failed: "the function returned nil, not slurm.SUCCESS"}},
		{"errs", "function slurm_bb_setup()\nerror('boo')\nend", "setup",
			api.BurstReply{Failed: "burst_buffer.lua:13: boo"}},
		{"setup", "function slurm_bb_setup(a,b,c,d,e,f,g) return -1, table.concat({a,b,c,d,e,f,g.name}, ' ') end",
			"setup", api.BurstReply{Failed: "7 1000 100 (null) 0 " + file + " n",
				Said: "7 1000 100 (null) 0 " + file + " n"}},
		{"teardown", "function slurm_bb_job_teardown(a,b,c,d,e) return 0, table.concat({a,b,c,d,e}, ' ') end",
			"job_teardown", api.BurstReply{Said: "7 " + file + " true 1000 100"}},
		{"process", "function slurm_bb_job_process(a,b,c,d) return 0, table.concat({a,b,c,d.name}, ' ') end",
			api.BurstProcess, api.BurstReply{Said: file + " 1000 100 n"}},
		{"status", "function slurm_bb_get_status(...) return 0, table.concat({...}, ' ') end", api.BurstStatus,
			api.BurstReply{Said: "a b"}},
		{"programs", "function slurm_bb_data_out() os.execute('echo x > " + dir + "/made') return 0 end", "data_out",
			api.BurstReply{}},
		{"a test", "n = 0 function slurm_bb_test_data_in()\n" +
			"n = n + 1 if n < 3 then return 0, 'BUSY' end return 0, n end",
			"data_in", api.BurstReply{Said: "3"}},
		{"a test that fails", "function slurm_bb_test_data_out() return -1, 'lost' end", "data_out",
			api.BurstReply{Failed: "lost", Said: "lost"}},
		{"variables", "function slurm_bb_paths(a,b,c) local f = io.open(c, 'w')\n" +
			"f:write('A=b c\\n\\nno\\nD=\\n') f:close() return 0 end", "pre_run", api.BurstReply{Env: []string{"A=b c", "D="}}},
		{"no variables", "function slurm_bb_paths() return -1, 'none' end", "pre_run",
			api.BurstReply{Failed: "none", Said: "none"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			ask := &api.BurstAsk{Script: burstScript(row.more), Call: row.call, Job: job, JobScript: file,
				Paths: filepath.Join(t.TempDir(), "paths"), Hurry: true, Poll: time.Millisecond,
				Args: []string{"a", "b"}}
			got := burstCall(ask, func(string, string) {})
			if got.Failed != row.want.Failed || got.Said != row.want.Said ||
				strings.Join(got.Env, "|") != strings.Join(row.want.Env, "|") {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
}

// TestBurstCheck: a script is refused that cannot be read or lacks a function; it does not run then.
func TestBurstCheck(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"as it should be", burstScript("error('it ran')"), ""},
		{"no Lua", burstScript("if"), "burst_buffer.lua"},
		{"no get_status", strings.ReplaceAll(burstScript(""), "get_status", "x"),
			"burst_buffer.lua: missing required function slurm_bb_get_status"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := Check(BurstFile, row.text)
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}
