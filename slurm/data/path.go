package data

import "strings"

// Path is a path of the REST interface with a method.
type Path struct {
	Method string
	Path   string // without the version: /slurm/job/{job_id}
	Params []Param
	Body   string // the schema of the request; "" if there is none
	Answer string // the schema of the answer
}

// Param is a parameter of a path.
type Param struct {
	Name   string
	InPath bool
	Words  []string // those that there are; none: any
}

// Paths are those of the version.
func (s *Schemas) Paths() []Path {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paths != nil {
		return s.paths
	}
	text := [...]string{text42, text43, text44, text45}[s.Version-Oldest]
	for line := range strings.SplitSeq(text, "\n") {
		if method, rest, ok := strings.Cut(line, " /"); ok && !strings.Contains(method, " ") && method != "" {
			s.paths = append(s.paths, pathOf(method, "/"+rest))
		}
	}
	return s.paths
}

// pathOf reads METHOD PATH [NAME?:TYPE, ...] body=@SCHEMA -> 200=@SCHEMA default=@SCHEMA.
func pathOf(method, text string) Path {
	path, rest, _ := strings.Cut(text, " [")
	params, rest, _ := strings.Cut(rest, "] ")
	p := Path{Method: method, Path: strings.TrimSuffix(path, "/")}
	for word := range strings.SplitSeq(params, ", ") {
		name, typ, ok := strings.Cut(word, ":")
		if !ok {
			continue
		}
		x := Param{Name: strings.TrimSuffix(name, "?"), InPath: strings.HasSuffix(typ, "/path")}
		if _, list, ok := strings.Cut(typ, "<"); ok {
			x.Words = strings.Split(strings.TrimSuffix(list, ">"), "|")
		}
		p.Params = append(p.Params, x)
	}
	for word := range strings.FieldsSeq(rest) {
		if name, ok := strings.CutPrefix(word, "body=@"); ok {
			p.Body = name
		}
		if name, ok := strings.CutPrefix(word, "200=@"); ok {
			p.Answer = name
		}
	}
	return p
}
