package show

import (
	"bufio"
	"cmp"
	"fmt"
	"strings"

	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// lastWords are the values that the options of a line, and its variables, were given last, by their long names.
func lastWords[T any](s *front.Sys, prog opt.Prog, rows []opt.Option[T], argv []string) map[string]string {
	p := &opt.Parser[T]{Prog: prog, Permute: true, Rows: [][]opt.Option[T]{rows}}
	found, _, _ := p.Parse(argv) // it was read before without errors
	words := map[string]string{}
	for _, f := range append(p.Env(s.LookupEnv), found...) {
		words[f.Row.Long] = f.Value
	}
	return words
}

// asked is what squeue -v tells of its options.
func (o *queueOptions) asked(s *front.Sys, argv []string) []front.Asked {
	given := lastWords(s, opt.Squeue, SqueueOptions, argv)
	word := func(name, long string) front.Asked { return front.Asked{Name: name, Value: front.Null(given[long])} }
	_, byJob := given["jobs"]
	if o.start { // which stands for these
		given["format"] = cmp.Or(given["format"], queueStartFormat)
		given["sort"] = cmp.Or(given["sort"], "S")
		given["states"] = cmp.Or(given["states"], "PD")
	}
	given["jobs"] = o.jobText
	given["steps"] = o.stepText
	return []front.Asked{
		front.AskedBool("all        ", o.hidden), front.AskedBool("array      ", o.perTask),
		front.AskedBool("federation ", o.fed.Federation),
		word("format     ", "format"),
		front.AskedCount("iterate    ", int(o.every.Seconds())), front.AskedCount("job_flag   ", front.BoolInt(byJob)),
		word("jobs       ", "jobs"), word("licenses   ", "licenses"),
		front.AskedBool("local      ", o.fed.Local), word("names      ", "name"),
		{Name: "nodes      ", Value: given["nodelist"]}, word("partitions ", "partition"),
		front.AskedBool("priority   ", o.perPart), word("reservation", "reservation"),
		front.AskedBool("sibling     ", o.fed.Sibling), // a column wider, as Slurm's
		word("sort       ", "sort"),
		front.AskedCount("start_flag ", front.BoolInt(o.start)), word("states     ", "states"),
		front.AskedCount("step_flag  ", front.BoolInt(o.steps)), word("steps      ", "steps"),
		word("users      ", "user"),
		front.AskedCount("verbose    ", s.Verbose),
	}
}

// tellRecords tells with -v of when the answer is, and how many records it has.
func (o *queueOptions) tellRecords(v *View, out *bufio.Writer, n int) {
	if v.Sys.Tells(front.Told) && !o.data.On {
		fmt.Fprintf(out, "%s\nlast_update_time=%d records=%d\n",
			v.Now.Local().Format("Mon Jan 02 15:04:05 2006"), v.Now.Unix(), n)
	}
}

// asked is what sinfo -v tells of its options.
func (o *infoOptions) asked(s *front.Sys, argv []string) []front.Asked {
	given := lastWords(s, opt.Sinfo, SinfoOptions, argv)
	word := func(name, long string) front.Asked { return front.Asked{Name: name, Value: front.Null(given[long])} }
	na := func(name, list string) front.Asked {
		return front.Asked{Name: name, Value: front.Choose(list == "", "n/a", list)}
	}
	return []front.Asked{
		front.AskedBool("dead       ", o.dead), front.AskedCount("exact      ", front.BoolInt(o.exact)),
		word("format     ", "format"), front.AskedCount("iterate    ", int(o.every.Seconds())),
		front.AskedBool("long       ", o.wide), front.AskedBool("no_header  ", o.noHeader),
		front.AskedBool("node_format", o.perNode), na("nodes      ", given["nodes"]),
		na("partition  ", strings.Join(o.parts, ",")), front.AskedBool("responding ", o.responding),
		word("states     ", "states"), word("sort       ", "sort"), front.AskedBool("summarize  ", o.summary),
		front.AskedCount("verbose    ", s.Verbose),
	}
}
