package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// burstLua is a script for burst buffers that keeps a folder for each job, and tells in a log what it is called for.
// While there is a file wait-FUNCTION the function does not end; with fail-FUNCTION it fails with what is in there.
const burstLua = `
local dir = "DIR"
local function text(name)
	local f = io.open(dir .. "/" .. name)
	if not f then return nil end
	local s = f:read("*a")
	f:close()
	return s
end
local function step(name, id, command)
	local f = io.open(dir .. "/log", "a")
	f:write(name .. " " .. id .. "\n")
	f:close()
	if command then os.execute(command) end
	while text("wait-" .. name) do os.execute("sleep 0.02") end
	local why = text("fail-" .. name)
	if why then return slurm.ERROR, why end
	return slurm.SUCCESS
end
function slurm_bb_job_process(script, uid, gid, info)
	local f = io.open(script)
	local s = f:read("*a")
	f:close()
	if s:find("#BB_LUA bad") then return slurm.ERROR, "bad is no word" end
	return slurm.SUCCESS
end
function slurm_bb_pools() return slurm.SUCCESS end
function slurm_bb_real_size() return slurm.SUCCESS end
function slurm_bb_setup(id, uid, gid) return step("setup", id, "mkdir -m 777 " .. dir .. "/buffer-" .. id) end
function slurm_bb_data_in(id) return step("data_in", id, "echo in > " .. dir .. "/buffer-" .. id .. "/data") end
function slurm_bb_paths(id, script, paths)
	local f = io.open(paths, "w")
	f:write("BUFFER=" .. dir .. "/buffer-" .. id .. "\n")
	f:close()
	return slurm.SUCCESS
end
function slurm_bb_pre_run(id, script, uid, gid, info) return step("pre_run", id .. " on " .. info.nodes) end
function slurm_bb_post_run(id) return step("post_run", id) end
function slurm_bb_data_out(id)
	return step("data_out", id, "cp " .. dir .. "/buffer-" .. id .. "/data " .. dir .. "/out-" .. id)
end
function slurm_bb_job_teardown(id, script, hurry)
	return step("job_teardown", id .. " " .. hurry, "rm -rf " .. dir .. "/buffer-" .. id)
end
function slurm_bb_get_status(...)
	return slurm.SUCCESS, "asked: " .. table.concat({...}, " ") .. "\n"
end
`

// bursts is a folder with a script for burst buffers and its log, beside slurm.conf.
type bursts struct {
	t   *testing.T
	dir string
}

func newBursts(t *testing.T, conf string) *bursts {
	t.Helper()
	b := &bursts{t, t.TempDir()}
	b.write("slurm.conf", "ClusterName=c\nBurstBufferType=burst_buffer/lua\nPartitionName=main Nodes=ALL Default=YES\n")
	b.write("burst_buffer.conf", conf)
	b.write("burst_buffer.lua", strings.ReplaceAll(burstLua, "DIR", b.dir))
	return b
}

func (b *bursts) conf() string { return filepath.Join(b.dir, "slurm.conf") }

func (b *bursts) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bursts) remove(names ...string) {
	for _, name := range names {
		os.Remove(filepath.Join(b.dir, name))
	}
}

// hold has functions not end.
func (b *bursts) hold(names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.write("wait-"+name, "")
	}
}

// let has them end again.
func (b *bursts) let(names ...string) {
	for _, name := range names {
		b.remove("wait-" + name)
	}
}

// log is what was called for a job, in order.
func (b *bursts) log(id string) string {
	var words []string
	for line := range strings.Lines(textOf(filepath.Join(b.dir, "log"))) {
		if f := strings.Fields(line); f[1] == id {
			words = append(words, f[0])
		}
	}
	return strings.Join(words, " ")
}

// there reports whether a file is there.
func (b *bursts) there(name string) bool {
	_, err := os.Stat(filepath.Join(b.dir, name))
	return err == nil
}

// burstFields are of scontrol show job.
const burstFields = "JobState Reason BurstBufferState"

// stands waits until a job and its buffer stand so.
func (b *bursts) stands(d *dev, id, want string) {
	b.t.Helper()
	d.wait(want, func() bool {
		out, _, _ := d.run("scontrol", "show", "job", id)
		var got []string
		for _, name := range strings.Fields(burstFields) {
			got = append(got, fieldOf(out, name))
		}
		return strings.Join(got, " ") == want
	})
}

// fieldOf is the value of NAME=VALUE.
func fieldOf(text, name string) string {
	for _, w := range strings.Fields(text) {
		if v, ok := strings.CutPrefix(w, name+"="); ok {
			return v
		}
	}
	return ""
}

