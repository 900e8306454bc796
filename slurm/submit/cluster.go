package submit

import (
	"errors"
	"slices"
	"time"

	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// PickCluster has the job go to the cluster where it starts first, of those that -M names. A code of 0 or more ends the
// command.
func PickCluster(s *front.Sys, r *Request) (own string, code int) {
	job := front.Entry{
		Words:  plainWords(r),
		Script: r.typed,
		Refuse: refuseForSlurm(r),
		Starts: func(one *front.Sys) (time.Time, error) {
			q, code := Submission(one, r)
			if code != 0 {
				return time.Time{}, errors.New("the job cannot be described")
			}
			resp, err := Test(one, r, q)
			if _, asked := filterAsked(err); asked { // the site's script is asked once it is the one
				return one.Now(), nil
			}
			return resp.StartsAt, err
		},
	}
	return s.PickCluster(r.Job.Clusters, &job)
}

// plainWords is the command line without clusters, of all components.
func plainWords(r *Request) (words []string) {
	p := ParserFor(r.prog)
	for rest := r.line; ; {
		var kept []string
		kept, rest = p.Without(rest, "clusters")
		words = append(words, kept...)
		if len(rest) == 0 || rest[0] != ":" {
			return append(words, rest...)
		}
		words, rest = append(words, ":"), rest[1:]
	}
}

// refuseForSlurm says why Slurm's own command would read the job otherwise.
func refuseForSlurm(r *Request) string {
	named := func(o Given) bool { return o.Long == "clusters" && o.From == FromDirective }
	if r.prog == opt.Sbatch && slices.ContainsFunc(r.Set, named) {
		return "the script names clusters (#SBATCH -M or --clusters), which a cluster that runs Slurm would look for " +
			"again: remove that line and use sbatch -M"
	}
	return ""
}
