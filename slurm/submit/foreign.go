package submit

import (
	"strconv"
	"strings"

	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// The options of #PBS and #BSUB lines that sbatch understands, as getopt strings: a
// colon follows what takes an argument. Options without a counterpart are skipped.
const (
	pbsOptions  = "a:A:c:C:e:hIj:J:k:l:m:M:N:o:p:q:r:S:t:u:v:VW:z"
	bsubOptions = "c:e:J:m:M:n:o:q:W:x"
)

// foreignDirective applies one #PBS or #BSUB line. Only options that no #SBATCH line
// gave are set.
func (r *Request) foreignDirective(text string) error {
	rest, pbs := strings.CutPrefix(text, "#PBS")
	options := pbsOptions
	if !pbs {
		rest, options = strings.TrimPrefix(text, "#BSUB"), bsubOptions
	}
	argv, _ := SplitDirective(rest)
	for len(argv) > 0 {
		word := argv[0]
		argv = argv[1:]
		if len(word) < 2 || word[0] != '-' {
			return r.fail("Invalid argument: " + word)
		}
		c := word[1]
		i := strings.IndexByte(options, c)
		if c == ':' || i < 0 {
			return badForeign("invalid option -- '" + string(c) + "'")
		}
		value := word[2:]
		if i+1 < len(options) && options[i+1] == ':' {
			if value == "" {
				if len(argv) == 0 {
					return badForeign("option requires an argument -- '" + string(c) + "'")
				}
				value, argv = argv[0], argv[1:]
			}
		} else if value != "" {
			argv = append([]string{"-" + value}, argv...)
		}
		set := r.bsubOption
		if pbs {
			set = r.pbsOption
		}
		if err := set(c, value); err != nil {
			return err
		}
	}
	return nil
}

func badForeign(text string) error {
	return &opt.UsageError{
		Code:  opt.CodeError,
		Lines: []string{"sbatch: " + text, "sbatch: error: Unrecognized command line parameter ?"},
	}
}

// setForeign sets an option by its long name unless it is set already.
func (r *Request) setForeign(long, value string) error {
	if r.From(long) != NotGiven {
		return nil
	}
	row := ParserFor(opt.Sbatch).Row(long)
	return r.apply([]opt.Found[Request]{{Row: row, Value: value, Given: true}}, FromDirective)
}

// foreignOption is what an option or a resource of another batch system is to sbatch.
type foreignOption struct {
	name  string // a letter, or a resource
	long  string // of sbatch's option
	value func(string) string
}

// pbsRows are the options that come to one of sbatch's.
var pbsRows = [...]foreignOption{
	{"a", "begin", nil},
	{"A", "account", nil},
	{"e", "error", pbsPath},
	{"h", "hold", nil},
	{"J", "array", nil},
	{"t", "array", nil},
	{"M", "mail-user", nil},
	{"N", "job-name", nil},
	{"o", "output", pbsPath},
	{"p", "nice", nil},
	{"q", "partition", nil},
	{"v", "export", nil},
}

// pbsResourceRows are the words of -l that come to one of sbatch's options.
var pbsResourceRows = [...]foreignOption{
	{"walltime", "time", nil},
	{"cput", "time", nil},
	{"mem", "mem", nil},
	{"pmem", "mem-per-cpu", nil},
	{"ncpus", "mincpus", nil},
	{"mppdepth", "cpus-per-task", nil},
	{"mppwidth", "ntasks", nil},
	{"procs", "ntasks", nil},
	{"mppnppn", "ntasks-per-node", nil},
	{"file", "tmp", nil},
	{"nice", "nice", nil},
	{"naccelerators", "gres", asGPUs},
	{"ngpus", "gres", asGPUs},
	{"gpus", "gres", asGPUs},
}

// pbsPartRows are the parts of nodes that come to one of sbatch's options.
var pbsPartRows = [...]foreignOption{
	{"ppn", "ntasks-per-node", nil},
	{"mpiprocs", "ntasks-per-node", nil},
	{"ncpus", "mincpus", nil},
	{"gpus", "gres", nil},
	{"ngpus", "gres", nil},
}

// bsubRows are LSF's options.
var bsubRows = [...]foreignOption{
	{"c", "time", nil},
	{"W", "time", nil},
	{"e", "error", nil},
	{"J", "job-name", nil},
	{"m", "nodelist", commas},
	{"M", "mem-per-cpu", megabytes},
	{"n", "ntasks", nil},
	{"o", "output", nil},
	{"q", "partition", nil},
	{"x", "exclusive", nil},
}

// foreignRow finds the row of a name.
func foreignRow(rows []foreignOption, name string) *foreignOption {
	for i := range rows {
		if rows[i].name == name {
			return &rows[i]
		}
	}
	return nil
}

// setRow sets what a name comes to; nothing where there is no row of it.
func setRow(r *Request, rows []foreignOption, name, value string) error {
	row := foreignRow(rows, name)
	if row == nil {
		return nil
	}
	if row.value != nil {
		value = row.value(value)
	}
	return r.setForeign(row.long, value)
}

func (r *Request) pbsOption(c byte, v string) error {
	switch c {
	case 'l':
		return r.pbsResources(v)
	case 'm':
		return r.pbsMail(v)
	case 'r':
		if v == "n" || v == "N" {
			return r.setForeign("no-requeue", "")
		}
		return r.setForeign("requeue", "")
	}
	return setRow(r, pbsRows[:], string(c), v)
}

func (r *Request) bsubOption(c byte, v string) error { return setRow(r, bsubRows[:], string(c), v) }

func asGPUs(v string) string { return "gpu:" + v }

func commas(v string) string { return strings.ReplaceAll(v, " ", ",") }

// megabytes rounds kilobytes up.
func megabytes(v string) string {
	kb, ok := values.Digits(v)
	if !ok {
		return v
	}
	return strconv.FormatInt((kb+1023)/1024, 10)
}

// pbsPath drops the host of HOST:PATH.
func pbsPath(v string) string {
	if _, path, ok := strings.Cut(v, ":"); ok {
		return path
	}
	return v
}

// pbsMail reads the letters a (aborted), b (begins) and e (ends), or n (none).
func (r *Request) pbsMail(v string) error {
	var types []string
	for _, m := range [...]struct{ letter, word string }{{"a", "FAIL"}, {"b", "BEGIN"}, {"e", "END"}} {
		if strings.Contains(v, m.letter) {
			types = append(types, m.word)
		}
	}
	if len(types) == 0 {
		types = append(types, "NONE")
	}
	return r.setForeign("mail-type", strings.Join(types, ","))
}

// pbsResources reads -l: a comma list of NAME=VALUE, with nodes and select in chunks.
func (r *Request) pbsResources(v string) error {
	for word := range strings.SplitSeq(v, ",") {
		name, value, _ := strings.Cut(word, "=")
		set := func() error { return setRow(r, pbsResourceRows[:], name, value) }
		if name == "nodes" || name == "select" {
			set = func() error { return r.pbsNodes(value) }
		}
		if err := set(); err != nil {
			return err
		}
	}
	return nil
}

// addedTo is the sum of two numbers, or the second text if they are none.
func addedTo(a, b string) string {
	x, first := values.Digits(a)
	y, second := values.Digits(b)
	if !first || !second {
		return b
	}
	return strconv.FormatInt(x+y, 10)
}

// pbsNodes reads chunks joined by +: COUNT or NAME, then :ppn=N, :ncpus=N, :mpiprocs=N, :gpus=[TYPE:]N and
// properties, which are read over. Numbers of several chunks are added up, as in Slurm.
func (r *Request) pbsNodes(v string) error {
	count := int64(0)
	var names []string
	given := map[string]string{}
	for chunk := range strings.SplitSeq(v, "+") {
		for k, word := range strings.Split(chunk, ":") {
			name, value, part := strings.Cut(word, "=")
			n, counted := values.Digits(name)
			switch {
			case part:
				if row := foreignRow(pbsPartRows[:], name); row != nil {
					given[row.long] = addedTo(given[row.long], value)
				}
			case k > 0: // a property
			case counted:
				count += n
			default:
				names = append(names, name)
			}
		}
	}
	given["nodelist"] = strings.Join(names, ",")
	if count > 0 {
		given["nodes"] = strconv.FormatInt(count+int64(len(names)), 10)
	}
	if n := given["gres"]; n != "" {
		given["gres"] = "gpu:" + n
	}
	for _, long := range [...]string{"nodes", "nodelist", "ntasks-per-node", "mincpus", "gres"} {
		if given[long] == "" {
			continue
		}
		if err := r.setForeign(long, given[long]); err != nil {
			return err
		}
	}
	return nil
}
