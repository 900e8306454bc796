package preview

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
)

// section is a titled list of rows.
type section struct {
	title string
	intro string
	rows  [][]string
}

// sections lays out the report for both forms of output.
func (r *Report) sections() []section {
	out := []section{{title: "Size", rows: r.Size.rows()}}
	lost := section{title: fmt.Sprintf("Lost in muster (%d)", r.Lost),
		intro: "These have no effect in muster, and nothing replaces them by itself."}
	for _, list := range r.lists() {
		lost.rows = append(lost.rows, rowsOf(list, Lost, true)...)
	}
	if r.Lost == 0 {
		lost.intro = "Nothing was found that would be lost."
	}
	out = append(out, lost)
	add := func(title, intro string, rows [][]string) {
		if len(rows) > 0 {
			out = append(out, section{fmt.Sprintf("%s (%d)", title, len(rows)), intro, rows})
		}
	}
	add("Settings with a different effect", "Read each note. Then remove the line or use the alternative.",
		rowsOf(r.Settings, Different, false))
	add("Settings that muster does not need", "No action: the lines may stay or go.", grouped(r.Settings))
	if names := namesOf(r.Settings); names != "" {
		out = append(out, section{"Settings that muster adopts", "No action: keep the lines.", [][]string{{names}}})
	}
	add("Plugins and programs", "", slices.Concat(rowsOf(r.Plugins, Adopted, true),
		rowsOf(r.Plugins, Different, true), rowsOf(r.Plugins, Needless, true)))
	out = append(out, r.Database.section())
	uses := slices.Concat(rowsOf(r.Programs, Works, true), rowsOf(r.Programs, Different, true),
		rowsOf(r.Programs, Needless, true))
	add("Commands, exporters and portals in crontabs, units and PAM",
		"The search does not read scripts that these files call.", uses)
	var unread [][]string
	for _, text := range r.Unread {
		unread = append(unread, []string{cluster.PlainLine(text)})
	}
	add("Not read", "The report lacks what these would show.", unread)
	return append(out, section{title: "Next steps", rows: [][]string{
		{"1. muster config diff DIR", "compare the configuration with the active one; then muster config apply DIR"},
		{"2. muster adopt import --dry-run DUMP", "check a dump of the database; then import it"},
		{"3. muster adopt queue --dry-run", "list the pending jobs that muster can take over"},
	}})
}

// rows are the lines about the size.
func (z *Size) rows() [][]string {
	nodes := fmt.Sprintf("%d, with %d CPUs and %.0f GB of memory", z.Nodes, z.CPUs, float64(z.MemoryMB)/1024)
	if len(z.States) > 0 {
		nodes += "; " + counted(z.States)
	}
	gpus := 0
	for _, n := range z.GPUs {
		gpus += n
	}
	text := fmt.Sprint(gpus)
	if gpus > 0 {
		text += ": " + counted(z.GPUs)
	}
	out := [][]string{{"nodes", nodes}, {"GPUs", text},
		{"partitions", fmt.Sprintf("%d: %s", len(z.Partitions), strings.Join(z.Partitions, " "))}}
	if z.Jobs != nil {
		jobs := "none"
		if len(z.Jobs) > 0 {
			jobs = counted(z.Jobs) + " (pending tasks of an array count once)"
		}
		out = append(out, []string{"jobs", jobs})
	}
	for _, row := range out {
		row[1] = cluster.PlainLine(row[1])
	}
	return out
}

// counted prints counts, the largest first.
func counted(counts map[string]int) string {
	var parts []string
	for _, k := range sortedKeys(counts) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[k], k))
	}
	return strings.Join(parts, ", ")
}

