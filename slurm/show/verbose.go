package show

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dev.muster/slurm/format"
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

// mixedFormats is what --long with a format of one's own is refused with.
const mixedFormats = "fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry."

// onLine are the long names of the options that a line has, in their order.
func onLine[T any](prog opt.Prog, rows []opt.Option[T], argv []string) (names []string) {
	found, _, _ := (&opt.Parser[T]{Prog: prog, Permute: true, Rows: [][]opt.Option[T]{rows}}).Parse(argv)
	for _, f := range found {
		names = append(names, f.Row.Long)
	}
	return names
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
	text := cmp.Or(o.long, o.format)
	own := text == "" // the columns are those of the options
	if own {
		text = longFormat(o.defaultFormat(len("PARTITION"), "0"))
	}
	filters := o.dead || o.responding || o.reasons || len(o.nodes) > 0 || given["states"] != ""
	if given["states"] == "" && o.reasons {
		given["states"] = "down"
	}
	return []front.Asked{
		front.AskedBool("dead       ", o.dead), front.AskedCount("exact      ", front.BoolInt(o.exact)),
		front.AskedBool("filtering  ", filters || len(o.parts) > 0), {Name: "format     ", Value: text},
		front.AskedCount("iterate    ", int(o.every.Seconds())),
		front.AskedBool("long       ", o.wide), front.AskedBool("no_header  ", o.noHeader),
		front.AskedBool("node_field ", own && o.perNode && !o.summary),
		front.AskedBool("node_format", o.perNode), na("nodes      ", given["nodes"]),
		front.AskedBool("part_field ", own && !o.reasons),
		na("partition  ", strings.Join(o.parts, ",")), front.AskedBool("responding ", o.responding),
		word("states     ", "states"), word("sort       ", "sort"), front.AskedBool("summarize  ", o.summary),
		front.AskedCount("verbose    ", s.Verbose),
	}
}

// longFormat words a format of letters as -O takes it, each column with its width.
func longFormat(text string) string {
	var words []string
	for spec := range strings.FieldsSeq(text) {
		col := format.Find(infoColumns, spec[len(spec)-1])
		width := cmp.Or(spec[1:len(spec)-1], "0")
		words = append(words, col.Long+":"+width)
	}
	return strings.Join(words, " ,")
}

// infoFlags are what sinfo -v tells of the columns that it shows: each with the columns, or the option, that set it.
var infoFlags = [...]struct{ name, columns string }{
	{"all_flag       ", "--all"}, {"alloc_mem_flag ", "allocmem"}, {"avail_flag     ", "available"},
	{"comment_flag   ", "comment"}, {"cpus_flag      ", "cpus cpusstate"}, {"default_time_flag", "defaulttime"},
	{"disk_flag      ", "disk"}, {"extra_flag     ", "extra"}, {"features_flag  ", "features"},
	{"features_flag_act", "features_act"}, {"groups_flag    ", "groups"}, {"gres_flag      ", "gres"},
	{"gres_used_flag ", "gresused"}, {"job_size_flag  ", "size"}, {"max_time_flag  ", "time"},
	{"memory_flag    ", "memory"}, {"partition_flag ", "partition partitionname"}, {"port_flag      ", "port"},
	{"priority_job_factor_flag  ", "priorityjobfactor"}, {"priority_tier_flag  ", "prioritytier"},
	{"reason_flag    ", "reason"}, {"reason_timestamp_flag", "timestamp"}, {"reason_user_flag", "user userlong"},
	{"reservation_flag", "--reservation"}, {"root_flag      ", "root"}, {"oversubscribe_flag     ", "oversubscribe"},
	{"state_flag     ", "statecompact statelong"}, {"statecomplete_flag", "statecomplete"},
	{"weight_flag    ", "weight"},
}

// shown is what sinfo -v tells of its columns.
func (o *infoOptions) shown(s *front.Sys, argv []string) (list []front.Asked) {
	f, _ := o.infoFormat(nil)
	given := lastWords(s, opt.Sinfo, SinfoOptions, argv)
	has := map[string]bool{"--all": o.hidden || given["partition"] != "", "--reservation": o.reservations}
	for _, col := range f.Columns() {
		for name := range strings.FieldsSeq(col.Long) {
			has[name] = true
		}
	}
	for _, row := range infoFlags {
		on := slices.ContainsFunc(strings.Fields(row.columns), func(c string) bool { return has[c] })
		line := front.AskedBool(row.name, on)
		line.Close = row.name == "default_time_flag"
		list = append(list, line)
	}
	return list
}
