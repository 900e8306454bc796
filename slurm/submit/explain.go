package submit

import (
	"dev.muster/api"
	"dev.muster/slurm/front"
)

// Explained is what becomes of a script for sbatch.
type Explained struct {
	Asked api.SubmitRequest // as the script and the environment have it
	Sent  api.SubmitRequest // as cli_filter.lua has left it
	Test  api.TestResponse  // with what the site's plugins change of that
}

// Explain tests a submission. Of one that is refused the error says why; what is known until then is told, too.
func Explain(s *front.Sys, argv []string) (e Explained, code int, err error) {
	r, err := ParseSbatch(argv, s)
	if err != nil {
		return e, s.Usage(err), nil
	}
	if e.Asked, code = Submission(s, r); code != 0 {
		return e, code, nil
	}
	e.Sent = e.Asked
	e.Sent.Explain = true
	e.Test, err = front.Call(s, api.TestJob, e.Sent)
	if text, ok := filterAsked(err); ok {
		if e.Sent, err = refilter(s, r, text); err != nil {
			return e, 0, err
		}
		e.Sent.Explain = true
		e.Test, err = front.Call(s, api.TestJob, e.Sent)
	}
	return e, 0, err
}
