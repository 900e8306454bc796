package submit

import (
	"strconv"
	"strings"

	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// The options of #PBS and #BSUB lines that sbatch understands, as getopt strings: a
// colon follows what takes an argument. What has no counterpart is read over.
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
	return &opt.UsageError{Code: opt.CodeError, Lines: []string{"sbatch: " + text, "sbatch: error: Unrecognized command line parameter ?"}}
}

// setForeign sets an option by its long name unless it is set already.
func (r *Request) setForeign(long, value string) error {
	if r.From(long) != NotGiven {
		return nil
	}
	row := ParserFor(opt.Sbatch).Row(long)
	return r.apply([]opt.Found[Request]{{Row: row, Value: value, Given: true}}, FromDirective)
}

func (r *Request) pbsOption(c byte, v string) error {
	switch c {
	case 'a':
		return r.setForeign("begin", v)
	case 'A':
		return r.setForeign("account", v)
	case 'e':
		return r.setForeign("error", pbsPath(v))
	case 'h':
		return r.setForeign("hold", "")
	case 'J', 't':
		return r.setForeign("array", v)
	case 'l':
		return r.pbsResources(v)
	case 'm':
		return r.pbsMail(v)
	case 'M':
		return r.setForeign("mail-user", v)
	case 'N':
		return r.setForeign("job-name", v)
	case 'o':
		return r.setForeign("output", pbsPath(v))
	case 'p':
		return r.setForeign("nice", v)
	case 'q':
		return r.setForeign("partition", v)
	case 'r':
		if v == "n" || v == "N" {
			return r.setForeign("no-requeue", "")
		}
		return r.setForeign("requeue", "")
	case 'v':
		return r.setForeign("export", v)
	}
	return nil
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
		var err error
		switch name {
		case "nodes", "select":
			err = r.pbsNodes(value)
		case "walltime", "cput":
			if name == "walltime" || r.From("time") == NotGiven {
				err = r.setForeign("time", value)
			}
		case "mem":
			err = r.setForeign("mem", value)
		case "pmem":
			err = r.setForeign("mem-per-cpu", value)
		case "ncpus":
			err = r.setForeign("mincpus", value)
		case "mppdepth":
			err = r.setForeign("cpus-per-task", value)
		case "mppwidth", "procs":
			err = r.setForeign("ntasks", value)
		case "mppnppn":
			err = r.setForeign("ntasks-per-node", value)
		case "file":
			err = r.setForeign("tmp", value)
		case "nice":
			err = r.setForeign("nice", value)
		case "naccelerators", "ngpus", "gpus":
			err = r.setForeign("gres", "gpu:"+value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pbsPart is the option that a part of nodes stands for, "" for none.
func pbsPart(name string) string {
	switch name {
	case "ppn", "mpiprocs":
		return "ntasks-per-node"
	case "ncpus":
		return "mincpus"
	case "gpus", "ngpus":
		return "gres"
	}
	return ""
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
				given[pbsPart(name)] = addedTo(given[pbsPart(name)], value)
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

func (r *Request) bsubOption(c byte, v string) error {
	switch c {
	case 'c', 'W':
		return r.setForeign("time", v)
	case 'e':
		return r.setForeign("error", v)
	case 'J':
		return r.setForeign("job-name", v)
	case 'm':
		return r.setForeign("nodelist", strings.ReplaceAll(v, " ", ","))
	case 'M': // kilobytes
		if kb, ok := values.Digits(v); ok {
			v = strconv.FormatInt((kb+1023)/1024, 10)
		}
		return r.setForeign("mem-per-cpu", v)
	case 'n':
		return r.setForeign("ntasks", v)
	case 'o':
		return r.setForeign("output", v)
	case 'q':
		return r.setForeign("partition", v)
	case 'x':
		return r.setForeign("exclusive", "")
	}
	return nil
}
