// Package dump reads what mysqldump and mariadb-dump write: the tables and rows of a database, as a stream, in memory
// that does not grow with the dump. It knows the statements that these programs write and passes over all others. The
// columns of a table are known by their names: the order of a table that was upgraded is another one than that of a
// new one. Begin with Reader; Open has what compresses a file, Scan what a file holds.
package dump

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Bounds of a table and of a row. A longer value is passed over and marked.
const (
	MaxValue   = 1 << 20
	maxColumns = 512
	maxRow     = 4 << 20
	maxTables  = 10_000
)

// Table is one table of a dump.
type Table struct {
	Database string // as USE names it; "" without one
	Name     string
	Columns  []string
	// Rows counts what was read of it, and Offset is where its definition begins.
	Rows   int64
	Offset int64
}

// Column returns the place of a column, -1 if the table has none of that name.
func (t *Table) Column(name string) int { return slices.Index(t.Columns, name) }

// Value is one value of a row: its text, as it was before it was written as SQL.
type Value struct {
	Text    []byte
	Null    bool
	TooLong bool // it had more than MaxValue bytes: Text has the first of them
}

// Row is one row of a table.
type Row struct {
	Table  *Table
	Values []Value // in the order of the table's columns
	Bad    error   // why it has no values: their number is another one than that of the columns, or it is too large
}

// Reader reads the rows of a dump one after the other.
type Reader struct {
	lex    *lexer
	keep   func(*Table) bool
	tables map[string]*Table // by lower-case name, of one database after the other
	list   []*Table

	database string
	headed   bool // the program has said what it is at the beginning
	ended    bool // and that all is written

	table  *Table // of the statement that is being read
	places []int  // of its values among the columns; nil: in order
	inside bool   // a row of it follows
	row    Row
	text   []byte
	ends   []int
	word   []byte
}

// NewReader reads a dump. keep says of which tables rows are wanted; those of the others are counted.
func NewReader(in io.Reader, keep func(*Table) bool) *Reader {
	return &Reader{lex: newLexer(in, 0), keep: keep, tables: map[string]*Table{}}
}

// newReaderAt reads what follows an offset of a dump, of which tables are known.
func newReaderAt(in io.Reader, offset int64, known *Table) *Reader {
	t := &Table{Database: known.Database, Name: known.Name, Columns: known.Columns, Offset: known.Offset}
	r := NewReader(in, func(o *Table) bool { return o == t })
	r.lex = newLexer(in, offset)
	r.tables[strings.ToLower(t.Name)] = t
	return r
}

// Offset returns how many bytes of the text are read.
func (r *Reader) Offset() int64 { return r.lex.offset() }

// Next returns the next row that is wanted, which is valid until the next call. At the end of a dump that is whole the
// error is io.EOF.
func (r *Reader) Next() (row *Row, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, ours := p.(stop)
			if !ours {
				panic(p)
			}
			err = s.err
		}
	}()
	for {
		if r.inside {
			if r.readRow() {
				return &r.row, nil
			}
			continue
		}
		r.between()
		r.statement()
	}
}

// statement reads a statement, up to the rows that it may have.
func (r *Reader) statement() {
	r.word, _ = r.lex.word(r.word[:0])
	switch strings.ToUpper(string(r.word)) {
	case "INSERT", "REPLACE":
		r.insert()
		return
	case "CREATE":
		r.create()
	case "USE":
		name, _ := r.lex.word(nil)
		r.database = string(name)
	}
	r.lex.statement()
}

// between passes over what stands between statements.
func (r *Reader) between() {
	for r.lex.fill() {
		switch c := r.lex.peek(); {
		case isSpace(c), c == ';':
			r.lex.at++
		case strings.IndexByte("-#", c) >= 0:
			r.word = r.lex.line(r.word[:0])
			r.remark(string(r.word))
		case c == '/':
			r.word = r.lex.comment(r.word[:0])
			r.setting(strings.Fields(strings.TrimRight(string(r.word), "*")))
		default:
			return
		}
	}
	r.over()
}

