// Package replay runs recorded workloads through schedulers in virtual time: `muster sim`. Traces are files of
// the Standard Workload Format or tables with commas; schedulers are the textbook's and muster's own.
package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Job is one submission of a trace. Times are in seconds from the trace's beginning.
type Job struct {
	ID                 string
	Submit             int64
	Run                int64 // what it really takes, at most Limit
	Limit              int64
	Nodes              int // 0: as few as possible
	CPUs, GPUs         int // over the whole job
	MemMB              int64
	User, Group        string
	Partition, GPUType string
	GPUMilli           int // share of one GPU in thousandths; 1000 is a whole one
}

// whole is a GPU in the parts of which jobs ask for some.
const whole = 1000

// share is what the job uses of each of its GPUs, in thousandths. The textbook's policies know whole ones only.
func (j *Job) share() int {
	if j.GPUs == 1 && j.GPUMilli > 0 {
		return min(j.GPUMilli, whole)
	}
	return whole
}

// Node is a machine of the trace's cluster.
type Node struct {
	Name       string
	CPUs, GPUs int
	MemMB      int64
	GPUType    string
	Partition  string // empty: of the one without a name
	Switch     string
}

// Trace is a workload and the cluster that it runs on. Jobs are in order of submission.
type Trace struct {
	Jobs  []Job
	Nodes []Node
	Left  []Left
}

// maxNodes is how many nodes a cluster has at most.
const maxNodes = 100_000

// Left is a number of entries that cannot be replayed, and why.
type Left struct {
	Count int
	Why   string
}

func (l Left) String() string { return fmt.Sprintf("%d %s", l.Count, l.Why) }

// units is how much of the scarce thing, GPUs if there are any, a job wants or a node has.
func (t *Trace) units() (job func(*Job) int, node func(*Node) int) {
	if t.scarce() == "GPUs" {
		return func(j *Job) int { return j.GPUs }, func(n *Node) int { return n.GPUs }
	}
	return func(j *Job) int { return j.CPUs }, func(n *Node) int { return n.CPUs }
}

// scarce names that thing.
func (t *Trace) scarce() string {
	if slices.ContainsFunc(t.Nodes, func(n Node) bool { return n.GPUs > 0 }) {
		return "GPUs"
	}
	return "CPUs"
}

// open reads a file, unpacking it if it begins as gzip does, whatever its name.
func open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(f)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
		}
		in = bufio.NewReader(z)
	}
	switch mark, _ := in.Peek(3); { // of the order of bytes, as some editors write it
	case bytes.Equal(mark, []byte("\ufeff")):
		_, _ = in.Discard(len(mark))
	case bytes.HasPrefix(mark, []byte("\xff\xfe")), bytes.HasPrefix(mark, []byte("\xfe\xff")):
		return nil, errors.Join(fmt.Errorf("%s is in UTF-16: save it as UTF-8", path), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{in, f}, nil
}

// Load reads a trace: SWF by the ending .swf, else a table with a header line (README of the format: job_id,
// submit, nodes, cpus, gpus, mem_mb, walltime, runtime, user, group, partition, gpu_type, gpu_milli). A table
// needs a table of nodes; SWF takes its machine from MaxProcs unless nodes are given. Changes are made to each job
// that is read, before any is left out.
func Load(path, nodes string, changes ...func(*Job)) (*Trace, error) {
	t := &Trace{}
	if err := t.nodeTable(nodes); err != nil {
		return nil, err
	}
	var err error
	if base := strings.TrimSuffix(strings.ToLower(path), ".gz"); strings.HasSuffix(base, ".swf") {
		err = t.swf(path)
	} else if nodes == "" {
		return nil, fmt.Errorf("%s: a table of jobs needs one of nodes: give --nodes FILE (a log in SWF has a "+
			"name that ends in .swf or .swf.gz)",
			path)
	} else {
		err = table(path, t.addJob, "job_id", "submit", "walltime", "runtime", "cpus or gpus")
	}
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		for i := range t.Jobs {
			change(&t.Jobs[i])
		}
	}
	t.clean()
	if len(t.Jobs) == 0 {
		return nil, fmt.Errorf("%s: no job that could run; its entries: %s", path, t.without())
	}
	return t, nil
}

// LimitByRun has a job without a limit ask for what it took.
func LimitByRun(j *Job) {
	if j.Limit <= 0 {
		j.Limit = j.Run
	}
}

