// Package rest answers the requests of Slurm's REST interface (slurmrestd) by its commands: a path is a row that
// says which front-end answers it with which words, in the name of who asks. So the interface can do what the
// commands can, has the same rights, and answers by the same tables (package data). Package agent finds out who
// asks, and serves the paths. Begin with Answer, then read.go.
package rest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/wire"
)

// Slurm's numbers of errors that are of the interface itself.
const (
	badQuery  = 9000
	badQuery9 = "Query empty or not RFC7320 compliant"
	unknown   = "Unable to find requested URL endpoint. Please query the '/openapi/v3' endpoint for the OpenAPI " +
		"specification which includes a list of all possible endpoints.\n"
)

// request is one under way.
type request struct {
	*api.RESTRequest
	begin    func(status int, mime string) io.Writer
	schemas  *data.Schemas
	path     *data.Path
	vars     map[string]string
	body     map[string]any
	errors   []data.Problem
	warnings []data.Problem
	missing  int // the status of an answer that lists nothing, 0: it is fine
	cluster  string
	failed   error           // of the last call
	read     map[string]bool // parameters that were asked for
}

func text(begin func(int, string) io.Writer, status int, s string) {
	_, _ = io.WriteString(begin(status, "text/plain"), s)
}

// readBody decodes the request's body and compares it with its schema: what is not known is passed over with a
// warning.
func (x *request) readBody() bool {
	var v any
	if err := wire.Unmarshal(x.Body, &v); err != nil {
		text(x.begin, 400, "Failure during parsing\n")
		return false
	}
	x.body, _ = v.(map[string]any)
	if x.body == nil {
		x.refuse(badQuery, badQuery9, "the body is no object")
		return false
	}
	for _, w := range data.Check(x.schemas.Type(x.path.Body), v, false) {
		at, what, _ := strings.Cut(w, ": ")
		problem := data.Problem{Description: what, Source: "#" + strings.ReplaceAll(at, ".", "/") + "/"}
		if what != "no such member" {
			problem.Number, problem.Error = badQuery, "it is not of the type that the schema has"
			x.errors = append(x.errors, problem)
			continue
		}
		problem.Description = "Ignoring unknown field " + at[strings.LastIndexByte(at, '.')+1:]
		x.warnings = append(x.warnings, problem)
	}
	if len(x.errors) > 0 {
		x.write(422)
		return false
	}
	prune(x.schemas.Type(x.path.Body), v)
	return true
}

// prune takes members out of a decoded value that its type does not have.
func prune(t *data.Type, v any) {
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			prune(t.Of, e)
		}
	case map[string]any:
		for name, e := range x {
			if k := slices.IndexFunc(t.Fields, func(f data.Field) bool { return f.Name == name }); k >= 0 {
				prune(t.Fields[k].Type, e)
			} else {
				delete(x, name)
			}
		}
	}
}

// checkQuery refuses words that a parameter does not have.
func (x *request) checkQuery() bool {
	for _, p := range x.path.Params {
		for _, v := range x.Query[p.Name] {
			for word := range strings.SplitSeq(v, ",") {
				if len(p.Words) > 0 && word != "" && !slices.Contains(p.Words, word) {
					x.refuse(9207, "Data parser unable to parse invalid flag", fmt.Sprintf("Unknown flag %q", word))
					return false
				}
			}
		}
	}
	return true
}

// query is the value of a parameter.
func (x *request) query(name string) string {
	x.read[name] = true
	return strings.Join(x.Query[name], ",")
}

// refuse answers with one error.
func (x *request) refuse(number int, what, description string) {
	x.errors = append(x.errors, data.Problem{Description: description, Number: number, Error: what,
		Source: x.source()})
	x.write(statusOf(number))
}

func (x *request) source() string {
	return x.Method + " " + x.path.Path
}

// statusOf is the HTTP status of an error of Slurm's.
func statusOf(number int) int {
	switch number {
	case 2017, 2009: // no such job, no such node
		return 404
	case 1800:
		return 502
	case 2002:
		return 403
	}
	return 422
}

// answer is the frame of what is written.
func (x *request) answer() *data.Answer {
	m := data.Meta{Cluster: x.clusterName(), Source: x.Host, User: x.Who.User}
	return &data.Answer{Schemas: x.schemas, YAML: x.YAML, Compact: true, Meta: m, Errors: x.errors,
		Warnings: x.warnings}
}

func (x *request) clusterName() string {
	if x.cluster = cmp.Or(x.cluster, x.Cluster); x.cluster == "" {
		resp, err := front.Call(x.sys("slurmrestd", nil, nil), api.ShowCluster, api.Empty{})
		if err == nil {
			x.cluster = resp.Config.ClusterName
		}
	}
	return x.cluster
}

// write answers with parts beside meta, errors and warnings. The schema's other members are there, and empty.
func (x *request) write(status int, parts ...data.Part) {
	a := x.answer()
	_ = a.Write(x.begin(status, x.mime()), a.Fill(x.path.Answer, parts)...)
}

