package front

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
)

// Entry is a job that is to go to one of several clusters.
type Entry struct {
	Starts func(*Sys) (time.Time, error) // says when it would start at a cluster that runs muster
	Words  []string                      // the command line without clusters, for one that runs Slurm
	Script []byte                        // read from the input; nil: the input was not read
	Refuse string                        // why a Slurm cannot read the job as it is; empty: it can
}

// slurmTie is by how much a Slurm has to be earlier: it counts whole seconds, and starts jobs every few.
const slurmTie = 2 * time.Second

// errForecast says that a command cannot forecast the start.
var errForecast = errors.New("salloc has no --test-only at a cluster that runs Slurm: name one cluster with -M")

// choose returns the cluster of list where a job starts first, "" with the reasons if none takes it. Clusters that run
// Slurm come last and have to be earlier.
func (s slurmCaller) choose(list []string, own string, job *Entry) (best string, why error) {
	isSlurm := func(name string) bool { return s.slurmNamed(name) != nil }
	order := slices.Concat(
		slices.DeleteFunc(slices.Clone(list), isSlurm),
		slices.DeleteFunc(slices.Clone(list), func(name string) bool { return !isSlurm(name) }),
	)
	var when time.Time
	for _, name := range order {
		at, err := s.startsAt(name, own, job)
		switch {
		case err != nil && isSlurm(name) && !errors.As(err, new(refusal)):
			s.Say("cluster %s was not considered: %v", name, err)
			why = errors.Join(why, err)
		case err != nil:
			why = errors.Join(why, err)
		case best == "":
			best, when = name, at
		case isSlurm(name) && at.Before(when.Add(-slurmTie)), !isSlurm(name) && at.Before(when):
			best, when = name, at
		}
	}
	return best, why
}

// startsAt asks a cluster when a job would start there.
func (s slurmCaller) startsAt(name, own string, job *Entry) (time.Time, error) {
	p := s.slurmNamed(name)
	if p == nil {
		return job.Starts(s.at(name, own))
	}
	if why := s.ownSlurm(name); why != "" {
		return time.Time{}, errors.New(why)
	}
	switch {
	case job.Refuse != "":
		return time.Time{}, errors.New(job.Refuse)
	case s.Prog == "salloc":
		return time.Time{}, errForecast
	}
	said := firstBytes{max: maxSlurmWords}
	c := slurmCall{
		peer:  p,
		words: append([]string{"--test-only"}, job.Words...),
		env:   []string{"TZ=UTC0", "SLURM_TIME_FORMAT=standard"},
		in:    bytes.NewReader(job.Script),
		out:   io.Discard,
		errs:  &said,
		limit: slurmTestTime,
		here:  true,
	}
	code, err := s.runSlurm(&c)
	if err != nil {
		return time.Time{}, err
	}
	return readForecast(name, said.kept.String(), code)
}

// readForecast reads the line that --test-only prints.
func readForecast(name, text string, code int) (time.Time, error) {
	if _, rest, ok := strings.Cut(text, " to start at "); ok && code == 0 {
		stamp, _, _ := strings.Cut(rest, " ")
		if at, err := time.Parse("2006-01-02T15:04:05", stamp); err == nil {
			return at, nil
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return time.Time{}, refusal(fmt.Sprintf("cluster %s: %s", name, Plain(lines[len(lines)-1])))
}

// refusal is why a cluster does not take a job, in its words.
type refusal string

// Error returns the words.
func (r refusal) Error() string { return string(r) }

// Plain replaces the control characters of a text by question marks.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}

// submitSlurm runs the command at a Slurm, and returns its exit code.
func (s slurmCaller) submitSlurm(p *api.PeerInfo, job *Entry) int {
	why := s.ownSlurm(p.Name)
	if why == "" {
		why = job.Refuse
	}
	if why != "" {
		return s.Fail("%s", why)
	}
	c := slurmCall{peer: p, words: job.Words, in: s.Stdin, out: s.Stdout, errs: s.Stderr, here: true}
	if job.Script != nil {
		c.in = bytes.NewReader(job.Script)
	}
	if s.Prog != "sbatch" {
		return s.callSlurm(&c)
	}
	named := &namedJobs{to: s.Stdout, cluster: p.Name}
	c.out = named
	code := s.callSlurm(&c)
	named.flush()
	return code
}

// namedJobs adds the cluster to the line of a submitted job, as sbatch -M prints it.
type namedJobs struct {
	to      io.Writer
	cluster string
	line    []byte
}

// maxJobLine bounds the lines that may be of a submitted job, in bytes.
const maxJobLine = 256

// Write passes b on line by line.
func (w *namedJobs) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if w.line = append(w.line, b...); len(w.line) > maxJobLine {
				w.flush()
			}
			return n, nil
		}
		w.line = append(w.line, b[:i]...)
		w.line = append(w.line, w.suffix(string(w.line))+"\n"...)
		w.flush()
		b = b[i+1:]
	}
	return n, nil
}

// suffix is what names the cluster behind a line.
func (w *namedJobs) suffix(line string) string {
	isNumber := func(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
	id, ok := strings.CutPrefix(line, "Submitted batch job ")
	switch {
	case ok && isNumber(id):
		return " on cluster " + w.cluster
	case isNumber(line):
		return ";" + w.cluster
	}
	return ""
}

// flush writes what is kept.
func (w *namedJobs) flush() {
	_, _ = w.to.Write(w.line)
	w.line = nil
}
