package submit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/slurmtest"
)

func parse(sys *front.Sys, argv ...string) (*Request, error) {
	switch sys.Prog {
	case "srun":
		return ParseSrun(argv, sys)
	case "salloc":
		return ParseSalloc(argv, sys)
	}
	return ParseSbatch(argv, sys)
}

// refusal is "CODE TEXT" of an error.
func refusal(err error) string {
	var u *opt.UsageError
	if !errors.As(err, &u) {
		return ""
	}
	return map[int]string{0: "0 ", 1: "1 ", 255: "255 "}[u.Code] + strings.Join(u.Lines, " / ")
}

func TestRefusals(t *testing.T) {
	const gres = " / PROG: error: Invalid generic resource (gres) specification"
	for _, c := range []struct{ prog, line, env, want string }{
		{"sbatch", "--mem=x --wrap=y", "", "255 sbatch: error: Invalid --mem specification"},
		{"sbatch", "--hint=nope --wrap=y", "", `1 sbatch: error: unrecognized --hint argument "nope", see --hint=help`},
		{"sbatch", "--wrap=y", "SLURM_HINT=nope", `1 sbatch: error: unrecognized --hint argument "nope", see --hint=help`},
		{"sbatch", "--ntasks-per-core=1 --wrap=y", "SLURM_HINT=nope", ""},
		{"srun", "--threads-per-core=1 y", "SLURM_HINT=nope", ""},
		{"srun", "-B 1:1:1 --hint=nope y", "", ""},
		{"srun", "--cores-per-socket=2 y", "SLURM_HINT=nope", `1 srun: error: unrecognized --hint argument "nope", see --hint=help`},
		{"sbatch", "--gpus-per-node=3 --gpus-per-socket=2 --sockets-per-node=2 --wrap=y", "",
			"1 sbatch: error: Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-socket." + gres},
		{"sbatch", "--gres=gpu:3 --gpus-per-socket=2 --sockets-per-node=2 --wrap=y", "",
			"1 sbatch: error: Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-socket." + gres},
		{"sbatch", "--gpus-per-node=4 --gpus-per-socket=2 --sockets-per-node=1 --wrap=y", "",
			"1 sbatch: error: Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required number of sockets differ from --sockets-per-node." + gres},
		{
			"sbatch", "--gpus-per-node=2 --gpus-per-socket=4 --sockets-per-node=1 --wrap=y", "",
			"1 sbatch: error: Failed to ensure --gpus >= --gpus-per-task" + gres,
		},
		{"sbatch", "--gpus-per-task=3 --gpus-per-socket=2 --sockets-per-node=2 -n1 --wrap=y", "",
			"1 sbatch: error: Failed to validate job spec, --gpus-per-socket not multiple of --gpus-per-task." + gres},
		{"sbatch", "--gpus-per-node=4 --gpus-per-socket=2 --sockets-per-node=2 --wrap=y", "", ""},
		{"sbatch", "--gpus=3 --gpus-per-socket=2 --sockets-per-node=2 --wrap=y", "", ""},
		{"sbatch", "--gpus=4 --gres=gpu:2 -N1 --wrap=y", "",
			"1 sbatch: error: Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes (2) doesn't fall between min_nodes (1) and max_nodes (1) boundaries." + gres},
		{"sbatch", "--gpus=4 --gpus-per-node=2 -N2 --wrap=y", "", ""},
		{"sbatch", "--gpus=4 --gpus-per-node=2 -N1-4 --wrap=y", "", ""},
		{
			"sbatch", "--gpus=h100:4 --gpus-per-node=4 --wrap=y", "",
			"1 sbatch: error: Invalid GRES specification (with and without type identification)",
		},
		{
			"srun", "--gres=gpu:h100:1,gpu:2 y", "",
			"1 srun: error: Invalid GRES specification (with and without type identification)",
		},
		{"srun", "--mpi=none y", "", ""},
		{"srun", "--container-image=x y", "", ""},
		{"srun", "--container-image=x y", "PYXIS_CONTAINER_READONLY=1 PYXIS_CONTAINER_MOUNT_HOME=0", ""},
		{"srun", "y", "PYXIS_CONTAINER_MOUNTS=/x", ""},
		{
			"srun", "--container-image=podman://x y", "",
			"1 srun: error: --container-image=podman://x: images come from a registry (docker://) or from files, not by podman://",
		},
		{
			"srun", "--container-mounts=/x y", "",
			"1 srun: error: --container-mounts is of no use without --container-image",
		},
		{"srun", "--container-image=x --container-mounts=/x:y y", "", `1 srun: error: --container-mounts: "/x:y": its place inside begins with /`},
		{"srun", "--container-image=x --container-mounts=/x:/y:suid y", "",
			`1 srun: error: --container-mounts: "/x:/y:suid": the flag suid is not known here; ro, rw, rprivate, rslave, rbind and x-create=dir|file are`},
		{
			"srun", "--container-image=x --container-workdir=y y", "",
			"1 srun: error: --container-workdir=y: it must begin with /",
		},
		{"srun", "--container-name=n:exec y", "", ""},
		{
			"srun", "--container-name=../n y", "",
			"1 srun: error: --container-name=../n: a name has letters, digits and _ - . in it",
		},
		{
			"srun", "--container-name=n:x y", "",
			"1 srun: error: --container-name=n:x: behind the name stands auto, create, exec or no_exec",
		},
		{"sbatch", "--container-image=x --container-save=n --wrap=y", "",
			"1 sbatch: error: --container-save=n cannot be done yet: " +
				"the container of a script is not saved / sbatch: error: the way out: give it to an srun in the script"},
		{
			"srun", "--container-image=oci:x y", "",
			"1 srun: error: --container-image=oci:x: what stands behind oci: begins with / or ./",
		},
		{"sbatch", "--wrap=y", "SBATCH_CONTAINER=b", ""},
		{
			"srun", "--container=/b --container-image=x y", "",
			"1 srun: error: --container=/b and --container-image or --container-name are two containers: leave one of them out",
		},
		{"srun", "--container= y", "", "1 srun: error: --container: name the folder of a bundle"},
		{"srun", "--bcast=/tmp/x --send-libs=maybe y", "", "255 srun: error: Invalid --send-libs specification"},
		{
			"sbatch", "--mem=1 --mem-per-cpu=1 --wrap=y", "",
			"1 sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.",
		},
		{
			"sbatch", "--wrap=y", "SBATCH_MEM_PER_CPU=1 SBATCH_MEM_PER_NODE=1",
			"1 sbatch: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive.",
		},
		{"sbatch", "--mem=3 --wrap=y", "SBATCH_MEM_PER_CPU=1", ""},
		{"sbatch", "-n0 nofile", "", `1 sbatch: error: Invalid numeric value "0" for --ntasks.`},
		{"sbatch", "nofile", "", "1 sbatch: error: Unable to open file nofile"},
		{"sbatch", "/", "", "1 sbatch: error: Batch script is empty!"},
		{"sbatch", "--wrap=x y", "", "1 sbatch: error: Script arguments not permitted with --wrap option"},
		{
			"sbatch", "-N0 --wrap=y", "",
			"1 sbatch: error: Batch job submission failed: Node count specification invalid",
		},
		{"sbatch", "-N0-1 --wrap=y", "", ""},
		{"sbatch", "--array= --wrap=y", "", ""},
		{"sbatch", "-d expand:1 --wrap=y", "", ""},
		{"sbatch", "-d expand: --wrap=y", "", "1 sbatch: error: Batch job submission failed: Job dependency problem"},
		{
			"srun", "--begin=now+20 --deadline=now+10 y", "",
			"1 srun: error: Incompatible begin and deadline time specification",
		},
		{"salloc", "--reboot y", "",
			"1 salloc: error: --reboot cannot be done yet: the nodes would not be rebooted / " +
				"salloc: error: the way out: have an administrator reboot them: scontrol reboot ASAP NODES"},
		{"sbatch", "--core-spec=1 --wrap=y", "SBATCH_THREAD_SPEC=2", ""},
		{"sbatch", "-d x --wrap=x", "", "1 sbatch: error: Batch job submission failed: Job dependency problem"},
		{"sbatch", "--test-only -d x --wrap=x", "", "1 allocation failure: Job dependency problem"},
		{"sbatch", "--uid=root --wrap=x", "", "255 sbatch: error: --uid only permitted by root user"},
		{
			"sbatch", "--begin=4PM --wrap=x", "",
			"255 Invalid time specification (pos=1): 4PM / sbatch: error: Invalid --begin specification",
		},
		{
			"sbatch", "--gpus-per-task=1 --wrap=x", "",
			"1 sbatch: error: Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not allowed." + gres,
		},
		{
			"sbatch", "--gpus-per-task=1 -N2-4 --wrap=x", "",
			"1 sbatch: error: Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not allowed." + gres,
		},
		{
			"sbatch", "--gpus-per-task=1 --ntasks-per-node=2 -N2-3 --wrap=x", "",
			"1 sbatch: error: Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not allowed." + gres,
		},
		{
			"sbatch", "--gpus-per-task=2 --gpus-per-node=3 --wrap=x", "",
			"1 sbatch: error: Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not allowed." + gres,
		},
		{
			"sbatch", "--gpus-per-task=2 --gpus-per-node=1 -c8 --wrap=x", "",
			"1 sbatch: error: Failed to ensure --gpus >= --gpus-per-task" + gres,
		},
		{
			"sbatch", "--gpus-per-task=2 --gpus=1 --wrap=x", "",
			"1 sbatch: error: Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket" + gres,
		},
		{
			"sbatch", "--gpus-per-task=2 --gpus-per-node=3 -n4 --wrap=x", "",
			"1 sbatch: error: Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-task." + gres,
		},
		{
			"sbatch", "--gpus-per-task=2 --gpus=3 -n1 --wrap=x", "",
			"1 sbatch: error: Failed to validate job spec, --gpus not multiple of --gpus-per-task" + gres,
		},
		{
			"sbatch", "--gpus-per-task=2 --gpus=2 -N2 --wrap=x", "",
			"1 sbatch: error: Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks." + gres,
		},
		{
			"sbatch", "--gpus-per-task=1 --gpus-per-node=2 --ntasks-per-node=1 --wrap=x", "",
			"1 sbatch: error: Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-task requested number of tasks per node differ from --ntasks-per-node." + gres,
		},
		{
			"sbatch", "--gpus=1 --gpus-per-node=3 --wrap=x", "",
			"1 sbatch: error: Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket" + gres,
		},
		{
			"sbatch", "--gpus=1 --gpus-per-socket=2 --sockets-per-node=1 --wrap=x", "",
			"1 sbatch: error: Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket" + gres,
		},
		{
			"sbatch", "--gpus=4 --gpus-per-node=3 --wrap=x", "",
			"1 sbatch: error: Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node" + gres,
		},
		{"sbatch", "--gpus-per-task=1 -B2 --wrap=x", "", ""},
		{"sbatch", "-wn1,n2 -N1 --wrap=x", "", "1 sbatch: error: invalid number of nodes (-N 2-1)"},
		{"salloc", "-wn[1-3] -N1-2", "", "1 salloc: error: invalid number of nodes (-N 3-2)"},
		{"sbatch", "-wn1,n2 -N2-3 --wrap=x", "", ""},
		{"sbatch", "--gpus=2 -N3-4 --wrap=x", "", "1 sbatch: error: Failed to validate job spec, --gpus < -N" + gres},
		{"sbatch", "--gpus=2 -N3 -n2 --wrap=x", "", ""},
		{"sbatch", "--gpus=2 -N1-4 --wrap=x", "", ""},
		{"sbatch", "--gpus-per-task=1 -N2 --wrap=x", "", ""},
		{"sbatch", "--gpus-per-task=1 --ntasks-per-node=2 --wrap=x", "", ""},
		{"sbatch", "--gpus-per-task=2 --gpus-per-node=4 -n4 --wrap=x", "", ""},
		{
			"sbatch", "--ntasks-per-gpu=1 -N2-4 --wrap=x", "",
			"1 sbatch: error: gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a node/ntask specification" + gres,
		},
		{
			"sbatch", "--mem-per-gpu=5 --wrap=x", "",
			"1 sbatch: error: Requested mem_per_tres=gres:gpu:5 but did not request any GPU." + gres,
		},
		{"sbatch", "--mem-per-gpu=5 --gres=gpu:1 --wrap=x", "", ""},
		{"sbatch", "--mem-per-gpu=0 --wrap=x", "", ""},
		{
			"sbatch", "--ntasks-per-gpu=2 --wrap=x", "",
			"1 sbatch: error: gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a node/ntask specification" + gres,
		},
		{
			"sbatch", "--ntasks-per-gpu=2 -n3 --wrap=x", "",
			"1 sbatch: error: Failed to validate job spec, -n/--ntasks has to be a multiple of --ntasks-per-gpu." + gres,
		},
		{"sbatch", "--ntasks-per-gpu=2 -n4 --wrap=x", "", ""},
		{"sbatch", "--ntasks-per-gpu=2 --gpus=1 --wrap=x", "", ""},
		{"sbatch", "--wrap=x", "SBATCH_WAIT_ALL_NODES=2", "255 sbatch: error: Invalid --wait-all-nodes specification"},
		{
			"sbatch", "-marbitrary --wrap=x", "",
			"1 sbatch: error: With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option",
		},
		{"sbatch", "-N1 : -Nx job", "", `255 sbatch: error: "x" is not a valid node count`},
		{"srun", "", "", "1 srun: fatal: No command given to execute."},
		{"srun", "-N0 true", "", "1 srun: error: Unable to allocate resources: Node count specification invalid"},
		{
			"srun", "--cpu-bind=x true", "",
			"1 srun: error: unrecognized --cpu-bind argument \"x\" / srun: fatal: Failed to parse --cpu-bind= values.",
		},
		{"srun", "-Ix true", "", `1 srun: error: Invalid numeric value "x" for immediate.`},
		{"srun", "-r1 true", "", "1 srun: fatal: --relative option invalid for job allocation request"},
		{"srun", "-r1 true", "SLURM_JOB_ID=4", ""},
		{"srun", "--het-group=1 true", "", "1 srun: fatal: --het-group is for steps in an allocation only"},
		{"srun", "--het-group=1,x true", "SLURM_JOB_ID=4", "1 srun: error: _parse_single_range: Invalid range: `x' / srun: error: Invalid --het-group value: 1,x"},
		{
			"srun", "--het-group=1 true : --het-group=0,1 true", "SLURM_JOB_ID=4",
			"1 srun: fatal: Duplicate het groups in single srun not supported",
		},
		{"srun", "--multi-prog /nofile", "", "1 srun: error: Could not open multi_prog config file /nofile"},
		{"srun", "/nofile", "SLURM_SRUN_MULTI=1", "1 srun: error: Could not open multi_prog config file /nofile"},
		{"srun", "--qos= true", "", "1 srun: error: Unable to allocate resources: Invalid qos specification"},
		{"srun", "--hint= true", "", `1 srun: error: unrecognized --hint argument "", see --hint=help`},
		{"srun", "true", "SLURM_NNODES=x", ""},
		{"srun", "--exact --whole true", "", "1 srun: error: --exact and --whole are mutually exclusive."},
		{"srun", "--exclusive --overlap true", "", "1 srun: error: --exclusive and --overlap are mutually exclusive"},
		{"srun", "--exclusive=user --overlap true", "", "1 srun: error: --exclusive and --overlap are mutually exclusive"},
		{"srun", "--whole --exclusive true", "", "1 srun: error: --exact and --whole are mutually exclusive."},
		{
			"srun", "--cpus-per-gpu=2 -c2 true", "",
			"1 srun: error: --cpus-per-gpu is mutually exclusive with --cpus-per-task" + gres,
		},
		{
			"salloc", "--test-only", "",
			"255 salloc: unrecognized option '--test-only' / Try \"salloc --help\" for more information",
		},
		{"salloc", "-Kx", "", "255 salloc: error: Invalid --kill-command specification"},
		{"salloc", "--gres=gpu:a:b", "", "1 salloc: error: Invalid generic resource (gres) specification"},
		{"salloc", "--chdir=/nofile", "", "1 salloc: error: chdir(/nofile): No such file or directory"},
		{"salloc", "--version", "", "0 slurm 22.05.8 (muster dev)"},
	} {
		_, err := parse(slurmtest.Sys(c.prog, t.TempDir(), strings.Fields(c.env)...), strings.Fields(c.line)...)
		if got := refusal(err); got != strings.ReplaceAll(c.want, "PROG", c.prog) {
			t.Errorf("%s %s %s:\n got %s\nwant %s", c.env, c.prog, c.line, got, c.want)
		}
	}
}