// swf reads the Standard Workload Format (D. Feitelson, Parallel Workloads Archive): header lines begin with ;,
// the others have 18 numbers.
func (t *Trace) swf(path string) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sizes := map[string]int{}
	in := bufio.NewScanner(f)
	in.Buffer(nil, longestLine)
	line := 1
	for ; in.Scan(); line++ {
		text := strings.TrimSpace(in.Text())
		if rest, ok := strings.CutPrefix(text, ";"); ok && len(t.Nodes) == 0 {
			err = header(sizes, rest)
		} else if !ok && text != "" {
			err = t.swfLine(strings.Fields(text))
		}
		if err != nil {
			if !in.Scan() && in.Err() != nil { // the line is what there is of it
				err = in.Err()
			}
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: a line has more than %d bytes: a log in SWF has 18 numbers a line, and a "+
			"newline behind each",
			path, line, longestLine)
	} else if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	procs := cmp.Or(max(sizes["MaxProcs"], 0), max(sizes["MaxNodes"], 0))
	if len(t.Nodes) == 0 {
		if procs == 0 {
			return fmt.Errorf("%s: the header says neither MaxProcs nor MaxNodes: give --nodes FILE", path)
		}
		t.Nodes = []Node{{Name: "machine", CPUs: procs}}
	}
	return nil
}

// longestLine is how many bytes a line of a log in SWF has at most.
const longestLine = 1 << 20

// header notes the size of the machine, if a line of the header tells it, by its name.
func header(sizes map[string]int, text string) error {
	name, value, ok := strings.Cut(text, ":")
	if name = strings.TrimSpace(name); !ok || name != "MaxProcs" && name != "MaxNodes" {
		return nil
	}
	n, err := headerSize(value)
	if err != nil {
		return fmt.Errorf("%s is %q, want a number: correct it, or give --nodes FILE", name, strings.TrimSpace(value))
	}
	if before, ok := sizes[name]; ok && before != n {
		return fmt.Errorf("%s is %d here and was %d before: correct it, or give --nodes FILE", name, n, before)
	}
	sizes[name] = n
	return nil
}

// swfLine reads the columns of a job.
func (t *Trace) swfLine(words []string) error {
	if len(words) < 13 {
		return fmt.Errorf("%d columns, SWF has 18", len(words))
	}
	num := make([]int64, len(words))
	for i, w := range words {
		v, err := strconv.ParseFloat(w, 64) // some logs have fractions
		if strings.Trim(w, "0123456789+-.eE") != "" || err != nil {
			return fmt.Errorf("column %d is %.40q, want a number", i+1, w)
		}
		if math.Abs(v) > largest {
			return fmt.Errorf("column %d is %.40q: that is too large, %d is the most", i+1, w, int64(largest))
		}
		num[i] = int64(v)
	}
	size := num[7]
	if size <= 0 {
		size = num[4]
	}
	t.Jobs = append(t.Jobs, Job{ID: words[0], Submit: num[1], Run: num[3], Limit: num[8], CPUs: int(size),
		User: words[11], Group: words[12], GPUMilli: 1000})
	return nil
}

// largest is the most that a number of a log may be: sums of so many seconds are still exact.
const largest = 1 << 40

// headerSize reads the first number of a header's value: 1024, 1,024 or 1024 (512 of 2).
func headerSize(value string) (int, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(value, "\t", " ")), " ")
	return strconv.Atoi(strings.ReplaceAll(first, ",", ""))
}

// record is one line of a table, by column.
type record struct {
	where string
	at    map[string]int
	cells []string
}

func (r record) text(column string) string {
	if i, ok := r.at[column]; ok {
		return strings.TrimSpace(r.cells[i])
	}
	return ""
}

func (r record) number(column string) (int64, error) {
	s := r.text(column)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && (n > largest || n < -largest):
		return 0, fmt.Errorf("%s: %s is %q: that is too large, %d is the most", r.where, column, s, int64(largest))
	case err != nil:
		return 0, fmt.Errorf("%s: %s is %q, want a whole number", r.where, column, s)
	}
	return n, nil
}

// numbers fills each place with its column.
func (r record) numbers(columns map[string]any) error {
	for name, to := range columns {
		n, err := r.number(name)
		if err != nil {
			return err
		}
		switch to := to.(type) {
		case *int64:
			*to = n
		case *int:
			*to = int(n)
		}
	}
	return nil
}

