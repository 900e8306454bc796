package rest

import (
	"io"
	"slices"
	"strings"
	"sync"

	"dev.muster/api"
	"dev.muster/slurm/data"
)

// Answer answers a request: begin is called once, with the status and the type of what is written then.
func Answer(q *api.RESTRequest, begin func(status int, mime string) io.Writer) {
	if strings.HasPrefix(q.Path, "/openapi") {
		openAPI(q, begin)
		return
	}
	x := &request{RESTRequest: q, begin: begin, vars: map[string]string{}, read: map[string]bool{}}
	route := x.route()
	if route == nil {
		text(begin, 404, unknown)
		return
	}
	if x.path.Body != "" && !x.readBody() {
		return
	}
	if !x.checkQuery() {
		return
	}
	route.do(x)
}

// route finds the row of the path, in the version that it names.
func (x *request) route() *route {
	_, rest, _ := strings.Cut(x.Path, "/")
	kind, rest, _ := strings.Cut(rest, "/")
	version, rest, _ := strings.Cut(rest, "/")
	k := slices.Index(data.Versions(), version)
	if k < 0 {
		return nil
	}
	x.schemas = data.Load(data.Oldest + k)
	words := strings.Split(strings.TrimSuffix(kind+"/"+rest, "/"), "/")
	paths := x.schemas.Paths()
	for i := range paths {
		if paths[i].Method == x.Method && x.matches(paths[i].Path, words) {
			x.path = &paths[i]
			return routes()[x.Method+" "+paths[i].Path]
		}
	}
	return nil
}

// matches compares a path with a template, and takes its variables from it.
func (x *request) matches(template string, words []string) bool {
	parts := strings.Split(template[1:], "/")
	if len(parts) != len(words) {
		return false
	}
	vars := map[string]string{}
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, "{"); ok && words[i] != "" {
			vars[strings.TrimSuffix(name, "}")] = words[i]
		} else if p != words[i] {
			return false
		}
	}
	x.vars = vars
	return true
}

// route is a row: what answers a path.
type route struct{ do func(x *request) }

// table are the rows, made when they are first needed.
var table struct {
	once sync.Once
	rows map[string]*route
}

// routes are the rows by METHOD PATH, the path without its version.
func routes() map[string]*route {
	table.once.Do(func() {
		table.rows = map[string]*route{}
		for _, list := range []map[string]func(*request){reading(), changingJobs(), changingNodes(),
			changingBooks()} {
			for path, do := range list {
				table.rows[path] = &route{do}
			}
		}
	})
	return table.rows
}