func (x *request) mime() string {
	if x.YAML {
		return "application/x-yaml"
	}
	return "application/json"
}

// sys is the world of a front-end that acts for who asks.
func (x *request) sys(prog string, out, errs io.Writer) *front.Sys {
	return &front.Sys{Prog: prog, Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Dial: x.Dial,
		Direct: x.Direct, NoFiles: true,
		UID: x.Who.UID, GID: x.Who.GID, User: x.Who.User,
		Now: time.Now, Umask: 0o022, Getwd: func() (string, error) { return "/", nil }, Hostname: func() (string,
			error) {
			return x.Host, nil
		},
		Refused: func(err error) { x.failed = err }}
}

// program is a front-end.
type program func(sys *front.Sys, argv []string) int

// run runs a front-end that changes something. It returns what it has said, and whether that was a success.
func (x *request) run(prog string, f program, argv ...string) (said string, ok bool) {
	var out, errs bytes.Buffer
	code := f(x.sys(prog, &out, &errs), argv)
	if code == 0 {
		return out.String(), true
	}
	return strings.TrimSpace(errs.String() + out.String()), false
}

// fail notes that a front-end has refused: by the server's error where one came, else in the front-end's words.
func (x *request) fail(what, said string) data.Problem {
	p := data.Problem{Description: what, Number: badQuery, Error: said, Source: x.source()}
	var e *api.Error
	if errors.As(x.failed, &e) || errors.Is(x.failed, api.ErrUnreachable) {
		p.Error, p.Number = front.ErrorText(x.failed)
		if e != nil && e.Message != p.Error {
			p.Description += ": " + e.Message
		}
		if p.Number == 0 {
			p.Number = badQuery
			if front.IsKind(x.failed, cluster.ErrAccess) {
				p.Number = 2002
			}
		}
	}
	x.errors = append(x.errors, p)
	return p
}

// change runs a front-end and answers with what came of it.
func (x *request) change(what, prog string, f program, argv ...string) {
	if said, ok := x.run(prog, f, argv...); !ok {
		p := x.fail(what, said)
		x.write(statusOf(p.Number))
		return
	}
	x.write(200)
}

// since answers a request where nothing has changed since its update_time. Of jobs Slurm says so by an empty list.
func (x *request) since() (answered bool) {
	text := x.query("update_time")
	if text == "" {
		return false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		x.refuse(9202, "Unable to convert Data type", "Parsing of "+text+" for timestamp failed")
		return true
	}
	at := time.Unix(n, 0)
	if x.Unchanged == nil || !x.Unchanged(at) {
		return false
	}
	if _, jobs := strings.CutSuffix(x.path.Path, "/jobs"); !jobs {
		x.begin(304, x.mime())
		return true
	}
	x.warnings = append(x.warnings, data.Problem{Source: x.source(),
		Description: "No job changes since update_time[" + text + "]=" + front.Stamp(at)})
	x.write(200, data.Time("last_backfill", 0), data.Time("last_update", 0))
	return true
}

// harmless are parameters that may be passed over: answers are always whole and as of now.
var harmless = [...]string{"update_time", "flags"}

// unread is a parameter that nothing has asked for, though it would change the answer; "" if there is none.
func (x *request) unread() string {
	for _, p := range x.path.Params {
		v := strings.Join(x.Query[p.Name], "")
		switch {
		case x.read[p.Name], v == "", v == "false", slices.Contains(harmless[:], p.Name):
		case p.Name == "cluster" && v == x.clusterName():
		default:
			return p.Name
		}
	}
	return ""
}

// show answers with what a front-end shows.
func (x *request) show(prog string, f program, argv ...string) {
	if name := x.unread(); name != "" {
		x.missing = 0
		x.refuse(badQuery, name+" cannot be done here: leave it out", "Rejecting request. Failure parsing parameters")
		return
	}
	var errs bytes.Buffer
	late := &lateWriter{x: x}
	sys := x.sys(prog, late, &errs)
	sys.Answers = func(a *data.Answer) {
		x.cluster = a.Meta.Cluster
		late.status = 200
		if a.Rows == 0 && x.missing != 0 {
			late.status = x.missing
		} else {
			x.errors = nil
		}
		own := x.answer()
		own.Rows, own.Warnings = a.Rows, append(x.warnings, a.Warnings...)
		*a = *own
	}
	form := "--json="
	code := f(sys, append(argv, form+x.schemas.Name()))
	if code != 0 && !late.begun {
		p := x.fail("Unable to query "+strings.TrimPrefix(x.path.Path, "/"), strings.TrimSpace(errs.String()))
		x.write(statusOf(p.Number))
	}
}

// lateWriter begins the answer with what is first written.
type lateWriter struct {
	x      *request
	status int
	begun  bool
	out    io.Writer
}

// Write is for front-ends.
func (l *lateWriter) Write(b []byte) (int, error) {
	if !l.begun {
		l.begun, l.out = true, l.x.begin(l.status, l.x.mime())
	}
	return l.out.Write(b)
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
