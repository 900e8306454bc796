package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dev.muster/wire"
)

// testdata/fields.N lists what the log and snapshots of level N may hold: kinds of commands and of records, and
// their fields. The list of a level that was once released never changes; -update writes that of the newest.
func fieldsFile(level int) string { return fmt.Sprintf("testdata/fields.%d", level) }

func readFields(t *testing.T, level int) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(fieldsFile(level))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		out[strings.TrimSpace(line)] = true
	}
	return out
}

// formats are the paths of all that the log and snapshots hold, with the level of each.
type formats struct {
	t     *testing.T
	level map[string]int
}

func allFormats(t *testing.T) formats {
	f := formats{t, map[string]int{}}
	f.walk("entry", reflect.TypeFor[envelope[wire.RawMessage]](), 0, nil)
	for _, c := range commands {
		f.level[c.kind] = c.since
		f.walk(c.kind, reflect.TypeOf(c.make()), c.since, nil)
	}
	f.walk("snapshot", reflect.TypeFor[snapshotHead](), 0, nil)
	f.walk("record", reflect.TypeFor[snapshotRecord](), 0, nil)
	return f
}

// walk notes what a type at a path has, which begins at a level. above are the types on the way there.
func (f formats) walk(path string, typ reflect.Type, level int, above []reflect.Type) {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, typ.Kind()) {
		typ = typ.Elem()
	}
	_, marshals := reflect.PointerTo(typ).MethodByName("UnmarshalJSON")
	if typ.Kind() != reflect.Struct || marshals || slices.Contains(above, typ) || typ.PkgPath() == "time" {
		return
	}
	above = append(slices.Clip(above), typ)
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
			continue
		case name == "" && field.Anonymous:
			f.walk(path, field.Type, level, above)
			continue
		}
		at, since := path+"."+name, level
		if text := field.Tag.Get("since"); text != "" {
			since, _ = fieldSince(field)
			if since < 1 || since > Newest || !strings.Contains(option, "omit") {
				f.t.Errorf("%s of %v: since:%q wants a level from 1 to %d, and omitempty", name, typ, text, Newest)
			}
			since = max(since, level)
		}
		f.level[at] = since
		f.walk(at, field.Type, since, above)
	}
}

// upTo lists what is known at a level.
func (f formats) upTo(level int) map[string]bool {
	out := map[string]bool{}
	for path, since := range f.level {
		if since <= level {
			out[path] = true
		}
	}
	return out
}

// TestLevels: whatever is added to the log or to snapshots begins at a level of its own, so that servers which do
// not know it are never sent it.
func TestLevels(t *testing.T) {
	all := allFormats(t)
	if *update {
		text := strings.Join(slices.Sorted(maps.Keys(all.upTo(Newest))), "\n") + "\n"
		if err := os.WriteFile(fieldsFile(Newest), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for level := range Newest + 1 {
		want, got := readFields(t, level), all.upTo(level)
		for path := range got {
			if !want[path] {
				t.Errorf("level %d had no %s: raise Newest and tag it since:\"%d\"; "+
					"if level %d was never released, -update", level, path, Newest+1, Newest)
			}
		}
		for path := range want {
			if !got[path] {
				t.Errorf("level %d had %s, which is gone: leave it, or name it retired", level, path)
			}
		}
	}
}

// paths lists those of a JSON value that are in formats.
func paths(at string, v any, known map[string]int, out map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			paths(at, e, known, out)
		}
	case map[string]any:
		for k, e := range v {
			next := at + "." + k
			if _, field := known[next]; !field {
				next = at // the key of a map
			} else {
				out[next] = true
			}
			paths(next, e, known, out)
		}
	}
}

