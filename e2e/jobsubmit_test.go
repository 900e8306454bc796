package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJobSubmit: the site's job_submit.lua has its say in what is submitted and changed. Words and codes are Slurm
// 26.05's.
func TestJobSubmit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const script = `
function slurm_job_submit(d, parts, uid)
	if d.name == "msg" then slurm.log_user("hello %s %d", "you", 3); slurm.user_msg("second\nthird") end
	if d.name == "err" then slurm.user_msg("not allowed"); return slurm.ERROR end
	if d.name == "code" then return slurm.ESLURM_INVALID_TIME_LIMIT end
	if d.name == "boom" then local x = nil; x.y = 1 end
	if d.name == "badtype" then d.time_limit = "abc" end
	if d.name == "set" then
		d.time_limit = 7; d.partition = "debug"; d.comment = "by lua"; d.admin_comment = "adm"; d.min_mem_per_node = 1234
		d.priority = 4242; d.environment.FOO = "bar"; d.script = d.script .. "\necho changed $FOO\n"
	end
	if d.name == "part" then d.partition = "nosuch" end
	return slurm.SUCCESS
end
function slurm_job_modify(d, rec, parts, uid)
	if d.comment == "no" then slurm.log_user("modify refused"); return slurm.ERROR end
	if d.comment == "chg" then d.time_limit = 9; d.comment = "changed" end
	return slurm.SUCCESS
end
return slurm.SUCCESS
`
	write("job_submit.lua", script)
	write("slurm.conf", "ClusterName=c\nJobSubmitPlugins=lua\n"+
		"PartitionName=main Nodes=ALL Default=YES\nPartitionName=debug Nodes=ALL\n")
	conf := filepath.Join(dir, "slurm.conf")
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", conf)
	d.write("x.sh", "#!/bin/sh\necho ran")
	const failed = "sbatch: error: Batch job submission failed: "
	for _, c := range []struct {
		name, out, errs string
		code            int
	}{
		{"plain", "Submitted batch job 1\n", "", 0},
		{"msg", "Submitted batch job 2\n", "sbatch: hello you 3\nsbatch: second\nsbatch: third\n", 0},
		{"err", "", "sbatch: error: not allowed\n" + failed + "Unspecified error\n", 1},
		{"code", "", failed + "Requested time limit is invalid (missing or exceeds some limit)\n", 1},
		{"boom", "", "sbatch: error: job_submit.lua:6: attempt to index a non-table object(nil) with key 'y'\n" +
			failed + "Lua function execution failed due to runtime error\n", 1},
		{"badtype", "",
			"sbatch: error: job_submit.lua:7: bad argument #3 to 'newindex' (number expected, got string)\n" +
				failed + "Lua function execution failed due to runtime error\n", 1},
		{"part", "", failed + "Invalid partition name specified\n", 1},
		{"set", "Submitted batch job 3\n", "", 0},
	} {
		hold := "--hold"
		if c.name == "set" {
			hold = "--wait"
		}
		out, errs, code := d.run("sbatch", hold, "-J", c.name, "-o", d.dir+"/out", d.dir+"/x.sh")
		if out != c.out || slurmWords(errs) != c.errs || code != c.code {
			t.Errorf("%s: %q %q %d, want %q %q %d", c.name, out, errs, code, c.out, c.errs, c.code)
		}
	}
	shown := d.must("scontrol", "show", "job", "3")
	for _, want := range []string{"TimeLimit=00:07:00", "Partition=debug", "Comment=by lua", "AdminComment=adm",
		"MinMemoryNode=1234M", "Priority=4242"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %s in %s", want, shown)
		}
	}
	if out, err := os.ReadFile(d.dir + "/out"); err != nil || string(out) != "ran\nchanged bar\n" {
		t.Errorf("the script: %q %v", out, err)
	}
	if out, errs, code := d.run("scontrol", "update", "job", "1", "comment=no"); code != 1 ||
		out+slurmWords(errs) != "scontrol: error: modify refused\nUnspecified error for job 1\n" {
		t.Errorf("a change: %q %q %d", out, errs, code)
	}
	d.must("scontrol", "update", "job", "1", "comment=chg")
	for _, want := range []string{"TimeLimit=00:09:00", "Comment=changed"} {
		if shown := d.must("scontrol", "show", "job", "1"); !strings.Contains(shown, want) {
			t.Errorf("changed: no %s in %s", want, shown)
		}
	}
	write("job_submit.lua", "function slurm_job_submit(")
	const broken = "job_submit.lua at EOF: syntax error"
	if out, errs, code := d.run("muster", "config", "check", conf); code == 0 || !strings.Contains(out+errs, broken) {
		t.Errorf("check: %s %s %d", out, errs, code)
	}
	if _, errs, code := d.run("scontrol", "reconfigure"); code == 0 || !strings.Contains(errs, "syntax error") {
		t.Errorf("reconfigure: %s %d", errs, code)
	}
	if out, _, _ := d.run("sbatch", "-J", "msg", "--hold", "--wrap", "true"); out != "Submitted batch job 4\n" {
		t.Errorf("the old script stays: %q", out)
	}
	write("job_submit.lua", strings.Replace(script, "hello", "bye", 1))
	d.must("scontrol", "reconfigure")
	if _, errs, _ := d.run("sbatch", "-J", "msg", "--hold", "--wrap", "true"); !strings.Contains(errs, "bye you 3") {
		t.Errorf("the new script: %q", errs)
	}
}

