package api

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"dev.muster/cluster"
)

// maxText bounds a text in a call of a user, in bytes, where its field says nothing else: as Slurm bounds accounts,
// names, features and their like.
const maxText = 1024

// checkTexts refuses a request in which a text is too long, or has a byte in it that ends texts elsewhere: in
// environments, arguments and file names (NUL), and in lists that scripts read (line ends).
//
// A field says otherwise by a tag: text:"4096" for another bound, text:"4096,lines" where line ends may be part of
// it, and text:"-" where only operators may say anything at all.
func checkTexts(request any) error {
	return textsOf(reflect.TypeOf(request)).check(reflect.ValueOf(request), textRule{max: maxText}, "")
}

// CheckTexts refuses what a user of another cluster asks for, which comes by no call of the user's.
func CheckTexts(q *SubmitRequest) error { return checkTexts(*q) }

// textRule is what a text may be.
type textRule struct {
	max   int // bytes
	lines bool
}

// textPlan is where in a type there are texts. nil: nowhere.
type textPlan struct {
	kind   reflect.Kind
	elem   *textPlan // of pointers, lists and maps
	fields []textField
}

type textField struct {
	index int
	name  string
	rule  *textRule // nil: that of what it is a part of
	plan  *textPlan
}

var textPlans sync.Map // by reflect.Type; *textPlan

// textsOf is the plan of a type. Types that contain themselves are not among requests.
func textsOf(t reflect.Type) *textPlan {
	if p, ok := textPlans.Load(t); ok {
		return p.(*textPlan)
	}
	p := planTexts(t)
	textPlans.Store(t, p)
	return p
}

func planTexts(t reflect.Type) *textPlan {
	switch t.Kind() {
	case reflect.String:
		return &textPlan{kind: reflect.String}
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		if elem := textsOf(t.Elem()); elem != nil {
			return &textPlan{kind: t.Kind(), elem: elem}
		}
	case reflect.Struct:
		return planFields(t)
	}
	return nil
}

func planFields(t reflect.Type) *textPlan {
	p := &textPlan{kind: reflect.Struct}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Tag.Get("text") == "-" {
			continue
		}
		if plan := textsOf(f.Type); plan != nil {
			p.fields = append(p.fields, textField{
				index: i, name: nameOnWire(f), rule: ruleOf(f.Tag.Get("text")), plan: plan,
			})
		}
	}
	if len(p.fields) == 0 {
		return nil
	}
	return p
}

// nameOnWire is what a field is called in JSON; "" for one whose fields are those of what it is part of.
func nameOnWire(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" && !f.Anonymous {
		return f.Name
	}
	return name
}

// ruleOf reads a tag. A wrong one is found by TestTextTags.
func ruleOf(tag string) *textRule {
	if tag == "" {
		return nil
	}
	size, lines, _ := strings.Cut(tag, ",")
	n, _ := strconv.Atoi(size)
	return &textRule{max: n, lines: lines == "lines"}
}

func (p *textPlan) check(v reflect.Value, rule textRule, path string) error {
	if p == nil {
		return nil
	}
	switch p.kind {
	case reflect.String:
		return rule.check(v.String(), path)
	case reflect.Pointer:
		if !v.IsNil() {
			return p.elem.check(v.Elem(), rule, path)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := p.elem.check(v.Index(i), rule, path); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := p.elem.check(it.Value(), rule, path); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return p.checkFields(v, rule, path)
	}
	return nil
}

func (p *textPlan) checkFields(v reflect.Value, rule textRule, path string) error {
	for i := range p.fields {
		f := &p.fields[i]
		own, at := rule, path
		if f.rule != nil {
			own = *f.rule
		}
		if f.name != "" {
			at = strings.TrimPrefix(path+"."+f.name, ".")
		}
		if err := f.plan.check(v.Field(f.index), own, at); err != nil {
			return err
		}
	}
	return nil
}

func (r textRule) check(text, path string) error {
	if len(text) > r.max {
		return cluster.Errorf(cluster.Invalid, cluster.ErrTooBig,
			"%s has %d bytes, more than %d: shorten it", path, len(text), r.max)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return cluster.Errorf(cluster.Invalid, cluster.ErrText, "%s has a NUL byte in it", path)
	}
	if !r.lines && strings.ContainsAny(text, "\n\r") {
		return cluster.Errorf(cluster.Invalid, cluster.ErrText, "%s has a line end in it: write it on one line", path)
	}
	return nil
}