// TestBurstBuffer: the files of a job come before it starts, it finds them by the variables of the script, and when it
// is over and its node is free they go and the buffer with them. States and reasons are Slurm's.
func TestBurstBuffer(t *testing.T) {
	t.Parallel()
	b := newBursts(t, "")
	b.hold("setup", "data_in", "pre_run", "post_run", "data_out", "job_teardown")
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", b.conf())
	d.write("x.sh", "#!/bin/sh\n#BB_LUA files\n#SBATCH -o /dev/null\n"+
		"echo $(cat $BUFFER/data) and more > $BUFFER/data\nexit 3")
	id := strings.TrimSpace(d.must("sbatch", "--parsable", "x.sh"))
	const out = "burst_buffer/lua:_Stage-out_in_progress"
	b.stands(d, id, "PENDING BurstBufferStageIn staging-in")
	b.let("setup")
	d.wait("data_in", func() bool { return b.there("buffer-" + id + "/data") })
	b.stands(d, id, "PENDING BurstBufferStageIn staging-in")
	columns := d.must("squeue", "-h", "-O", "StateCompact:4,BurstBuffer:16,BurstBufferState:12")
	if got := strings.TrimSpace(columns); got != "PD  #BB_LUA files   staging-in" {
		t.Errorf("squeue: %q", got)
	}
	if got := d.must("scontrol", "show", "burst"); !strings.Contains(got, "Name=lua DefaultPool=(null)") ||
		!strings.Contains(got, "  Allocated Buffers:\n    JobID="+id+" CreateTime=") ||
		!strings.Contains(got, "OtherTimeout=300\n") {
		t.Errorf("scontrol show burst: %q", got)
	}
	b.let("data_in")
	b.stands(d, id, "CONFIGURING None pre-run")
	b.let("pre_run")
	b.stands(d, id, "STAGE_OUT "+out+" post-run")
	if got := d.must("squeue", "-h", "-o", "%i %t %r"); got != id+" SO burst_buffer/lua: Stage-out in progress" {
		t.Errorf("squeue: %q", got)
	}
	if got := d.must("sinfo", "-h", "-o", "%T"); got != "idle" {
		t.Errorf("the node is %q while the job stages out", got)
	}
	if got := d.must("sacct", "-nXj", id, "-o", "state"); strings.TrimSpace(got) != "FAILED" {
		t.Errorf("sacct: %q", got)
	}
	for _, state := range []string{"SO", "STAGE_OUT"} {
		if got := d.must("squeue", "-h", "-t", state, "-o", "%i"); got != id {
			t.Errorf("squeue -t %s: %q", state, got)
		}
	}
	b.let("post_run")
	b.stands(d, id, "STAGE_OUT "+out+" staging-out")
	b.let("data_out")
	b.stands(d, id, "FAILED NonZeroExitCode teardown")
	b.let("job_teardown")
	b.stands(d, id, "FAILED NonZeroExitCode complete")
	if b.there("buffer-" + id) {
		t.Error("the buffer is there after its teardown")
	}
	if got := textOf(filepath.Join(b.dir, "out-"+id)); got != "in and more\n" {
		t.Errorf("staged out was %q", got)
	}
	if got := b.log(id); got != "setup data_in pre_run post_run data_out job_teardown" {
		t.Errorf("called was %q", got)
	}
	if got := d.must("scontrol", "show", "bbstat", "a", "b"); got != "asked: a b" {
		t.Errorf("scontrol show bbstat: %q", got)
	}
	if got := d.must("srun", "--bb=#BB_LUA x", "sh", "-c", "cat $BUFFER/data"); got != "in" {
		t.Errorf("srun: %q", got)
	}
	if got := d.must("salloc", "-Q", "--bb=#BB_LUA x", "sh", "-c", "cat $BUFFER/data"); got != "in" {
		t.Errorf("salloc: %q", got)
	}
}

