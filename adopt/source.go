// Package adopt reads what a Slurm cluster leaves behind, and makes records of it that muster's history keeps: jobs and
// steps of the accounting database, as a dump has it. It only reads and maps; how the records get into a cluster is
// the caller's. Begin with Open, which looks through a dump, then Runs, which yields its jobs.
package adopt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dev.muster/adopt/dump"
)

// schemas are the versions of Slurm's database that are known, in convert_version_table: of 22.05 up to 26.05.
const (
	oldestSchema = 12
	newestSchema = 16
)

// Source is a dump of Slurm's accounting database, looked through once.
type Source struct {
	Cluster  string
	Clusters []string // all that the database has
	Release  int      // 2205, 2605
	Mark     string   // tells it from other dumps
	Jobs     int64    // rows
	Steps    int64
	Highest  uint32 // number of a job
	Size     int64  // of the plain text
	// Names knows users and groups that the database has by number only; nil: none.
	Names *Names

	all     *dump.Contents
	jobs    *dump.Table
	steps   *dump.Table
	schema  int
	tres    map[string]string // names by number
	qos     map[string]string
	owns    map[string]*own
	own     *own
	reasons []string

	accounting accounting
}

// own is what the first pass finds in the tables of one cluster.
type own struct {
	users   map[string]string // of associations, by number
	resvs   map[string]string
	highest uint32
	newest  uint64 // when a job changed last
	// accounts are those of associations of accounts, by number.
	accounts map[string]string
	resvRows []*resvRow
	assocs   []*assocRow
	keys     []*keyRow
}

// Open looks through a dump. cluster chooses one of the clusters of the database; "" takes the only one. tell hears how
// many bytes are read.
func Open(file *dump.File, cluster string, tell func(int64)) (*Source, error) {
	s := &Source{Cluster: strings.ToLower(cluster), tres: map[string]string{}, qos: map[string]string{},
		owns: map[string]*own{}, accounting: accounting{coords: map[string][]string{},
			columns: map[*dump.Table]columns{}, lists: map[string]string{}}}
	wanted := func(t *dump.Table) bool { return s.visitor(t.Name) != nil || s.collector(t.Name) != nil }
	all, err := dump.Scan(file, wanted, s.look, tell)
	if err != nil {
		return nil, err
	}
	s.all = all
	s.Size = all.Size
	if len(s.Clusters) == 1 {
		s.Cluster = cmp.Or(s.Cluster, s.Clusters[0])
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file.Path, err)
	}
	s.reasons = reasonNames(s.Release)
	return s, s.mark(file)
}

// look reads a row in the first pass.
func (s *Source) look(row *dump.Row) error {
	name := row.Table.Name
	if err := s.collect(row); err != nil {
		return err
	}
	read := s.visitor(name)
	switch {
	case row.Bad == nil && read != nil:
		read(fields{row})
	case row.Bad != nil && !strings.HasSuffix(name, jobTable) && s.collector(name) == nil:
		return fmt.Errorf("table %s: row %d: %w", name, row.Table.Rows, row.Bad)
	}
	return nil
}

// The tables of a cluster have its name before these.
const (
	jobTable   = "_job_table"
	stepTable  = "_step_table"
	assocTable = "_assoc_table"
	resvTable  = "_resv_table"
)

// visitor returns what reads the rows of a table in the first pass, nil if its rows are not wanted then.
func (s *Source) visitor(table string) func(fields) {
	switch table {
	case "convert_version_table":
		return func(f fields) { s.schema = int(f.number("version")) }
	case "cluster_table":
		return func(f fields) { s.Clusters = append(s.Clusters, f.text("name")) }
	case "tres_table":
		return func(f fields) { s.tres[f.text("id")] = tresName(f.text("type"), f.text("name")) }
	case qosTable:
		return func(f fields) { s.qos[f.text("id")] = f.text("name") }
	}
	if name, ok := strings.CutSuffix(table, assocTable); ok {
		return func(f fields) {
			s.of(name).users[f.text("id_assoc")] = f.text("user")
			if f.text("user") == "" {
				s.of(name).accounts[f.text("id_assoc")] = f.text("acct")
			}
		}
	}
	if name, ok := strings.CutSuffix(table, resvTable); ok {
		return func(f fields) { s.of(name).resvs[f.text("id_resv")] = f.text("resv_name") }
	}
	if name, ok := strings.CutSuffix(table, jobTable); ok {
		return func(f fields) {
			if id := f.number("id_job"); id <= maxJobID {
				s.of(name).highest = max(s.of(name).highest, uint32(id))
			}
			s.of(name).newest = max(s.of(name).newest, f.number("mod_time"))
		}
	}
	return nil
}

