package cli

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/telemetry"
)

// samplesOptions is what the line of muster samples asks for.
type samplesOptions struct {
	What  string // a job, or with Nodes a node
	Node  string
	CSV   bool
	Since time.Duration
}

// runSamples prints what a job did on its nodes, or a node, and their GPUs (muster samples JOB|NODE): a
// line for each time and GPU. It returns the exit code.
func runSamples(sys *front.Sys, o samplesOptions) int {
	q := api.SamplesQuery{Job: o.What, Node: cluster.NodeName(o.Node)}
	if o.Since > 0 {
		q.Since = time.Now().Add(-o.Since)
	}
	if o.What != "" && (o.What[0] < '0' || o.What[0] > '9') { // jobs have numbers
		if q.Job, q.Node = "", cluster.NodeName(o.What); o.Since == 0 {
			q.Since = time.Now().Add(-24 * time.Hour)
		}
	}
	resp, err := front.Call(sys, api.ShowSamples, q)
	if err != nil {
		return sys.Fail("%s", err.Error())
	}
	out := bufio.NewWriterSize(sys.Stdout, 1<<16)
	defer out.Flush()
	kinds := map[bool]telemetry.Kind{true: telemetry.OfJob, false: telemetry.OfNode}
	rows := sampleRows(kinds[q.Job != ""], resp.Samples)
	if len(rows) == 1 {
		fmt.Fprintf(sys.Stderr, "%s: there are no samples of %s: it ran for less than a minute, "+
			"or on nodes that have none, or it is long ago\n", sys.Prog, o.What)
		return 0
	}
	printRows(out, rows, o.CSV)
	if resp.More {
		fmt.Fprintf(sys.Stderr, "%s: there is more: name one node by --node, or a shorter time by --since\n", sys.Prog)
	}
	return 0
}

// sampleRows are the lines, the first with the names of what is measured.
func sampleRows(kind telemetry.Kind, list []api.NodeSample) [][]string {
	head := []string{"time", "seconds", "node"}
	for _, f := range kind.Fields() {
		head = append(head, f.Name)
	}
	head = append(head, "gpu")
	for _, f := range telemetry.GPUFields {
		head = append(head, "gpu_"+f.Name)
	}
	rows := [][]string{head}
	for i := range list {
		s, err := telemetry.Unpack(list[i].Data)
		if err != nil {
			continue
		}
		row := []string{time.Unix(list[i].At, 0).Format("2006-01-02T15:04:05"),
			strconv.Itoa(list[i].Span), string(list[i].Node)}
		for _, v := range s.Own {
			row = append(row, sampleText(v))
		}
		if len(s.GPUs) == 0 {
			rows = append(rows, append(row, make([]string, len(telemetry.GPUFields)+1)...))
		}
		for _, g := range s.GPUs {
			line := append(row[:len(row):len(row)], strconv.Itoa(g.Index))
			for _, v := range g.Values {
				line = append(line, sampleText(v))
			}
			rows = append(rows, line)
		}
	}
	return rows
}

func sampleText(v float64) string {
	if v < 0 {
		return ""
	}
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// printRows prints a table; for people without the columns in which nothing is.
func printRows(out *bufio.Writer, rows [][]string, csv bool) {
	if csv {
		for _, r := range rows {
			for i := range r {
				r[i] = csvCell(i, r[i])
			}
			out.WriteString(strings.Join(r, ",") + "\n")
		}
		return
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows[1:] {
		for i, cell := range r {
			if cell != "" {
				widths[i] = max(widths[i], len(cell), len(rows[0][i]))
			}
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, cell := range r {
			if widths[i] > 0 {
				fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