// TestBurstBufferFails: what is refused, what follows when a function fails, takes too long or has become needless.
func TestBurstBufferFails(t *testing.T) {
	t.Parallel()
	b := newBursts(t, "StageInTimeout=1\n")
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", b.conf())
	const failed = "sbatch: error: Batch job submission failed: Burst Buffer request invalid\n"
	for _, row := range []struct{ bb, want string }{
		{"#BB_LUA bad", "sbatch: error: burst_buffer/lua: bad is no word\n" + failed},
		{"nothing", "sbatch: error: --bb=\"nothing\" asks for no burst buffer: " +
			"it needs a line that begins with #BB_LUA\n" + failed},
		{"#BB_LUA pool=p capacity=1", "sbatch: error: pool=p: pools of burst buffers are not counted here; " +
			"have burst_buffer.lua read another word, or use licenses (-L)\n" + failed},
	} {
		_, errs, code := d.run("sbatch", "--bb="+row.bb, "--wrap", "true")
		if code != 1 || slurmWords(errs) != row.want {
			t.Errorf("--bb=%s: %d %q, want %q", row.bb, code, errs, row.want)
		}
	}
	submit := func() string {
		t.Helper()
		return d.must("sbatch", "--parsable", "--bb=#BB_LUA x", "-o", "/dev/null", "--wrap", "sleep 1000")
	}
	fails := func(function, why string, do func()) {
		t.Helper()
		b.write("fail-"+function, why)
		do()
		b.remove("fail-" + function)
	}
	fails("setup", "no space", func() {
		id := submit()
		b.stands(d, id, "PENDING burst_buffer/lua:_slurm_bb_setup:_no_space staging-in")
		d.must("scancel", id)
		b.stands(d, id, "CANCELLED burst_buffer/lua:_slurm_bb_setup:_no_space complete")
	})
	b.hold("data_in")
	id := submit()
	b.stands(d, id, "PENDING burst_buffer/lua:_slurm_bb_data_in:_it_took_longer_than_1s_(StageInTimeout_of_"+
		"burst_buffer.conf) staging-in")
	b.let("data_in")
	d.must("scontrol", "release", id)
	b.stands(d, id, "RUNNING None running")
	if got := b.log(id); got != "setup data_in job_teardown setup data_in pre_run" {
		t.Errorf("called was %q", got)
	}
	fails("data_out", "lost", func() {
		d.must("scancel", id)
		b.stands(d, id, "STAGE_OUT burst_buffer/lua:_slurm_bb_data_out:_lost staging-out")
		d.must("scancel", id)
		d.must("scancel", "--hurry", id)
		b.stands(d, id, "CANCELLED burst_buffer/lua:_slurm_bb_data_out:_lost complete")
	})
	b.hold("pre_run")
	id = submit()
	b.stands(d, id, "CONFIGURING None pre-run")
	d.must("scancel", id)
	b.stands(d, id, "CANCELLED None complete")
	b.let("pre_run")
	fails("pre_run", "not ready", func() {
		id := submit()
		b.stands(d, id, "PENDING Burst_buffer_pre_run_error pending")
		d.must("scancel", id)
	})
	id = submit()
	b.stands(d, id, "RUNNING None running")
	d.must("scancel", "-H", id)
	b.stands(d, id, "CANCELLED None complete")
	if got := b.log(id); got != "setup data_in pre_run job_teardown" {
		t.Errorf("in a hurry called was %q", got)
	}
}

// TestBurstBufferArray: some tasks of an array stage in at a time, and all of them run.
func TestBurstBufferArray(t *testing.T) {
	t.Parallel()
	b := newBursts(t, "")
	b.write("slurm.conf", textOf(b.conf())+"SchedulerParameters=bb_array_stage_cnt=2\n")
	b.hold("setup")
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", b.conf())
	id := d.must("sbatch", "--parsable", "-a", "1-5", "--bb=#BB_LUA x", "-o", "/dev/null", "--wrap", "true")
	begun := func() int { return strings.Count(textOf(filepath.Join(b.dir, "log")), "setup ") }
	d.wait("two tasks", func() bool { return begun() == 2 })
	d.wait("the others", func() bool {
		return strings.Count(d.must("squeue", "-hr", "-j", id, "-t", "PD", "-o", "%r"), "BurstBufferStageIn") == 5
	})
	if n := begun(); n != 2 {
		t.Errorf("%d tasks stage in", n)
	}
	b.let("setup")
	d.wait("all tasks", func() bool {
		return strings.Count(d.must("sacct", "-nXj", id, "-s", "CD", "-o", "state"), "COMPLETED") == 5
	})
	d.wait("all teardowns", func() bool {
		return strings.Count(textOf(filepath.Join(b.dir, "log")), "job_teardown ") == 5
	})
}

// TestBurstBufferLead: what a leader that dies has begun to stage in ends with it, and the next one begins again.
func TestBurstBufferLead(t *testing.T) {
	t.Parallel()
	b := newBursts(t, "")
	g := fullGroup(t, 1)
	lead := g.leader("s1")
	g.must(lead, "muster", "config", "apply", b.conf())
	b.hold("data_in")
	id := strings.TrimSpace(g.must(lead, "sbatch", "--parsable", "--bb=#BB_LUA x", "-o", "/dev/null", "--wrap", "true"))
	g.wait("data_in", func() bool { return b.log(id) == "setup data_in" })
	other := g.others(lead)[0]
	g.at[lead].kill()
	const again = "setup data_in job_teardown setup data_in"
	g.wait("the stage at the next leader", func() bool {
		log := b.log(id)
		// Where the machine stands still the lead moves once more, and then the stage begins once more.
		return strings.HasPrefix(log, again) && strings.HasSuffix(log, " job_teardown setup data_in")
	})
	if got := g.must(other, "squeue", "-h", "-j", id, "-o", "%t %r"); got != "PD BurstBufferStageIn" {
		t.Errorf("squeue: %q", got)
	}
	b.let("data_in")
	g.wait("its end", func() bool {
		out, _, _ := g.run(other, "scontrol", "show", "job", id)
		return fieldOf(out, "JobState") == "COMPLETED" && fieldOf(out, "BurstBufferState") == "complete"
	})
	if got := textOf(filepath.Join(b.dir, "out-"+id)); got != "in\n" {
		t.Errorf("staged out was %q", got)
	}
}
