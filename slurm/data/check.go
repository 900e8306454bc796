package data

import (
	"fmt"
	"slices"
)

// Check says what is wrong with a decoded JSON value, by the type that it should have: members that there are not,
// those that are missing (all of them with whole, else those that are required), values of another form, words
// that are not listed.
func Check(t *Type, v any, whole bool) (wrong []string) {
	c := checker{whole: whole}
	c.check("", t, v)
	return c.wrong
}

type checker struct {
	whole bool
	wrong []string
}

func (c *checker) add(path, form string, args ...any) {
	if path == "" {
		path = "."
	}
	c.wrong = append(c.wrong, path+": "+fmt.Sprintf(form, args...))
}

func (c *checker) check(path string, t *Type, v any) {
	if v == nil && t.Form == Object {
		return
	}
	form, there := formIn(v)
	if form == Integer && t.Form == Number {
		form = Number
	}
	if !there || form != t.Form {
		c.add(path, "%.40v", v)
		return
	}
	switch x := v.(type) {
	case map[string]any:
		c.object(path, t, x)
	case []any:
		for i, e := range x {
			c.check(fmt.Sprintf("%s[%d]", path, i), t.Of, e)
		}
	case string:
		if len(t.Words) > 0 && !slices.Contains(t.Words, x) {
			c.add(path, "%q is not one of %d words", x, len(t.Words))
		}
	}
}

// formIn is the form that a decoded value has.
func formIn(v any) (Form, bool) {
	switch x := v.(type) {
	case map[string]any:
		return Object, true
	case []any:
		return List, true
	case string:
		return String, true
	case bool:
		return Boolean, true
	case float64:
		if x != float64(int64(x)) {
			return Number, true
		}
		return Integer, true
	}
	return 0, false
}

func (c *checker) object(path string, t *Type, x map[string]any) {
	for name, e := range x {
		k := slices.IndexFunc(t.Fields, func(f Field) bool { return f.Name == name })
		if k < 0 {
			c.add(path+"."+name, "no such member")
			continue
		}
		c.check(path+"."+name, t.Fields[k].Type, e)
	}
	for _, f := range t.Fields {
		if _, there := x[f.Name]; !there && (f.Required || c.whole) {
			c.add(path+"."+f.Name, "missing")
		}
	}
}
