package agent

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"dev.muster/agent/client"
	"dev.muster/agent/server"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// TestTextsOfEndpoints: whatever text a user can put into a call, in any field of any endpoint, is refused with its
// name when it is too long, has a NUL byte, or a line end where none may be. A field for operators alone is exempt
// by its tag.
func TestTextsOfEndpoints(t *testing.T) {
	m := api.NewMux()
	(&server.Server{}).Routes(m)
	(&client.Client{}).Routes(m)
	texts := 0
	for name, r := range m.All() {
		if r.Access != api.User || r.Request == nil {
			continue
		}
		for _, leaf := range leavesOf(r.Request, leaf{most: 1024}) {
			if hidden(r.Request, leaf.path) {
				continue
			}
			texts++
			odd := map[string]cluster.ErrKind{
				strings.Repeat("a", leaf.most+1): cluster.ErrTooBig, "a\x00b": cluster.ErrText,
			}
			if !leaf.lines {
				odd["a\nb"], odd["a\rb"] = cluster.ErrText, cluster.ErrText
			}
			for text, want := range odd {
				q := reflect.New(r.Request)
				put(q.Elem(), leaf.path, text)
				body, err := wire.Marshal(q.Interface())
				if err != nil {
					t.Fatal(err)
				}
				if r.Handle == nil {
					err = r.Stream(t.Context(), api.Caller{}, body, nil)
				} else {
					_, err = r.Handle(t.Context(), api.Caller{}, body)
				}
				if e := api.AsError(err); err == nil || e.Kind != want {
					t.Errorf("%s: %v with %d bytes beginning %q: %v, want %s", name, leaf.path, len(text),
						text[:2], err, want)
				}
			}
		}
	}
	if texts < 400 {
		t.Errorf("only %d texts were found", texts)
	}
}

// leaf is a text in a type: the fields that lead to it, and what it may be.
type leaf struct {
	path  []int
	most  int
	lines bool
}

func (l leaf) below(field int) leaf {
	l.path = append(append([]int(nil), l.path...), field)
	return l
}

// leavesOf lists the texts of a type but for those that operators alone may write.
func leavesOf(t reflect.Type, at leaf) (out []leaf) {
	switch t.Kind() {
	case reflect.String:
		return []leaf{at}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return leavesOf(t.Elem(), at.below(-1))
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			tag := f.Tag.Get("text")
			if !f.IsExported() || tag == "-" || f.Tag.Get("json") == "-" {
				continue
			}
			next := at.below(i)
			if size, lines, _ := strings.Cut(tag, ","); tag != "" {
				next.most, _ = strconv.Atoi(size)
				next.lines = lines == "lines"
			}
			out = append(out, leavesOf(f.Type, next)...)
		}
	}
	return out
}

// hidden reports whether a text does not travel: another field of the same name stands before it.
func hidden(t reflect.Type, path []int) bool {
	q, back := reflect.New(t), reflect.New(t)
	put(q.Elem(), path, "here")
	body, err := wire.Marshal(q.Interface())
	return err == nil && wire.Unmarshal(body, back.Interface()) == nil && !holds(back.Elem(), path)
}

// holds reports whether there is a text at a place.
func holds(v reflect.Value, path []int) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && holds(v.Elem(), path[1:])
	case reflect.Slice:
		return v.Len() > 0 && holds(v.Index(0), path[1:])
	case reflect.Map:
		return v.Len() > 0
	case reflect.Struct:
		return holds(v.Field(path[0]), path[1:])
	}
	return v.Len() > 0
}

// put makes what leads to a text, and the text.
func put(v reflect.Value, path []int, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		put(v.Elem(), path[1:], text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		put(v.Index(0), path[1:], text)
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		put(value, path[1:], text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), value)
	case reflect.Struct:
		put(v.Field(path[0]), path[1:], text)
	}
}
