package submit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dev.muster/slurm/slurmtest"
)

// parts tells the size, time limit, partition and name of each component.
func parts(r *Request) string {
	var out []string
	for _, p := range r.Components() {
		out = append(out,
			fmt.Sprintf("%d n=%d N=%d t=%v p=%v J=%s mem=%v c=%d", p.Group, p.Job.Tasks, p.Job.MinNodes,
				p.Job.Limit, p.Job.Partitions, p.Job.Name, p.Job.Mem.MB, p.Job.CPUsPerTask))
	}
	return strings.Join(out, "; ")
}

func TestHetComponents(t *testing.T) {
	const three = "#SBATCH -n1 -t 3\n#SBATCH packjob\n#SBATCH -n2\n#SBATCH hetjob\n#SBATCH -n3 -t 4\n"
	for _, c := range []struct{ prog, line, env, script, want string }{
		{"sbatch", "job.sh", "", "", "0 n=0 N=0 t=0s p=[] J=job.sh mem=0 c=0"},
		{"sbatch", "-n1 -t5 -J x -p a -c2 --mem=7 : -n2 -p b : -N3 --mem-per-cpu=9 -J z job.sh", "", "",
			"0 n=1 N=0 t=5m0s p=[a] J=x mem=7 c=2; 0 n=2 N=0 t=5m0s p=[b] J=x mem=7 c=0; 0 n=0 N=3 t=5m0s p=[] J=z mem=9 c=0"},
		{
			"sbatch", "job.sh", "", three,
			"0 n=1 N=0 t=3m0s p=[] J=job.sh mem=0 c=0; 0 n=2 N=0 t=3m0s p=[] J=job.sh mem=0 c=0; 0 n=3 N=0 t=4m0s p=[] J=job.sh mem=0 c=0",
		},
		{
			"sbatch", "-t9 job.sh", "", three,
			"0 n=1 N=0 t=9m0s p=[] J=job.sh mem=0 c=0; 0 n=2 N=0 t=9m0s p=[] J=job.sh mem=0 c=0; 0 n=3 N=0 t=9m0s p=[] J=job.sh mem=0 c=0",
		},
		{
			"sbatch", "-t9 -J z -n4 : -n5 job.sh", "", three,
			"0 n=4 N=0 t=9m0s p=[] J=z mem=0 c=0; 0 n=5 N=0 t=9m0s p=[] J=z mem=0 c=0; 0 n=5 N=0 t=4m0s p=[] J=z mem=0 c=0",
		},
		{
			"sbatch", "-t8 --wrap true : -n2", "SBATCH_TIMELIMIT=7", "",
			"0 n=0 N=0 t=8m0s p=[] J=wrap mem=0 c=0; 0 n=2 N=0 t=7m0s p=[] J=wrap mem=0 c=0",
		},
		{
			"salloc", "-n1 -t2 : -n2 true :", "", "",
			"0 n=1 N=0 t=2m0s p=[] J=interactive mem=0 c=0; 0 n=2 N=0 t=2m0s p=[] J=interactive mem=0 c=0",
		},
		{
			"srun", "-n1 -t2 a : -n2 b", "", "",
			"0 n=1 N=0 t=2m0s p=[] J=a mem=0 c=0; 1 n=2 N=0 t=2m0s p=[] J=b mem=0 c=0",
		},
		{
			"srun", "true",
			"SLURM_JOB_ID=4 SLURM_NTASKS=5 SLURM_NTASKS_HET_GROUP_0=2 SLURM_NTASKS_HET_GROUP_1=3", "",
			"0 n=2 N=0 t=0s p=[] J=true mem=0 c=0",
		},
		{
			"srun", "--het-group=0-1 true",
			"SLURM_JOB_ID=4 SLURM_NTASKS=5 SLURM_NTASKS_HET_GROUP_0=2 SLURM_NTASKS_HET_GROUP_1=3", "",
			"0 n=2 N=0 t=0s p=[] J=true mem=0 c=0; 1 n=3 N=0 t=0s p=[] J=true mem=0 c=0",
		},
		{
			"srun", "--pack-group=2 -n7 true",
			"SLURM_JOB_ID=4 SLURM_CPUS_PER_TASK=2 SLURM_CPUS_PER_TASK_HET_GROUP_0=2", "",
			"2 n=7 N=0 t=0s p=[] J=true mem=0 c=0",
		},
		{
			"srun", "--het-group=1 a : --het-group=0 b", "SLURM_JOB_ID=4", "",
			"0 n=0 N=0 t=0s p=[] J=b mem=0 c=0; 1 n=0 N=0 t=0s p=[] J=a mem=0 c=0",
		},
	} {
		dir := script(t, "#!/bin/sh\n"+c.script+"true\n")
		r, err := parse(slurmtest.Sys(c.prog, dir, strings.Fields(c.env)...), strings.Fields(c.line)...)
		if err != nil {
			t.Errorf("%s %s: %s", c.prog, c.line, refusal(err))
			continue
		}
		if got := parts(r); got != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.prog, c.line, got, c.want)
		}
	}
	r, err := ParseSbatch([]string{"job.sh"}, slurmtest.Sys("sbatch", script(t, "#!/bin/sh\n"+three)))
	if err != nil || !slices.Contains(r.Notes, `Warning: the "packjob" component separator is being deprecated. Please, use "hetjob" instead.`) {
		t.Errorf("of packjob it says %v %v", r.Notes, err)
	}
}

// TestHetWaits: what one component waits for, all that were not told otherwise do, as in Slurm.
func TestHetWaits(t *testing.T) {
	for line, want := range map[string]string{
		"-n1 : -n1 --wrap true":                                     "- -",
		"-n1 -H : -n1 --wrap true":                                  "held held",
		"-n1 : -n1 : -n1 -H --wrap true":                            "held held held",
		"-n1 : -b 2031-01-01 : -n1 --wrap true":                     "2031 2031 2031",
		"-b 2032-01-01 : -b 2031-01-01 : -n1 --wrap true":           "2032 2031 2031",
		"-n1 : -d afterok:7 --wrap true":                            "7 7",
		"-d afterok:6 : -n1 : -d afterany:7 : --wrap true":          "6 6 7 7",
		"-n1 : -n1 -d afterok:7 : -H -b 2031-01-01 --wrap true -n1": "2031,7,held 2031,7,held 2031,7,held",
	} {
		r, err := parse(slurmtest.Sys("sbatch", t.TempDir()), strings.Fields(line)...)
		if err != nil {
			t.Errorf("%s: %s", line, refusal(err))
			continue
		}
		var got []string
		for _, p := range r.Components() {
			var one []string
			if !p.Job.Begin.IsZero() {
				one = append(one, fmt.Sprint(p.Job.Begin.Year()))
			}
			for _, d := range p.Job.Depends.Terms {
				one = append(one, fmt.Sprint(d.Job))
			}
			if p.Job.Hold {
				one = append(one, "held")
			}
			got = append(got, cmp.Or(strings.Join(one, ","), "-"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
