package data

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// The versions of the interface, oldest first.
const (
	Oldest = 42
	Newest = 45
)

// The schemas, without the version in front of each name.
var (
	//go:embed schema/v0.0.42.txt
	text42 string
	//go:embed schema/v0.0.43.txt
	text43 string
	//go:embed schema/v0.0.44.txt
	text44 string
	//go:embed schema/v0.0.45.txt
	text45 string
	//go:embed schema/extra.txt
	extra string
)

// Form is what a type's values look like.
type Form uint8

// The forms.
const (
	String Form = iota
	Integer
	Number
	Boolean
	List
	Object
)

// Type is a type of a schema.
type Type struct {
	Form   Form
	Words  []string // of a String: those that there are; none: any
	Of     *Type    // of a List: the elements
	Fields []Field  // of an Object
	Ref    string   // the schema's name, if it has one of its own
	Width  string   // of a number: int32, int64, double
}

// Field is a field of an object.
type Field struct {
	Name     string
	Required bool
	Type     *Type
}

// Schemas are those of one version.
type Schemas struct {
	Version int // 44 of v0.0.44
	index   map[string]string
	mu      sync.Mutex
	types   map[string]*Type
	paths   []Path
}

var loaded [Newest - Oldest + 1]struct {
	once sync.Once
	s    Schemas
}

// Load returns the schemas of a version from Oldest to Newest.
func Load(version int) *Schemas {
	at := &loaded[version-Oldest]
	at.once.Do(func() {
		at.s = Schemas{Version: version, index: map[string]string{}, types: map[string]*Type{}}
		for _, text := range [...]string{[...]string{text42, text43, text44, text45}[version-Oldest], extra} {
			for line := range strings.SplitSeq(text, "\n") {
				name, rest, ok := strings.Cut(line, ": ")
				old, is := strings.CutSuffix(name, "@44")
				if is && version <= 44 {
					name = old
				}
				if ok && !strings.ContainsAny(name, " #@") {
					at.s.index[name] = rest
				}
			}
		}
	})
	return &at.s
}

// Name is v0.0.44.
func (s *Schemas) Name() string {
	return Versions()[s.Version-Oldest]
}

// Versions are the names of all versions.
func Versions() []string {
	return []string{"v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"}
}

// Type finds a schema by name; nil if the version has none of that name.
func (s *Schemas) Type(name string) *Type {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typeOf(name)
}

func (s *Schemas) typeOf(name string) *Type {
	if t := s.types[name]; t != nil {
		return t
	}
	text, ok := s.index[name]
	if !ok {
		return nil
	}
	t := &Type{Ref: name}
	s.types[name] = t // before its parts, which may lead back to it
	r := reader{s: s, text: text}
	if text[0] == '[' || strings.HasPrefix(text, "string") || strings.HasPrefix(text, "integer") {
		*t = *r.typ()
		t.Ref = name
		return t
	}
	t.Form, t.Fields = Object, r.fields("; ", " ", "")
	return t
}

// Names are those of all schemas of the version.
func (s *Schemas) Names() (names []string) {
	for name := range s.index {
		names = append(names, name)
	}
	return names
}

// reader takes the text of a schema apart.
type reader struct {
	s    *Schemas
	text string
}

func (r *reader) skip(word string) bool {
	rest, ok := strings.CutPrefix(r.text, word)
	r.text = rest
	return ok
}

// fields reads the fields of an object up to what ends it.
func (r *reader) fields(between, after, end string) (list []Field) {
	for r.text != "" && (end == "" || !r.skip(end)) {
		name, rest, _ := strings.Cut(r.text, after)
		r.text = rest
		name, required := strings.CutSuffix(name, "!")
		list = append(list, Field{name, required, r.typ()})
		r.skip(between)
	}
	return list
}

// typ reads a type.
func (r *reader) typ() *Type {
	switch r.text[0] {
	case '[':
		r.text = r.text[1:]
		t := &Type{Form: List, Of: r.typ()}
		r.skip("]")
		return t
	case '{':
		r.text = r.text[1:]
		return &Type{Form: Object, Fields: r.fields(", ", ":", "}")}
	}
	end := strings.IndexAny(r.text, ";,]}<(")
	if end < 0 {
		end = len(r.text)
	}
	word := r.text[:end]
	r.text = r.text[end:]
	if name, ok := strings.CutPrefix(word, "@"); ok {
		if t := r.s.typeOf(name); t != nil {
			return t
		}
		return &Type{Form: Object}
	}
	t := &Type{Form: formOf(word)}
	if r.skip("(") {
		t.Width, r.text, _ = strings.Cut(r.text, ")")
	}
	if r.skip("<") {
		words, rest, _ := strings.Cut(r.text, ">")
		t.Words, r.text = strings.Split(words, "|"), rest
	}
	return t
}

func formOf(word string) Form {
	return Form(max(slices.Index(formWords[:], word), 0)) // what is not known is taken for a text
}

var formWords = [...]string{String: "string", Integer: "integer", Number: "number", Boolean: "boolean"}

// optional reports whether values of the type are numbers that may be unset or infinite.
func (t *Type) optional() bool {
	return strings.HasSuffix(t.Ref, "_no_val_struct")
}
