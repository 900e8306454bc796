package data

import (
	"io"
	"slices"
	"strings"
)

// WriteOpenAPI writes the OpenAPI document of the paths of all versions that are served.
func WriteOpenAPI(out io.Writer, yaml bool, served func(version int, p *Path) bool) error {
	p := &printer{out: out, yaml: yaml, compact: true}
	b := []byte(`{"openapi":"3.0.3","info":{"title":"Slurm REST API","version":"` + Release + `"},` +
		`"security":[{"user":[],"token":[]},{"bearerAuth":[]}],"paths":{`)
	first := true
	for v := Oldest; v <= Newest; v++ {
		s := Load(v)
		byPath := map[string][]*Path{}
		var order []string
		paths := s.Paths()
		for i := range paths {
			x := &paths[i]
			if !served(v, x) {
				continue
			}
			if byPath[x.Path] == nil {
				order = append(order, x.Path)
			}
			byPath[x.Path] = append(byPath[x.Path], x)
		}
		for _, path := range order {
			b = s.appendPath(comma(b, &first), path, byPath[path])
		}
	}
	b = append(b,
		`},"components":{"securitySchemes":{"user":{"type":"apiKey","in":"header","name":"X-SLURM-USER-NAME"},`+
			`"token":{"type":"apiKey","in":"header","name":"X-SLURM-USER-TOKEN"},`+
			`"bearerAuth":{"type":"http","scheme":"bearer"}},"schemas":{`...)
	first = true
	for v := Oldest; v <= Newest; v++ {
		s := Load(v)
		names := s.Names()
		slices.Sort(names)
		for _, name := range names {
			b = append(appendText(comma(b, &first), s.Name()+"_"+name), ':')
			t := *s.Type(name)
			t.Ref = ""
			b = s.appendType(b, &t)
		}
	}
	p.print(append(b, "}}}"...))
	return p.end()
}

func comma(b []byte, first *bool) []byte {
	if !*first {
		b = append(b, ',')
	}
	*first = false
	return b
}

func (s *Schemas) appendPath(b []byte, path string, methods []*Path) []byte {
	kind, rest, _ := strings.Cut(path[1:], "/")
	b = append(appendText(b, "/"+kind+"/"+s.Name()+"/"+rest), ":{"...)
	for i, m := range methods {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, strings.ToLower(m.Method)), `:{"tags":[`...)
		b = append(appendText(b, kind), `],"operationId":`...)
		id := strings.NewReplacer("/", "_", "{", "", "}", "").Replace(rest)
		b = append(appendText(b, kind+"_"+strings.ReplaceAll(s.Name(), ".",
			"")+"_"+strings.ToLower(m.Method)+"_"+id), `,"parameters":[`...)
		for k := range m.Params {
			if k > 0 {
				b = append(b, ',')
			}
			b = m.Params[k].appendTo(b)
		}
		b = append(b, ']')
		if m.Body != "" {
			b = append(b, `,"requestBody":`...)
			b = append(s.appendContent(b, m.Body), '}')
		}
		b = append(b, `,"responses":{`...)
		for k, code := range []string{"200", "default"} {
			if k > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, code), `:`...)
			b = append(s.appendContent(b, m.Answer), `,"description":"the answer, or errors"}`...)
		}
		b = append(b, "}}"...)
	}
	return append(b, '}')
}

func (s *Schemas) appendContent(b []byte, schema string) []byte {
	b = append(b, `{"content":{"application/json":{"schema":`...)
	b = append(s.appendRef(b, schema), `},"application/x-yaml":{"schema":`...)
	return append(s.appendRef(b, schema), "}}"...)
}

func (s *Schemas) appendRef(b []byte, schema string) []byte {
	b = append(b, `{"$ref":`...)
	return append(appendText(b, "#/components/schemas/"+s.Name()+"_"+schema), '}')
}

func (p *Param) appendTo(b []byte) []byte {
	where := "query"
	if p.InPath {
		where = "path"
	}
	b = append(appendText(append(b, `{"in":`...), where), `,"name":`...)
	b = append(appendText(b, p.Name), `,"required":`...)
	b = append(b, map[bool]string{true: "true", false: "false"}[p.InPath]...)
	b = append(b, `,"schema":{"type":"string"`...)
	if len(p.Words) > 0 {
		b = appendEnum(b, p.Words)
	}
	return append(b, "}}"...)
}

func appendEnum(b []byte, words []string) []byte {
	b = append(b, `,"enum":[`...)
	for i, w := range words {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, w)
	}
	return append(b, ']')
}

// appendType writes a type as OpenAPI does.
func (s *Schemas) appendType(b []byte, t *Type) []byte {
	if t.Ref != "" {
		return s.appendRef(b, t.Ref)
	}
	b = appendText(append(b, `{"type":`...), [...]string{"string", "integer", "number", "boolean", "array",
		"object"}[t.Form])
	switch t.Form {
	case List:
		b = s.appendType(append(b, `,"items":`...), t.Of)
	case Object:
		b = s.appendFields(b, t)
	default:
		if t.Width != "" {
			b = appendText(append(b, `,"format":`...), published(t.Width))
		}
		if len(t.Words) > 0 {
			b = appendEnum(b, t.Words)
		}
	}
	return append(b, '}')
}

func (s *Schemas) appendFields(b []byte, t *Type) []byte {
	var required []string
	b = append(b, `,"properties":{`...)
	for i := range t.Fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, t.Fields[i].Name), ':')
		b = s.appendType(b, t.Fields[i].Type)
		if t.Fields[i].Required {
			required = append(required, t.Fields[i].Name)
		}
	}
	b = append(b, '}')
	if len(required) > 0 {
		b = append(b, strings.Replace(string(appendEnum(nil, required)), `,"enum"`, `,"required"`, 1)...)
	}
	return b
}

// published is the width of a number as the document says it. Slurm's says int32 of numbers that need one bit more,
// priorities and ids among them, and clients that are generated from it stop at those.
func published(width string) string {
	if width == "int32" {
		return "int64"
	}
	return width
}