// TestSubmitPlugins: the plugins that are built in.
func TestSubmitPlugins(t *testing.T) {
	t.Parallel()
	conf := writeFile(t, "slurm.conf", "ClusterName=c\nJobSubmitPlugins=require_timelimit,job_submit/all_partitions\n"+
		"PartitionName=main Nodes=ALL Default=YES\nPartitionName=debug Nodes=ALL\n")
	d := startDev(t, "--hollow", "1x4c8g", "--conf", conf)
	const want = "sbatch: error: Batch job submission failed: Time limit specification required, but not provided\n"
	if _, errs, code := d.run("sbatch", "--hold", "--wrap", "true"); code != 1 || slurmWords(errs) != want {
		t.Errorf("no limit: %q %d", errs, code)
	}
	d.must("sbatch", "--hold", "-t", "5", "--wrap", "true")
	if got := d.must("squeue", "-h", "-o", "%P"); got != "main,debug" {
		t.Errorf("partitions: %q", got)
	}
}

// TestCLIFilter: the site's cli_filter.lua sees the options of commands, and sets them.
func TestCLIFilter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cli_filter.lua", `
function slurm_cli_setup_defaults(options, early_pass)
	options["comment"] = "dflt"
	options["time"] = "9"
	return slurm.SUCCESS
end
function slurm_cli_pre_submit(options, offset)
	local n = options["job-name"]
	if n == "show" then
		slurm.log_info("%s|%s|%s|%s|%s|%s|%s", options["type"], options["time"], options["gres"], tostring(options["mem"]),
			options["ntasks"], tostring(options["exclusive"]), tostring(options["nosuch"]))
		slurm.log_info("argv %s %s", options.argv[1]:match("[^/]*$"), options.argv[2])
		slurm.log_info("%s", tostring(slurm.from_json(slurm.json_cli_options(options)).hold))
	end
	if n == "no" then slurm.log_error("cli refuses"); return slurm.ERROR end
	if n == "boom" then local x = nil; x.y = 1 end
	if n == "set" then options["comment"] = "cli"; options["mem"] = "3G"; options["partition"] = "debug"; options["time"] = "5" end
	if n == "bad" then options["time"] = "abc" end
	slurm.cli_store(1, "kept")
	return slurm.SUCCESS
end
function slurm_cli_post_submit(offset, job_id, step_id)
	slurm.log_info("post %d %s", job_id, slurm.cli_retrieve(1))
	return slurm.SUCCESS
