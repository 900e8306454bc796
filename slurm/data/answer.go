package data

import (
	"io"
	"slices"
)

// Release is the Slurm whose answers these are.
const Release = "26.05.3"

// Answer is one whole answer: in which version and form, and what stands around what was asked for.
type Answer struct {
	Schemas *Schemas
	YAML    bool
	Own     bool // no version was asked for: muster's own members are in it too
	Compact bool // JSON without blanks
	Rows    int  // how many records it lists
	Meta    Meta

	Errors   []Problem
	Warnings []Problem
}

// Meta is of whom and by whom an answer is.
type Meta struct {
	Cluster string
	Source  string
	User    string
	Group   string
	Command []string
	parser  string
}

// Problem is an error or a warning of an answer.
type Problem struct {
	Description string
	Number      int
	Error       string
	Source      string
}

var metaTable = Table[Meta]{Schema: "openapi_meta", Members: []Member[Meta]{
	{Path: "plugin.data_parser", Of: func(m *Meta) Value { return Text("data_parser/" + m.parser) }},
	{Path: "plugin.accounting_storage", Of: func(*Meta) Value { return Text("accounting_storage/slurmdbd") }},
	{Path: "client.source", Of: func(m *Meta) Value { return Text(m.Source) }},
	{Path: "client.user", Of: func(m *Meta) Value { return Text(m.User) }},
	{Path: "client.group", Of: func(m *Meta) Value { return Text(m.Group) }},
	{Path: "command", Of: func(m *Meta) Value { return Words(m.Command...) }},
	{Path: "slurm.version.major", Of: func(*Meta) Value { return Text(Release[:2]) }},
	{Path: "slurm.version.minor", Of: func(*Meta) Value { return Text(Release[3:5]) }},
	{Path: "slurm.version.micro", Of: func(*Meta) Value { return Text(Release[6:]) }},
	{Path: "slurm.release", Of: func(*Meta) Value { return Text(Release) }},
	{Path: "slurm.cluster", Of: func(m *Meta) Value { return Text(m.Cluster) }},
}}

var errorTable = Table[Problem]{Schema: "openapi_error", Members: []Member[Problem]{
	{Path: "description", Of: func(p *Problem) Value { return Text(p.Description) }},
	{Path: "error_number", Of: func(p *Problem) Value { return Num(p.Number) }},
	{Path: "error", Of: func(p *Problem) Value { return Text(p.Error) }},
	{Path: "source", Of: func(p *Problem) Value { return Text(p.Source) }},
}}

var warningTable = Table[Problem]{Schema: "openapi_warning", Members: []Member[Problem]{
	{Path: "description", Of: func(p *Problem) Value { return Text(p.Description) }},
	{Path: "source", Of: func(p *Problem) Value { return Text(p.Source) }},
}}

// Part is a member of an answer.
type Part struct {
	name string
	put  func(a *Answer, p *printer)
	own  bool
	rows int
}

// Fill adds the members that the schema of an answer has besides parts, and meta, errors and warnings: with zeros.
func (a *Answer) Fill(schema string, parts []Part) []Part {
	t := a.Schemas.Type(schema)
	if t == nil {
		return parts
	}
	for _, f := range t.Fields {
		there := slices.ContainsFunc(parts, func(p Part) bool { return p.name == f.Name })
		if there || f.Name == "meta" || f.Name == "errors" || f.Name == "warnings" {
			continue
		}
		parts = append(parts, Part{name: f.Name, put: func(_ *Answer, p *printer) {
			p.print(appendZero(nil,
				f.Type))
		}})
	}
	return parts
}

// Rows is how many records parts list.
func Rows(parts []Part) (n int) {
	for _, p := range parts {
		n += p.rows
	}
	return n
}

// One is a member with one value of a schema's type.
func One(name, schema string, v Value) Part {
	return Part{name: name, put: func(a *Answer, p *printer) {
		t := a.Schemas.Type(schema)
		if t == nil {
			t = &Type{}
		}
		p.print(v.append(nil, a.Schemas, t))
	}}
}

// Time is a member that is a time in seconds.
func Time(name string, unix int64) Part {
	return One(name, "uint64_no_val_struct", Num(unix))
}

// Each is a list of records, written one after the other.
func Each[T any](name string, t *Table[T], list []T) Part {
	return Part{name: name, rows: len(list), put: func(a *Answer, p *printer) {
		p.print([]byte{'['})
		for i := range list {
			p.made(func(b []byte) []byte {
				if i > 0 {
					b = append(b, ',')
				}
				if a.Own {
					return t.AppendOwn(b, a.Schemas, &list[i])
				}
				return t.Append(b, a.Schemas, &list[i])
			})
		}
		p.print([]byte{']'})
	}}
}

// Own is a member that only muster's own answers have.
func Own(part Part) Part {
	part.own = true
	return part
}

// Write writes the answer. Nothing is held back: a long list leaves as it is made.
func (a *Answer) Write(out io.Writer, parts ...Part) error {
	p := &printer{out: out, yaml: a.YAML, compact: a.Compact}
	if used, ok := buffers.Get().(*[]byte); ok {
		p.buf = (*used)[:0]
	}
	defer p.release()
	p.print([]byte{'{'})
	a.Meta.parser = a.Schemas.Name()
	parts = append(parts[:len(parts):len(parts)], One("meta", "openapi_meta", Record(&metaTable, &a.Meta)),
		One("errors", "openapi_errors", Records(&errorTable, a.Errors)),
		One("warnings", "openapi_warnings", Records(&warningTable, a.Warnings)))
	between := ""
	for _, part := range parts {
		if part.own && !a.Own {
			continue
		}
		p.print(append(appendText([]byte(between), part.name), ':'))
		part.put(a, p)
		between = ","
	}
	p.print([]byte{'}'})
	return p.end()
}