// of returns what was found of a cluster.
func (s *Source) of(cluster string) *own {
	if s.owns[cluster] == nil {
		s.owns[cluster] = &own{users: map[string]string{}, resvs: map[string]string{}, accounts: map[string]string{}}
	}
	return s.owns[cluster]
}

// maxJobID is the highest number that a job of one cluster has; the bits above it name a cluster of a federation.
const maxJobID = 1<<26 - 1

// tresName is a resource as commands name it.
func tresName(kind, name string) string {
	if name == "" {
		return kind
	}
	return kind + "/" + name
}

// check refuses a dump that is not of a database of Slurm's, or of a version that is not known.
func (s *Source) check() error {
	switch {
	case s.all.Table("cluster_table") == nil || s.all.Table("tres_table") == nil:
		return fmt.Errorf("it is not a dump of Slurm's accounting database: cluster_table and tres_table are missing")
	case s.schema < oldestSchema || s.schema > newestSchema:
		return fmt.Errorf("its schema has version %d; those of Slurm 22.05 to 26.05 are known, %d to %d",
			s.schema, oldestSchema, newestSchema)
	case !slices.Contains(s.Clusters, s.Cluster):
		return fmt.Errorf("cluster %q is not in the database: name one of %s with --cluster", s.Cluster,
			strings.Join(s.Clusters, ", "))
	}
	s.jobs = s.all.Table(s.Cluster + jobTable)
	s.steps = s.all.Table(s.Cluster + stepTable)
	s.own = s.of(s.Cluster)
	s.Highest = s.own.highest
	if s.jobs == nil || s.steps == nil {
		return fmt.Errorf("tables %s_job_table and %s_step_table are missing", s.Cluster, s.Cluster)
	}
	s.Jobs = s.jobs.Rows
	s.Steps = s.steps.Rows
	s.Release = s.release()
	return nil
}

// release tells the release from the columns that came with it.
func (s *Source) release() int {
	at := 2205
	for _, c := range [...]struct {
		release       int
		table, column string
	}{
		{2302, jobTable, "extra"}, {2311, assocTable, "id_parent"}, {2405, jobTable, "std_out"},
		{2411, jobTable, "restart_cnt"}, {2505, stepTable, "cwd"}, {2605, jobTable, "sluid"},
	} {
		if t := s.all.Table(s.Cluster + c.table); t != nil && t.Column(c.column) >= 0 {
			at = c.release
		}
	}
	return at
}

// markSize is how much of a dump's beginning tells it from others, with its size.
const markSize = 1 << 20

// mark makes the mark of the dump.
func (s *Source) mark(file *dump.File) error {
	in, err := file.Open(0)
	if err != nil {
		return err
	}
	defer in.Close()
	sum := sha256.New()
	fmt.Fprintln(sum, s.Size, s.Jobs, s.Steps, s.Highest)
	_, err = io.CopyN(sum, in, min(markSize, s.Size))
	s.Mark = hex.EncodeToString(sum.Sum(nil)[:16])
	return err
}

// fields are the values of a row by the names of their columns.
type fields struct{ row *dump.Row }

// value returns a value, nil for NULL and for a column that the table lacks.
func (f fields) value(column string) []byte {
	i := f.row.Table.Column(column)
	if i < 0 || f.row.Values[i].Null {
		return nil
	}
	return f.row.Values[i].Text
}

func (f fields) text(column string) string { return string(f.value(column)) }

// number returns a number that is not negative; 0 for what is none.
func (f fields) number(column string) uint64 {
	n, err := strconv.ParseUint(f.text(column), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