// over ends reading with io.EOF behind a whole dump.
func (r *Reader) over() {
	if errors.Is(r.lex.err, io.EOF) && (r.ended || !r.headed) {
		panic(stop{io.EOF})
	}
	r.lex.stopEarly()
}

// remark reads a line that is a comment: at the ends of the dump the program says what it does.
func (r *Reader) remark(line string) {
	switch {
	case strings.HasPrefix(line, "-- MySQL dump"), strings.HasPrefix(line, "-- MariaDB dump"):
		r.headed, r.ended = true, false
	case strings.HasPrefix(line, "-- Dump completed"):
		r.ended = true
	}
}

// setting reads a comment that servers execute. SET NAMES says which charset the text has: it must be UTF-8.
func (r *Reader) setting(words []string) {
	_, charset, ok := strings.Cut(strings.ToLower(strings.Join(words, " ")), " set names ")
	if !ok || slices.Contains([]string{"utf8mb4", "utf8mb3", "utf8"}, charset) {
		return
	}
	panic(stop{fmt.Errorf("the charset of the dump is %s: "+
		"make it again with --default-character-set=utf8mb4", charset)})
}

// create reads the columns of a table.
func (r *Reader) create() {
	offset := r.lex.offset()
	if word, _ := r.lex.word(nil); !strings.EqualFold(string(word), "TABLE") {
		return
	}
	t := &Table{Database: r.database, Name: r.tableName(), Offset: offset}
	r.lex.want('(')
	for more := true; more; more = r.definition() {
		name, quoted := r.lex.word(nil)
		if quoted {
			t.Columns = append(t.Columns, string(name))
		}
		if len(t.Columns) > maxColumns {
			r.lex.stopAt("table %s has more than %d columns", t.Name, maxColumns)
		}
	}
	if len(r.list) == maxTables {
		r.lex.stopAt("the dump has more than %d tables: dump one database, Slurm's", maxTables)
	}
	r.tables[strings.ToLower(t.Name)] = t
	r.list = append(r.list, t)
}

// tableName reads the name of a table, which DATABASE. may precede and words such as IF NOT EXISTS.
func (r *Reader) tableName() string {
	for {
		word, quoted := r.lex.word(nil)
		if !quoted && slices.Contains([]string{"IF", "NOT", "EXISTS", "INTO", "IGNORE"},
			strings.ToUpper(string(word))) {
			continue
		}
		if r.lex.peek() != '.' {
			return string(word)
		}
		r.lex.at++
	}
}

// definition passes over what follows a column's name; more says that another one follows.
func (r *Reader) definition() (more bool) {
	for depth := 1; depth > 0; {
		switch c := r.lex.next(); c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 1 {
				return true
			}
		case '\'', '"', '`':
			r.lex.quoted(nil, c, 0)
		}
	}
	return false
}

// insert reads what precedes the rows of an INSERT.
func (r *Reader) insert() {
	name := r.tableName()
	r.table = r.tables[strings.ToLower(name)]
	if r.table == nil {
		panic(stop{fmt.Errorf("table %s: its definition (CREATE TABLE) is missing: "+
			"make the dump again without --no-create-info", name)})
	}
	r.places = nil
	r.lex.space()
	if r.lex.peek() == '(' {
		r.namedColumns()
	}
	r.word, _ = r.lex.word(r.word[:0])
	if !bytes.EqualFold(r.word, []byte("VALUES")) {
		r.lex.stopAt("VALUES is expected here, of table %s", name)
	}
	r.inside = true
}