// TestAtLevel fills commands with all that they may say: what a server of an older level is sent of it has nothing
// in it that the level does not know, and what can not be left out is refused.
func TestAtLevel(t *testing.T) {
	all := allFormats(t)
	r := rand.New(rand.NewPCG(1, 2))
	for level := range Newest {
		known := readFields(t, level)
		for _, c := range commands {
			for range 20 {
				cmd := c.make()
				fillSome(r, reflect.ValueOf(cmd).Elem(), 0)
				old, err := AtLevel(cmd, level)
				if err != nil {
					if e := new(Error); !errors.As(err, &e) || !strings.Contains(err.Error(), "upgrade them all") {
						t.Fatalf("%s: %v", c.kind, err)
					}
					continue
				}
				text, err := wire.Marshal(old)
				if err != nil {
					t.Fatal(err)
				}
				var v any
				if err := json.Unmarshal(text, &v); err != nil {
					t.Fatal(err)
				}
				said := map[string]bool{}
				paths(c.kind, v, all.level, said)
				for path := range said {
					if !known[path] {
						t.Errorf("level %d is sent %s: %s", level, path, text)
					}
				}
			}
		}
	}
	same := &NodeSet{Active: &[]string{"a"}}
	if got, err := AtLevel(same, Newest); err != nil || got != Command(same) {
		t.Errorf("at the newest level: %v, %v", got, err)
	}
	if _, err := AtLevel(same, 0); err == nil || !strings.Contains(err.Error(), "Active is known from level 1") {
		t.Errorf("what can not be left out: %v", err)
	}
	up := &NodeUp{Name: "n", Inventory: Inventory{CPUs: 3, Inactive: []string{"x"}}}
	got, err := AtLevel(up, 0)
	if err != nil {
		t.Fatal(err)
	}
	if inv := got.(*NodeUp).Inventory; inv.Inactive != nil || inv.CPUs != 3 {
		t.Errorf("what is optional is left out, and nothing else: %+v", inv)
	}
	if up.Inventory.Inactive == nil {
		t.Error("the command itself was changed")
	}
}

// fillSome sets about half of what a value has.
func fillSome(r *rand.Rand, v reflect.Value, depth int) {
	if !v.CanSet() || depth > 6 || depth > 0 && r.IntN(3) == 0 {
		return
	}
	if _, marshals := v.Addr().Type().MethodByName("UnmarshalJSON"); marshals {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillSome(r, v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillSome(r, v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillSome(r, value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fillSome(r, v.Field(i), depth+1)
		}
	}
}

// TestNewerLevel: a log or a snapshot of a level that this program does not know ends with a sentence, and changes
// nothing.
func TestNewerLevel(t *testing.T) {
	line, err := EncodeEntry(Entry{At: epoch, Cmd: &RaiseLevel{Level: Newest + 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeEntry(line); !errors.Is(err, ErrNewer) {
		t.Errorf("an entry of the next level: %v", err)
	}
	unknown := bytes.Replace(line, []byte(`"body":{`), []byte(`"body":{"other":1,`), 1)
	if _, err := DecodeEntry(unknown); !errors.Is(err, ErrNewer) {
		t.Errorf("an entry with a field that is not known: %v", err)
	}
	w := newWorld(t, 1)
	if w.s.Level() != Newest {
		t.Errorf("level %d after it was raised to %d", w.s.Level(), Newest)
	}
	text := encoded(t, w.s)
	same, err := Decode(bytes.NewReader(text))
	if err != nil || same.Level() != Newest {
		t.Errorf("a snapshot of this level: %v", err)
	}
	next := bytes.Replace(text, fmt.Appendf(nil, `"level":%d`, Newest), fmt.Appendf(nil, `"level":%d`, Newest+1), 1)
	if _, err := Decode(bytes.NewReader(next)); !errors.Is(err, ErrNewer) {
		t.Errorf("a snapshot of the next level: %v", err)
	}
	w.ok(sys, &RaiseLevel{Level: 0})
	if w.s.Level() != Newest {
		t.Error("the level was lowered")
	}
}

// breaks is a command that meets a defect.
type breaks struct{}

func (*breaks) kind() string { return "breaks" }
func (*breaks) apply(t *tx) (any, error) {
	t.NextID += 7
	t.onUndo(func() { t.NextID -= 7 })
	panic("the books do not balance")
}

// TestPanicInApply: a defect takes back what its command did, and is told with its stack.
func TestPanicInApply(t *testing.T) {
	s := NewState()
	before := content(t, s)
	out := s.Apply(Entry{Index: 1, At: epoch, Cmd: &breaks{}})
	if out.Err == nil || out.Err.Code != Internal {
		t.Errorf("it was refused with %v", out.Err)
	}
	for _, want := range []string{"the books do not balance", "level_test.go"} {
		if !strings.Contains(out.Panic, want) {
			t.Errorf("no %q in what is told: %s", want, out.Panic)
		}
	}
	if after := content(t, s); after != before {
		t.Errorf("it left %s, was %s", after, before)
	}
}