// section prints what of the database is imported.
func (d *Database) section() section {
	out := section{title: "Accounts and history"}
	if len(d.Counts) > 0 {
		out.rows = append(out.rows, []string{"found", counted(d.Counts)})
	}
	estimate := fmt.Sprintf("%d jobs per second, and %d bytes of disk per job on each server; "+
		"muster adopt import --dry-run DUMP counts the jobs", jobsPerSecond, bytesPerJob)
	if d.JobIDs > 0 {
		estimate = fmt.Sprintf("for at most %d jobs, the job IDs given out so far: %s, and %s of disk on each server",
			d.JobIDs, duration(d.Seconds), bytesText(d.Bytes))
	}
	out.rows = append(out.rows, []string{"estimate", estimate})
	for _, it := range d.Parts {
		if it.Verdict != Lost {
			out.rows = append(out.rows, cells(it, true))
		}
	}
	return out
}

func duration(seconds float64) time.Duration {
	return time.Duration(max(seconds, 1) * float64(time.Second)).Round(time.Second)
}

func bytesText(n int64) string {
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// rowsOf returns the rows of the items with a verdict.
func rowsOf(list []Item, v Verdict, action bool) (out [][]string) {
	for _, it := range list {
		if it.Verdict == v {
			out = append(out, cells(it, action))
		}
	}
	return out
}

// cells returns the columns of an item.
func cells(it Item, action bool) []string {
	name := it.Name
	if it.Value != "" {
		name += "=" + it.Value
	}
	text := it.How
	if action && it.Action != noAction || text == "" {
		text = strings.TrimPrefix(text+"; "+it.Action, "; ")
	}
	if it.Where != "" {
		text += " (" + it.Where + ")"
	}
	return []string{cluster.PlainLine(strings.TrimSpace(name)), cluster.PlainLine(text)}
}

// grouped joins the settings that are not needed by their reason.
func grouped(list []Item) (out [][]string) {
	names, order := map[string][]string{}, []string{}
	for _, it := range list {
		if it.Verdict != Needless {
			continue
		}
		if _, known := names[it.How]; !known {
			order = append(order, it.How)
		}
		if !slices.Contains(names[it.How], it.Name) {
			names[it.How] = append(names[it.How], it.Name)
		}
	}
	for _, how := range order {
		out = append(out, []string{cluster.PlainLine(strings.Join(names[how], " ")), cluster.PlainLine(how)})
	}
	return out
}

// namesOf joins the names of the adopted settings.
func namesOf(list []Item) string {
	names := map[string]bool{}
	for _, it := range list {
		if it.Verdict == Adopted {
			names[it.Name] = true
		}
	}
	return cluster.PlainLine(strings.Join(slices.Sorted(maps.Keys(names)), " "))
}

// title is the first line.
func (r *Report) title() string {
	text := "Slurm"
	if r.Release != "" {
		text += " " + r.Release
	}
	if r.Cluster != "" {
		text = "Cluster " + r.Cluster + ", " + text
	}
	return cluster.PlainLine(text + ", read from " + r.Source)
}

// width is where the text of a row is broken.
const width = 100

// Print writes the report as text.
func (r *Report) Print(w io.Writer) error {
	var t strings.Builder
	fmt.Fprintln(&t, r.title())
	for _, s := range r.sections() {
		fmt.Fprintf(&t, "\n%s\n", s.title)
		if s.intro != "" {
			fmt.Fprintf(&t, "  %s\n", s.intro)
		}
		for _, row := range s.rows {
			printRow(&t, row)
		}
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// printRow writes a row with its text broken into lines; a long name has a line of its own.
func printRow(w io.Writer, row []string) {
	const nameWidth = 30
	if len(row) == 1 {
		for _, line := range wrap(row[0], width) {
			fmt.Fprintf(w, "  %s\n", line)
		}
		return
	}
	name := row[0]
	if names := wrap(name, nameWidth); len([]rune(names[len(names)-1])) > nameWidth || len(names) > 1 {
		for _, line := range wrap(name, width) {
			fmt.Fprintf(w, "  %s\n", line)
		}
		name = ""
	}
	for _, line := range wrap(row[1], width-nameWidth) {
		fmt.Fprintf(w, "  %-*s %s\n", nameWidth, name, line)
		name = ""
	}
}

// wrap breaks a text between words.
func wrap(text string, width int) (lines []string) {
	line := ""
	for w := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+w, " ")
	}
	return append(lines, line)
}