// table reads a file of comma-separated values with a header; lines that begin with # are comments. It must have
// the needed columns; of "a or b" one.
func table(path string, each func(record) error, needed ...string) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := csv.NewReader(f)
	in.Comment, in.FieldsPerRecord = '#', -1
	var at map[string]int
	for {
		cells, err := in.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		row, _ := in.FieldPos(0)
		where := fmt.Sprintf("%s:%d", path, row)
		first := strings.TrimSpace(cells[0])
		switch {
		case first == "" && len(cells) == 1, strings.HasPrefix(first, "#"):
			continue
		case at == nil:
			if at, err = columns(cells, needed); err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
		case len(cells) != len(at):
			if _, rest := in.Read(); errors.Is(rest, io.ErrUnexpectedEOF) { // the line is what there is of it
				return fmt.Errorf("%s: %w", where, rest)
			}
			return fmt.Errorf("%s: %d values, the header has %d columns", where, len(cells), len(at))
		default:
			if err := each(record{where, at, cells}); err != nil {
				return err
			}
		}
	}
}

// columns tells where each column of a header is. It must have the needed ones; of "a or b" one.
func columns(cells, needed []string) (map[string]int, error) {
	at := map[string]int{}
	for i, name := range cells {
		name = strings.TrimSpace(name)
		if _, twice := at[name]; twice {
			return nil, fmt.Errorf("two columns %q", name)
		}
		at[name] = i
	}
	for _, name := range needed {
		if !slices.ContainsFunc(strings.Split(name, " or "), func(s string) bool { _, ok := at[s]; return ok }) {
			return nil, fmt.Errorf("no column %s; there are %s", name, strings.Join(cells, ","))
		}
	}
	return at, nil
}

func (t *Trace) addJob(r record) error {
	j := Job{
		ID: r.text("job_id"), User: r.text("user"), Group: r.text("group"), Partition: r.text("partition"),
		GPUType: r.text("gpu_type"),
	}
	if j.ID == "" {
		return fmt.Errorf("%s: no job_id", r.where)
	}
	if strings.ContainsAny(j.ID, "\r\n") {
		return fmt.Errorf("%s: job_id %q goes over several lines", r.where, j.ID)
	}
	err := r.numbers(map[string]any{"submit": &j.Submit, "nodes": &j.Nodes, "cpus": &j.CPUs,
		"gpus": &j.GPUs, "mem_mb": &j.MemMB,
		"walltime": &j.Limit, "runtime": &j.Run, "gpu_milli": &j.GPUMilli})
	if err == nil && j.Nodes < 0 {
		err = fmt.Errorf("%s: nodes is %d, want how many, or 0 for as few as possible", r.where, j.Nodes)
	}
	t.Jobs = append(t.Jobs, j)
	return err
}

// nodeTable reads the nodes of a file, if one is named.
func (t *Trace) nodeTable(path string) error {
	if path == "" {
		return nil
	}
	named := map[string]bool{}
	if err := table(path, func(r record) error { return t.addNodes(r, named) }, "name", "cpus or gpus"); err != nil {
		return err
	}
	if len(t.Nodes) == 0 {
		return fmt.Errorf("%s: no node: want a header with name, count, cpus, gpus, mem_mb, gpu_type, "+
			"partition, switch and a line for each kind",
			path)
	}
	return nil
}

// addNodes adds the nodes of a line, whose names are not among those before.
func (t *Trace) addNodes(r record, named map[string]bool) error {
	n := Node{
		Name: r.text("name"), GPUType: r.text("gpu_type"), Partition: r.text("partition"),
		Switch: r.text("switch"),
	}
	count := 0
	if err := r.numbers(map[string]any{
		"count": &count, "cpus": &n.CPUs, "gpus": &n.GPUs, "mem_mb": &n.MemMB,
	}); err != nil {
		return err
	}
	switch {
	case n.Name == "":
		return fmt.Errorf("%s: no name", r.where)
	case strings.ContainsAny(n.Name, " :\t\r\n"):
		return fmt.Errorf("%s: name is %q: schedules say node:share, one behind the other, so names have no "+
			"blanks and colons",
			r.where, n.Name)
	case n.CPUs < 0 || n.GPUs < 0 || n.MemMB < 0:
		return fmt.Errorf("%s: node %s has %d cpus, %d gpus and %d mem_mb: none of them can be below 0",
			r.where, n.Name, n.CPUs, n.GPUs, n.MemMB)
	case count < 0 || len(t.Nodes)+count > maxNodes:
		return fmt.Errorf("%s: count is %d, want how many nodes the line is for: %d at most in all",
			r.where, count, maxNodes)
	}
	names := []string{n.Name}
	if count > 1 {
		names = names[:0]
		for i := range count {
			names = append(names, fmt.Sprintf("%s%04d", n.Name, i))
		}
	}
	for _, name := range names {
		if named[name] {
			return fmt.Errorf("%s: a second node %s", r.where, name)
		}
		one := n
		one.Name, named[name] = name, true
		t.Nodes = append(t.Nodes, one)
	}
	return nil
}