end
return slurm.SUCCESS
`)
	write("slurm.conf", "ClusterName=c\nCliFilterPlugins=cli_filter/lua\n"+
		"PartitionName=main Nodes=ALL Default=YES\nPartitionName=debug Nodes=ALL\n")
	d := startDev(t, "--hollow", "1x4c8g2gpu:h100", "--hollow-exec", "--conf", filepath.Join(dir, "slurm.conf"))
	d.write("x.sh", "#!/bin/sh\necho $0 $1")
	hold := []string{"sbatch", "-H", "-o", d.dir + "/out"}
	for _, c := range []struct {
		line      []string
		out, errs string
		code      int
	}{
		{append(hold, "-J", "show", "-t", "90", "--gres=gpu:1", "-n2", "--exclusive", d.dir+"/x.sh", "a1"),
			"Submitted batch job 1\n",
			"sbatch: lua: sbatch|01:30:00|gres/gpu:1|nil|2|exclusive|nil\nsbatch: lua: argv x.sh a1\nsbatch: lua: set\nsbatch: lua: post 1 kept\n",
			0},
		{
			append(hold, "-J", "no", d.dir+"/x.sh"), "",
			"sbatch: error: lua: cli refuses\nsbatch: error: cli_filter plugin terminated with error\n", 1,
		},
		{append(hold, "-J", "boom", d.dir+"/x.sh"), "Submitted batch job 2\n",
			"sbatch: error: cli_filter/lua: cli_filter.lua:16: attempt to index a non-table object(nil) with key 'y'\n",
			0},
		{
			append(hold, "-J", "set", "--comment=mine", d.dir+"/x.sh"), "Submitted batch job 3\n",
			"sbatch: lua: post 3 kept\n", 0,
		},
		{
			append(hold, "-J", "bad", d.dir+"/x.sh"), "Submitted batch job 4\n",
			"sbatch: error: Invalid --time specification\nsbatch: lua: post 4 kept\n", 0,
		},
		{
			[]string{"sbatch", "--test-only", "-J", "no", d.dir + "/x.sh"}, "",
			"sbatch: error: lua: cli refuses\nsbatch: error: cli_filter plugin terminated with error\n", 1,
		},
		{
			[]string{"srun", "-J", "set", "sh", "-c", "echo $SLURM_JOB_PARTITION"}, "debug\n",
			"srun: lua: post 5 kept\n", 0,
		},
		{
			[]string{"salloc", "-Q", "-J", "set", "sh", "-c", "echo $SLURM_JOB_PARTITION"}, "debug\n",
			"salloc: lua: post 6 kept\n", 0,
		},
	} {
		out, errs, code := d.run(c.line[0], c.line[1:]...)
		if out != c.out || !strings.HasPrefix(slurmWords(errs), c.errs) || code != c.code {
			t.Errorf("%s:\n%q %q %d, want\n%q %q %d", strings.Join(c.line, " "), out, errs, code, c.out, c.errs, c.code)
		}
	}
	for id, want := range map[string][]string{"2": {"Comment=dflt", "TimeLimit=00:09:00"}, "4": {"TimeLimit=00:09:00"},
		"3": {"Comment=cli", "MinMemoryNode=3G", "Partition=debug", "TimeLimit=00:05:00"}} {
		shown := d.must("scontrol", "show", "job", id)
		for _, w := range want {
			if !strings.Contains(shown, w) {
				t.Errorf("job %s: no %s in %s", id, w, shown)
			}
		}
	}
	if out, errs, code := d.line(1, "sbatch -H -J typed < "+d.dir+"/x.sh"); code != 0 || !strings.Contains(out, "Submitted batch job 7") {
		t.Errorf("a script by the input: %q %q %d", out, errs, code)
	}
	if out := d.must("scontrol", "write", "batch_script", "7", "-"); !strings.Contains(out, "echo $0 $1") {
		t.Errorf("its script: %q", out)
	}
}
