package report

import (
	"os"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
)

// badJob is what is said of a job that cannot be read: of one whose number can, which part of it is wrong.
func badJob(word, job string) error {
	at := strings.IndexAny(job, "_+")
	if at < 0 {
		return opt.Errorf(opt.CodeError, "sacct: fatal: Bad job/step specified: %s", word)
	}
	if _, ok := front.ParseTarget(job[:at]); !ok {
		return opt.Errorf(opt.CodeError, "sacct: fatal: Bad job/step specified: %s", word)
	}
	part := map[byte]string{'_': "job array element", '+': "hetjob offset"}[job[at]]
	return opt.Errorf(opt.CodeError, "sacct: fatal: Bad %s specified: %s", part, job[:at])
}

// checkCompletionFile refuses a file of job completion records that is not there.
func checkCompletionFile(v string) error {
	if _, err := os.Stat(v); err != nil {
		return &opt.UsageError{Code: opt.CodeError, Lines: []string{v + " is not a valid file"}}
	}
	return nil
}

// sacctStep reads the step of JOB.STEP: a number, batch or extern.
func sacctStep(w string) (step int, ok bool) {
	_, name, has := strings.Cut(w, ".")
	for _, own := range [...]int{cluster.BatchStep, cluster.ExternStep, cluster.InteractiveStep} {
		if has && name == show.StepName(own) {
			return own, true
		}
	}
	n, err := strconv.Atoi(name)
	return n, has && err == nil
}