func script(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "job.sh"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDirectives(t *testing.T) {
	for _, c := range []struct{ text, want, err string }{
		{"#SBATCH -n 3 # tasks", "n=3", ""},
		{"#SBATCH --ntasks=3 --job-name='a b'", "n=3 J=a b", ""},
		{"#SBATCH--ntasks=4", "n=4", ""},
		{"#SBATCH-n4", "n=4", ""},
		{"#SBATCH\t-n 4", "n=4", ""},
		{"#SBATCH -J a#b", "J=a#b", ""},
		{"#SBATCH -J a\\ b", "J=a b", ""},
		{"#SBATCH -J \"a # b\" #c", "J=a # b", ""},
		{"##SBATCH -n4\n# SBATCH -n4\n #SBATCH -n4", "", ""},
		{"\n  # x\n\n#SBATCH -n4", "n=4", ""},
		{"true\n#SBATCH -n4", "", ""},
		{"#SBATCH --help", "", ""},
		{"#PBS -N foo -l nodes=2:ppn=4,walltime=1:00:00\n#PBS -j oe", "J=foo N=2 t=1h0m0s", ""},
		{"#PBS -N foo\n#SBATCH -J bar", "J=bar", ""},
		{"#SBATCH --ignore-pbs\n#PBS -N foo", "", ""},
		{"#PBS -l nodes=3+ppn=2", "N=3", ""},
		{"#PBS -l nodes=2:ppn=2+gpu-node-001", "N=3", ""},
		{"#PBS -l nodes=2:ppn=4:fast", "N=2", ""},
		{"#PBS -l nodes=2:ppn=x", "", `1 sbatch: error: Invalid numeric value "x" for --ntasks-per-node.`},
		{"#BSUB -J foo -n 4", "n=4 J=foo", ""},
		{"#SBATCH -N2 foo", "", "255 sbatch: error: Invalid directive found in batch script: foo"},
		{"#SBATCH --x", "", "255 sbatch: unrecognized option '--x' / Try \"sbatch --help\" for more information"},
		{"#SBATCH \"-J a", "", "1 sbatch: fatal: job.sh: line 2: Unmatched `\"` in [\"-J a]"},
		{"#SBATCH -nx", "", `1 sbatch: error: Invalid numeric value "x" for --ntasks.`},
		{"#PBS foo", "", "1 sbatch: error: Invalid argument: foo"},
		{"#BSUB -z", "", "1 sbatch: invalid option -- 'z' / sbatch: error: Unrecognized command line parameter ?"},
	} {
		r, err := ParseSbatch([]string{"job.sh"}, slurmtest.Sys("sbatch", script(t, "#!/bin/sh\n"+c.text+"\ntrue\n")))
		if got := refusal(err); got != c.err {
			t.Errorf("%q: error %q, want %q", c.text, got, c.err)
		}
		if err != nil {
			continue
		}
		if got := brief(r); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func brief(r *Request) string {
	var w []string
	if n := r.Job.Tasks; n != 0 {
		w = append(w, "n="+string(rune('0'+n)))
	}
	if r.Job.Name != "job.sh" {
		w = append(w, "J="+r.Job.Name)
	}
	if n := r.Job.MinNodes; n != 0 {
		w = append(w, "N="+string(rune('0'+n)))
	}
	if r.Job.Limit != 0 {
		w = append(w, "t="+r.Job.Limit.String())
	}
	return strings.Join(w, " ")
}

func TestPrecedence(t *testing.T) {
	dir := script(t, "#!/bin/sh\n#SBATCH -p script -A script -q script\n")
	sys := slurmtest.Sys("sbatch", dir, "SBATCH_PARTITION=env", "SBATCH_ACCOUNT=env", "SLURM_QOS=srun")
	r, err := ParseSbatch([]string{"-p", "line", "job.sh", "-p", "arg"}, sys)
	if err != nil {
		t.Fatal(err)
	}
	if r.Job.Partitions[0] != "line" || r.Job.Account != "env" || r.Job.QOS != "script" {
		t.Errorf("got %v %q %q", r.Job.Partitions, r.Job.Account, r.Job.QOS)
	}
	if r.From("partition") != FromLine || r.From("account") != FromEnv || r.From("qos") != FromDirective || r.From("mem") != NotGiven {
		t.Errorf("sources %v", r.Set)
	}
	if r.Job.Command != filepath.Join(dir, "job.sh") || strings.Join(r.Job.Args, " ") != "-p arg" || r.Job.WorkDir != dir {
		t.Errorf("command %q %q in %q", r.Job.Command, r.Job.Args, r.Job.WorkDir)
	}
}

// TestSubmitted: what a line makes of a request, where the words say it in another way.
func TestSubmitted(t *testing.T) {
	for line, want := range map[string]string{
		"-o none -e ~/x":                 "out /dev/null err /home/u/x min 0s nodes [] parts []",
		"-o NONE -e x":                   "out /dev/null err x min 0s nodes [] parts []",
		"--deadline=now+10":              "out  err  min 1m0s nodes [] parts []",
		"--deadline=now+10 -t5":          "out  err  min 0s nodes [] parts []",
		"--deadline=now+10 --time-min=2": "out  err  min 2m0s nodes [] parts []",
		"-p=":                            "out  err  min 0s nodes [] parts [=]",
		"--partition=":                   "out  err  min 0s nodes [] parts []",
		"-N2 -w n[1-2]":                  "out  err  min 0s nodes [n1 n2] parts []",
	} {
		r, err := ParseSbatch(append(strings.Fields(line), "--wrap=y"),
			slurmtest.Sys("sbatch", t.TempDir(), "HOME=/home/u"))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		j := &r.Job
		got := fmt.Sprintf("out %s err %s min %s nodes %v parts %v", j.Stdout, j.Stderr, j.LimitMin,
			j.NodeList, j.Partitions)
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	r, err := ParseSbatch([]string{"-S", "1", "--wrap=y"}, slurmtest.Sys("sbatch", t.TempDir(), "SBATCH_THREAD_SPEC=2"))
	if err != nil || r.Job.CoreSpec == nil || r.Job.ThreadSpec != nil {
		t.Errorf("the line and the environment leave something to the system: %v, %+v", err, r)
	}
	r, err = ParseSbatch([]string{"-A", "TEAM-a", "-q", "High", "--wrap=y"}, slurmtest.Sys("sbatch", t.TempDir()))
	if err != nil || r.Job.Account != "team-a" || r.Job.QOS != "high" {
		t.Errorf("names with capitals: %v, %+v", err, r)
	}
	r, err = ParseSbatch([]string{"-p", "", "--wrap=y"}, slurmtest.Sys("sbatch", t.TempDir()))
	if err != nil || len(r.Job.Partitions) != 1 {
		t.Errorf("an empty partition is %v, %v: the server is to refuse it", r.Job.Partitions, err)
	}
	for line, want := range map[string]string{
		"-N1 -w n[3-4] y": "[n3] 0 [error: Required nodelist includes more nodes than permitted by max-node count (2 > 1). " +
			"Eliminating nodes from the nodelist.]",
		"-w n[3-4] y":               "[n3 n4] 0 []",
		"-m arbitrary -w ./hosts y": "[b a] 3 []",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "hosts"), []byte("b\na\nb\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		r, err := ParseSrun(strings.Fields(line), slurmtest.Sys("srun", dir))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := fmt.Sprint(r.Job.NodeList, r.Job.Tasks, r.Notes); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// TestErrorExit: SLURM_EXIT_ERROR is the code of what the server refuses, and of no wrong command line.
func TestErrorExit(t *testing.T) {
	for prog, want := range map[string]int{"sbatch": 42, "srun": 42, "salloc": 42, "squeue": 1} {
		sys := slurmtest.Sys(prog, t.TempDir(), "SLURM_EXIT_ERROR=42")
		sys.Stderr = io.Discard
		if got := sys.Fail("x"); got != want {
			t.Errorf("%s: %d, want %d", prog, got, want)
		}
		if got := sys.Usage(opt.Refuse(opt.Sbatch, false, "x")); got != want {
			t.Errorf("%s: %d for a refusal, want %d", prog, got, want)
		}
		if got := sys.Usage(opt.Errorf(opt.CodeError, "x")); got != 1 {
			t.Errorf("%s: %d for a wrong line, want 1", prog, got)
		}
	}
}

func TestScripts(t *testing.T) {
	for _, c := range []struct{ text, err string }{
		{"", "1 sbatch: error: Batch script is empty!"},
		{" \n\n", "1 sbatch: error: Batch script contains only whitespace!"},
		{"#!/bin/sh\r\ntrue\r\n", `1 sbatch: error: Batch script contains DOS line breaks (\r\n) / sbatch: error: instead of expected UNIX line breaks (\n).`},
		{"#!/bin/sh\n\x00", `1 sbatch: error: The Slurm controller does not allow scripts that / sbatch: error: contain a NULL character '\0'.`},
	} {
		sys := slurmtest.Sys("sbatch", t.TempDir())
		sys.Stdin = strings.NewReader(c.text)
		if _, err := ParseSbatch(nil, sys); refusal(err) != c.err {
			t.Errorf("%q: got %q", c.text, refusal(err))
		}
	}
	sys := slurmtest.Sys("sbatch", t.TempDir())
	sys.Stdin = strings.NewReader("#SBATCH -n2\n#SBATCH \"\ntrue\n")
	if _, err := ParseSbatch(nil, sys); refusal(err) != "1 sbatch: fatal: stdin: line 2: Unmatched `\"` in [\"]" {
		t.Errorf("line number without #!: %q", refusal(err))
	}
	sys.Stdin = strings.NewReader("#SBATCH -n2\ntrue\n")
	r, err := ParseSbatch(nil, sys)
	if err != nil || r.Job.Name != "sbatch" || r.Job.Tasks != 2 || !strings.HasPrefix(string(r.Script), "#!/bin/bash\n#SBATCH") || len(r.Notes) != 1 {
		t.Errorf("script without #!: %v %+v", err, r)
	}
}

// TestLeaves: a job says what it leaves of its nodes; that it has them whole then is for the server, where the site
// allows it.
func TestLeaves(t *testing.T) {
	for arg, want := range map[string][2]string{
		"-S0": {"0", "nil"}, "-S2": {"2", "nil"}, "--thread-spec=2": {"nil", "2"},
	} {
		r, err := ParseSbatch([]string{arg, "--oversubscribe", "--wrap", "true"}, slurmtest.Sys("sbatch", t.TempDir()))
		if err != nil || len(r.Notes) > 0 || r.Job.Sharing != cluster.ShareOver || pointed(r.Job.CoreSpec) != want[0] || pointed(r.Job.ThreadSpec) != want[1] {
			t.Errorf("%s: %v %+v", arg, err, r)
		}
	}
	for _, arg := range []string{"-Sx", "-S-1", "--thread-spec=0"} {
		if _, err := ParseSbatch([]string{arg, "--wrap", "true"}, slurmtest.Sys("sbatch", t.TempDir())); err == nil || !strings.Contains(err.Error(), "Invalid numeric value") {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// TestTasksPerNode: srun leaves it out, and says so, where it does not match the numbers of tasks and nodes. The
// cases are Slurm's.
func TestTasksPerNode(t *testing.T) {
	for _, c := range []struct {
		args, env   string
		said, nodes int // in the warning; 0: none
	}{
		{"-n4 --ntasks-per-node=2", "", 0, 0}, {"-N1 -n4 --ntasks-per-node=2", "", 2, 1},
		{"-N2 -n4 --ntasks-per-node=2", "", 0, 0}, {"-N2 -n6 --ntasks-per-node=2", "", 2, 2},
		{"-N2 -n3 --ntasks-per-node=2", "", 2, 2}, {"-N2 -n2 --ntasks-per-node=2", "", 0, 0},
		{"-N1 -n1 --ntasks-per-node=2", "", 0, 0}, {"-N2 --ntasks-per-node=2", "", 0, 0},
		{"-N1-2 -n6 --ntasks-per-node=2", "", 2, 1}, {"-N1 -n3", "SLURM_NTASKS_PER_NODE=2", 2, 1},
		{"-n4", "SLURM_NTASKS_PER_NODE=4 SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=8", 0, 0},
		{"-N1", "SLURM_NTASKS_PER_NODE=4 SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=8", 4, 1},
		{"--ntasks-per-node=2", "SLURM_NTASKS_PER_NODE=4 SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=8", 2, 2},
		{"-n5 --ntasks-per-node=2", "SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=4", 0, 0},
		{"-n4 --ntasks-per-node=1", "SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=4", 1, 2},
	} {
		sys := slurmtest.Sys("srun", t.TempDir())
		sys.Environ = append(sys.Environ, strings.Fields(c.env)...)
		r, err := ParseSrun(append(strings.Fields(c.args), "true"), sys)
		if err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		want := ""
		if c.said > 0 {
			want = fmt.Sprintf("Warning: can't honor --ntasks-per-node set to %d which doesn't match the requested tasks %d with the number of requested nodes %d. Ignoring --ntasks-per-node.",
				c.said, r.Job.Tasks, c.nodes)
		}
		if got := strings.Join(r.Notes, "; "); got != want || (r.Job.TasksPerNode == 0) != (c.said > 0) {
			t.Errorf("%s %s: %q, want %q; %d a node", c.env, c.args, got, want, r.Job.TasksPerNode)
		}
	}
}

// TestMake: -B makes a task for each thread that it names, --hint asks for one thread of a core. The cases are Slurm's.
func TestMake(t *testing.T) {
	for line, want := range map[string][4]int{ // tasks, sockets, cores, threads
		"-B2:8": {16, 2, 8, 0}, "-B*:4": {4, 0, 4, 0}, "-B1": {1, 1, 0, 0}, "-B2:*:2": {4, 2, 0, 2},
		"-B2 -N2": {4, 2, 0, 0}, "-B2:8 -n4": {4, 2, 8, 0},
		"--cores-per-socket=9 --threads-per-core=2 -B2": {2, 2, 0, 0},
		"--sockets-per-node=3 -B*:4":                    {4, 0, 4, 0}, "-B2 --cores-per-socket=4": {8, 2, 4, 0},
		"-B2:8 -wn1,n2": {32, 2, 8, 0}, "-B1:4 --gpus-per-task=1 -N2": {8, 1, 4, 0},
		"-B2 --ntasks-per-node=3": {0, 2, 0, 0}, "--sockets-per-node=2 --cores-per-socket=4": {0, 2, 4, 0},
		"--hint=compute_bound": {0, 0, 0, 1}, "--hint=nomultithread": {0, 0, 0, 1},
		"--hint=memory_bound": {0, 0, 1, 1}, "--hint=multithread": {},
		"--hint=memory_bound --ntasks-per-core=2": {}, "--hint=compute_bound --threads-per-core=2": {0, 0, 0, 2},
	} {
		r, err := ParseSbatch(append(strings.Fields(line), "--wrap", "true"), slurmtest.Sys("sbatch", t.TempDir()))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := [4]int{r.Job.Tasks, r.Job.SocketsPerNode, r.Job.CoresPerSocket, r.Job.ThreadsPerCore}; got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// TestNoMemory: 0 MB per CPU are all of each node's, 0 MB per GPU the default.
func TestNoMemory(t *testing.T) {
	for arg, want := range map[string]cluster.MemPer{
		"--mem=0": cluster.MemPerNode, "--mem-per-cpu=0": cluster.MemPerNode,
		"--mem-per-gpu=0": cluster.MemDefault, "-n1": cluster.MemDefault,
	} {
		r, err := ParseSbatch([]string{arg, "--wrap", "true"}, slurmtest.Sys("sbatch", t.TempDir()))
		if err != nil || r.Job.Mem != (cluster.Mem{Per: want}) {
			t.Errorf("%s: %v %+v", arg, err, r)
		}
	}
}

func pointed(n *int) string {
	if n == nil {
		return "nil"
	}
	return strconv.Itoa(*n)
}

// TestTasksOfMake: -B counts tasks for sbatch and salloc, for srun only with all three numbers.
func TestTasksOfMake(t *testing.T) {
	for _, c := range []struct {
		line        string
		batch, srun int
	}{
		{"-B2", 2, 0}, {"-B1:2", 2, 0}, {"-B2:*:1", 2, 0}, {"-B2:2:1", 4, 4}, {"-B1:2 --threads-per-core=1", 2, 2},
		{"-B2:2 -N2", 8, 0}, {"-B2:2:1 -N2", 8, 8}, {"-B2:2 -n3", 3, 3}, {"-B1:1:1", 1, 1},
	} {
		line := strings.Fields(c.line)
		b, err := ParseSbatch(append(line, "--wrap=x"), slurmtest.Sys("sbatch", "/tmp"))
		if err != nil || b.Job.Tasks != c.batch {
			t.Errorf("sbatch %s: %v, %d tasks, want %d", c.line, err, b.Job.Tasks, c.batch)
		}
		s, err := ParseSrun(append(line, "true"), slurmtest.Sys("srun", "/tmp", "A=1"))
		if err != nil || s.Job.Tasks != c.srun {
			t.Errorf("srun %s: %v, %d tasks, want %d", c.line, err, s.Job.Tasks, c.srun)
		}
	}
}

// TestExclusiveStep: --exclusive of srun's own allocation leaves the one task of a node all of its CPUs; with a number
// of tasks, or in a job, each has its own.
func TestExclusiveStep(t *testing.T) {
	for _, c := range []struct {
		line, env string
		exact     bool
	}{
		{"--exclusive", "A=1", false}, {"--exclusive -N2", "A=1", false}, {"--exclusive -n1", "A=1", true},
		{"--exclusive -c2", "A=1", true}, {"--exclusive --exact", "A=1", false},
		{"--exclusive --ntasks-per-node=2", "A=1", true}, {"--exact", "A=1", true},
		{"--exclusive", "SLURM_JOB_ID=7", true}, {"--exclusive=user -n2", "A=1", false},
	} {
		r, err := ParseSrun(append(strings.Fields(c.line), "true"), slurmtest.Sys("srun", "/tmp", c.env))
		if err != nil || r.Step.Exact != c.exact {
			t.Errorf("srun %s with %s: %v, exact %v", c.line, c.env, err, r.Step.Exact)
		}
	}
}

func TestSrunStep(t *testing.T) {
	sys := slurmtest.Sys("srun", "/tmp", "SLURM_JOB_ID=7", "SLURM_JOB_NAME=outer", "SLURM_NTASKS=8",
		"SLURM_STEP_GRES=gpu:1", "SLURM_EXPORT_ENV=NONE")
	r, err := ParseSrun([]string{
		"-n2", "-c", "3", "-l", "--exact", "-t5", "-o", "x", "-W3", "/bin/hostname", "-f",
	}, sys)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Step
	if s.Tasks != 2 || s.CPUsPerTask != 3 || !s.Label || !s.Exact || s.Limit != 5*time.Minute || s.Stdout != "x" || s.WaitAfterFirst != 3*time.Second {
		t.Errorf("step %+v", s)
	}
	if s.Name != "hostname" || strings.Join(s.Argv, " ") != "/bin/hostname -f" || s.PerNode[0].Count != 1 || r.Job.Export != "NONE" || r.Client.JobID != 7 {
		t.Errorf("step %+v", s)
	}
}

func TestJobEnviron(t *testing.T) {
	env := []string{"A=1", "B=2", "BASH_FUNC_f%%=() { :; }", "SLURM_JOB_ID=3"}
	for _, c := range []struct {
		line, want string
		login      bool
	}{
		{"", "A=1|B=2|BASH_FUNC_f%%=() { :; }|SLURM_JOB_ID=3", false},
		{
			"--export=ALL,A=9,C=3",
			"A=9|B=2|BASH_FUNC_f%%=() { :; }|SLURM_JOB_ID=3|C=3|SLURM_EXPORT_ENV=ALL,A=9,C=3|SLURM_GET_USER_ENV=1",
			false,
		},
		{"--export=ALL", "A=1|B=2|BASH_FUNC_f%%=() { :; }|SLURM_JOB_ID=3", false},
		{"--export=NONE", "SLURM_JOB_ID=3|SLURM_EXPORT_ENV=NONE|SLURM_GET_USER_ENV=1", true},
		{
			"--export=B,f,C=3,D",
			"SLURM_JOB_ID=3|B=2|BASH_FUNC_f%%=() { :; }|C=3|SLURM_EXPORT_ENV=B,f,C=3,D|SLURM_GET_USER_ENV=1",
			true,
		},
	} {
		sys := slurmtest.Sys("sbatch", "/tmp", env...)
		r, err := ParseSbatch(append(strings.Fields(c.line), "--wrap=x"), sys)
		if err != nil {
			t.Fatal(err)
		}
		out, err := JobEnviron(r, env)
		got := strings.ReplaceAll(strings.TrimSuffix(string(out), "\x00"), "\x00", "|")
		if err != nil || got != c.want || r.Job.UserEnv != c.login {
			t.Errorf("%q: %v %v\n got %s\nwant %s", c.line, err, r.Job.UserEnv, got, c.want)
		}
	}
}

// TestStepEnviron: what shows a batch script its job's GPUs is not passed on to steps, which have their own or
// none; what a user sets where the job has no GPUs is.
// TestArbitraryNodes: a step of -m arbitrary has the nodes that are named, however many its job has.
func TestArbitraryNodes(t *testing.T) {
	for line, want := range map[string]string{
		"-w n2,n1 -n2 true":     "2-2",
		"-w n2,n1 -N2 -n2 true": "2-2",
		"-w n2,n1 -N3 -n5 true": "1 srun: error: Unable to create step for job 7: Requested node configuration is not available",
	} {
		sys := slurmtest.Sys("srun", t.TempDir(), "SLURM_JOB_ID=7", "SLURM_NNODES=3", "SLURM_JOB_NUM_NODES=3")
		r, err := ParseSrun(append([]string{"-m", "arbitrary"}, strings.Fields(line)...), sys)
		got := refusal(err)
		if err == nil {
			got = fmt.Sprintf("%d-%d", r.Step.MinNodes, r.Step.MaxNodes)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestStepEnviron(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{
			"A=1 SLURM_JOB_GPUS=0,1 CUDA_VISIBLE_DEVICES=0,1 GPU_DEVICE_ORDINAL=0,1 SLURM_GPUS_ON_NODE=2",
			"A=1|SLURM_JOB_GPUS=0,1",
		},
		{"A=1 CUDA_VISIBLE_DEVICES=0,1", "A=1|CUDA_VISIBLE_DEVICES=0,1"},
	} {
		r, err := ParseSrun([]string{"true"}, slurmtest.Sys("srun", t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		out, err := JobEnviron(r, strings.Fields(c.env))
		if got := strings.ReplaceAll(strings.TrimSuffix(string(out), "\x00"), "\x00", "|"); err != nil || !strings.HasPrefix(got, c.want) || strings.Contains(got, "ORDINAL") {
			t.Errorf("%s: %s %v, want %s", c.env, got, err, c.want)
		}
	}
}

// TestRows checks what every row must have, and that no name is taken twice.
func TestRows(t *testing.T) {
	for _, prog := range []opt.Prog{opt.Sbatch, opt.Srun, opt.Salloc} {
		long, short := map[string]bool{}, map[byte]bool{}
		for _, table := range ParserFor(prog).Rows {
			for _, o := range table {
				if o.On&prog == 0 {
					continue
				}
				if long[o.Long] || o.Short != 0 && short[o.Short] {
					t.Errorf("%s: --%s or -%c is there twice", prog.Name(), o.Long, o.Short)
				}
				long[o.Long], short[o.Short] = true, true
				answered := o.Group == opt.HelpGroup || o.Long == "version"
				if o.Alias == "" && o.Ignored == "" && !answered && (o.Set == nil || o.Help == "" && !o.Hidden) {
					t.Errorf("%s: --%s does nothing, or nothing is said of it", prog.Name(), o.Long)
				}
			}
		}
	}
}

// TestHints: what nodes lack is said of a job that is submitted; of one that is only tested, only of limits and
// partitions.
func TestHints(t *testing.T) {
	hinted := func(k cluster.ErrKind, hint string) error {
		e := cluster.Errorf(cluster.Invalid, k, "refused")
		e.Hint = hint
		return e
	}
	for _, c := range []struct {
		err          error
		submit, test string
	}{
		{
			hinted(cluster.ErrNodeConfig, "Memory specification can not be satisfied"),
			"sbatch: error: Memory specification can not be satisfied\n", "",
		},
		{hinted(cluster.ErrNodeConfig, ""), "", ""},
		{
			hinted(cluster.ErrPolicy, "QOSMaxCpuPerJobLimit"), "sbatch: error: QOSMaxCpuPerJobLimit\n",
			"sbatch: error: QOSMaxCpuPerJobLimit\n",
		},
		{
			hinted(cluster.ErrPartition, ""), "sbatch: error: invalid partition specified: a,b\n",
			"sbatch: error: invalid partition specified: a,b\n",
		},
	} {
		for test, want := range map[bool]string{false: c.submit, true: c.test} {
			var b strings.Builder
			r := &Request{Job: cluster.JobSpec{Partitions: []string{"a", "b"}}}
			r.Client.TestOnly = test
			BeforeRefusal((&front.Sys{Prog: "sbatch", Stderr: &b}), c.err, r)
			if b.String() != want {
				t.Errorf("%v, only tested: %v: %q, want %q", c.err, test, b.String(), want)
			}
		}
	}
}

// TestTasksOfGPUs: how many tasks, and GPUs in all, options of GPUs make where they are not counted.
func TestTasksOfGPUs(t *testing.T) {
	for _, c := range []struct {
		line  string
		tasks int
		gpus  int64
	}{
		{"--gpus-per-task=2 --gpus=8", 4, 8},
		{"--gpus-per-task=1 -N4", 4, 0},
		{"--gpus-per-task=1 --ntasks-per-node=2", 2, 0},
		{"--gpus-per-task=1 --ntasks-per-node=2 -N3", 6, 0},
		{"--gpus-per-task=2 --gpus-per-node=4 -N2", 4, 0},
		{"--gpus-per-task=2 --gpus-per-node=4 -n3", 3, 0},
		{"--ntasks-per-gpu=2 -n4", 4, 2},
		{"--ntasks-per-gpu=2 --gpus=2", 4, 2},
		{"--ntasks-per-gpu=2 --gpus-per-node=2 -N2", 8, 0},
		{"--ntasks-per-gpu=1 -N2", 2, 2},
		{"--gpus=8", 0, 8},
	} {
		r, err := ParseSbatch(append(strings.Fields(c.line), "--wrap=x"), slurmtest.Sys("sbatch", t.TempDir()))
		if err != nil || r.Job.Tasks != c.tasks || gresSum(r.Job.PerJob) != c.gpus {
			t.Errorf("%s: %d tasks, %d GPUs, %v", c.line, r.Job.Tasks, gresSum(r.Job.PerJob), err)
		}
	}
}

// TestTRESBind: --tres-bind of Slurm 23.11 is --gpu-bind in other words; what is not of GPUs is refused.
func TestTRESBind(t *testing.T) {
	for line, want := range map[string]string{
		"gres/gpu:closest":                  "closest",
		"gres/gpu:verbose,map:0,1":          "verbose,map_gpu:0,1",
		"gres/gpu:mask:0x3,0xc":             "mask_gpu:0x3,0xc",
		"gres/gpu:single:2":                 "single:2",
		"gres/gpu:per_task:1+gres/nic:none": "per_task:1",
		"gres/gpu:none":                     "none",
		"gres/nic:none":                     "",
		"gres/gpu:closest+gres/nic:closest": "error: --tres-bind=gres/nic:closest cannot be done here",
		"gres/gpu:nonsense":                 "error: Invalid --tres-bind argument: gres/gpu:nonsense",
		"gpu:closest":                       "error: --tres-bind=gpu:closest cannot be done here",
		"gres/gpu:map:x":                    "error: Invalid --tres-bind argument: gres/gpu:map:x",
	} {
		r, err := ParseSbatch([]string{"--tres-bind=" + line, "--wrap=x"}, slurmtest.Sys("sbatch", t.TempDir()))
		got := refusal(err)
		if err == nil {
			got = r.Job.GPUBind
		}
		if !strings.Contains(got, want) || err == nil && got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestOOMKillStep: a job hands --oom-kill-step on to its steps.
func TestOOMKillStep(t *testing.T) {
	for line, want := range map[string]bool{"": true, "=1": true, "=0": false, "=2": false} {
		r, err := ParseSbatch([]string{"--oom-kill-step" + line, "--wrap=x"}, slurmtest.Sys("sbatch", t.TempDir()))
		if line == "=2" {
			if err == nil {
				t.Error("--oom-kill-step=2 is taken")
			}
			continue
		}
		env, err2 := JobEnviron(r, []string{"A=1"})
		if err != nil || err2 != nil || strings.Contains(string(env), "SLURM_OOM_KILL_STEP=1\x00") != want {
			t.Errorf("--oom-kill-step%s: %q, %v, %v", line, env, err, err2)
		}
	}
}