// namedColumns reads the list of columns of --complete-insert.
func (r *Reader) namedColumns() {
	for r.lex.peek() != ')' {
		r.lex.at++ // the bracket, or a comma
		name, _ := r.lex.word(nil)
		i := r.table.Column(string(name))
		if i < 0 || len(r.places) == maxColumns {
			r.lex.stopAt("table %s has no column %s", r.table.Name, name)
		}
		r.places = append(r.places, i)
		r.lex.space()
	}
	r.lex.at++
}

// readRow reads a row and what follows it, and reports whether it is wanted.
func (r *Reader) readRow() bool {
	r.lex.want('(')
	r.table.Rows++
	kept := r.keep == nil || r.keep(r.table)
	r.row = Row{Table: r.table, Values: r.row.Values[:0]}
	r.text = r.text[:0]
	r.ends = r.ends[:0]
	for more := true; more; {
		most := MaxValue
		if !kept || len(r.text) > maxRow {
			most = 0
		}
		v := r.value(most)
		if len(r.ends) <= maxColumns {
			r.ends = append(r.ends, len(r.text))
			r.row.Values = append(r.row.Values, v)
		}
		r.lex.space()
		if more = r.lex.peek() == ','; more {
			r.lex.at++
		}
	}
	r.lex.want(')')
	r.behindRow()
	if kept {
		r.finish()
	}
	return kept
}

// behindRow reads what follows a row: another one, or the end of the statement.
func (r *Reader) behindRow() {
	r.lex.space()
	if r.lex.peek() == ',' {
		r.lex.at++
		return
	}
	r.inside = false
	r.lex.statement() // such as ON DUPLICATE KEY UPDATE
}

// value reads one value behind those before it.
func (r *Reader) value(most int) (v Value) {
	r.lex.space()
	begin := len(r.text)
	if c := r.lex.peek(); c == '\'' || c == '"' {
		r.lex.at++
		r.text = r.lex.quoted(r.text, c, most)
	} else {
		v.Null = r.bare(most)
	}
	if len(r.text)-begin > most {
		v.TooLong = true
		r.text = r.text[:begin+most]
	}
	return v
}

// bare reads a value without quotes: NULL, a number, 0xAB…, or a word such as _binary with a string.
func (r *Reader) bare(most int) (null bool) {
	begin := len(r.text)
	r.text = r.lex.bare(r.text, 2*most+2)
	word := r.text[begin:]
	switch {
	case len(word) == 0:
		r.lex.stopAt("a value is expected here, of table %s, not %q", r.table.Name, r.lex.next())
	case bytes.EqualFold(word, []byte("NULL")):
		r.text = r.text[:begin]
		return true
	case word[0] == '_':
		r.lex.want('\'')
		r.text = r.lex.quoted(r.text[:begin], '\'', most)
	case len(word) > 2 && bytes.EqualFold(word[:2], []byte("0x")):
		n, err := hex.Decode(word, word[2:len(word)/2*2])
		if err != nil {
			r.lex.stopAt("table %s: %w", r.table.Name, err)
		}
		r.text = r.text[:begin+n]
	}
	return false
}

// finish gives the values of a row their texts, in the order of the columns.
func (r *Reader) finish() {
	columns := len(r.table.Columns)
	want := columns
	if r.places != nil {
		want = len(r.places)
	}
	if len(r.ends) != want || len(r.text) > maxRow {
		r.row.Bad = fmt.Errorf("it has %d values of %d bytes: %d values of at most %d bytes are expected",
			len(r.ends), len(r.text), want, maxRow)
		r.row.Values = r.row.Values[:0]
		return
	}
	begin := 0
	for i, end := range r.ends {
		r.row.Values[i].Text = r.text[begin:end:end]
		begin = end
	}
	if r.places != nil {
		r.row.Values = ordered(r.row.Values, r.places, columns)
	}
}

// ordered puts values at their places among so many columns; those of the others are NULL.
func ordered(values []Value, places []int, columns int) []Value {
	out := make([]Value, columns)
	for i := range out {
		out[i].Null = true
	}
	for i, place := range places {
		out[place] = values[i]
	}
	return out
}
