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

// testdata/fields.N lists what the log and snapshots may hold from level N on: kinds of commands and of records, and
// their fields. The list of a level that was once released never changes; -update writes that of the newest.
func fieldsFile(level int) string { return fmt.Sprintf("testdata/fields.%d", level) }

// readFields reads what is known at a level.
func readFields(t *testing.T, level int) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for n := First; n <= level; n++ {
		text, err := os.ReadFile(fieldsFile(n))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			out[strings.TrimSpace(line)] = true
		}
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
	f.walk("entry", reflect.TypeFor[envelope[wire.RawMessage]](), First, nil)
	for _, c := range commands {
		f.level[c.kind] = c.since
		f.walk(c.kind, reflect.TypeOf(c.make()), c.since, nil)
	}
	f.walk("snapshot", reflect.TypeFor[snapshotHead](), First, nil)
	f.walk("record", reflect.TypeFor[snapshotRecord](), First, nil)
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
			if since <= First || since > Newest || !strings.Contains(option, "omit") {
				f.t.Errorf("%s of %v: since:%q wants a level from %d to %d, and omitempty",
					name, typ, text, First+1, Newest)
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
		fresh := all.upTo(Newest)
		maps.DeleteFunc(fresh, func(path string, _ bool) bool { return all.level[path] < Newest })
		text := strings.Join(slices.Sorted(maps.Keys(fresh)), "\n") + "\n"
		if err := os.WriteFile(fieldsFile(Newest), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for level := First; level <= Newest; level++ {
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
// in it that the level does not know, and what cannot be left out is refused.
func TestAtLevel(t *testing.T) {
	all := allFormats(t)
	r := rand.New(rand.NewPCG(1, 2))
	for level := First; level < Newest; level++ {
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
	_, err := AtLevel(same, First-1)
	if err == nil || !strings.Contains(err.Error(), "node_set is known from level 1") {
		t.Errorf("below the first level: %v", err)
	}
}

// TestDropNewer: what is optional of above a level is left out wherever it stands, and anything else of above it is
// refused.
func TestDropNewer(t *testing.T) {
	type inner struct {
		Old  int `json:"old"`
		Soft int `json:"soft,omitempty" since:"2,optional"`
		Hard int `json:"hard,omitempty" since:"2"`
	}
	type outer struct {
		In   inner            `json:"in"`
		List []*inner         `json:"list,omitempty"`
		Map  map[string]inner `json:"map,omitempty"`
	}
	fill := func(soft, hard int) *outer {
		in := inner{Old: 1, Soft: soft, Hard: hard}
		return &outer{In: in, List: []*inner{&in}, Map: map[string]inner{"k": in}}
	}
	soft := fill(3, 0)
	if err := dropNewer(reflect.ValueOf(soft).Elem(), 1); err != nil {
		t.Fatal(err)
	}
	if want := fill(0, 0); !reflect.DeepEqual(soft, want) {
		t.Errorf("what is optional is left out, and nothing else: %+v", soft)
	}
	err := dropNewer(reflect.ValueOf(fill(0, 3)).Elem(), 1)
	if err == nil || !strings.Contains(err.Error(), "Hard is known from level 2") {
		t.Errorf("what cannot be left out: %v", err)
	}
	all := fill(3, 3)
	if err := dropNewer(reflect.ValueOf(all).Elem(), 2); err != nil || !reflect.DeepEqual(all, fill(3, 3)) {
		t.Errorf("at its level: %+v, %v", all, err)
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
	before := bytes.Replace(text, fmt.Appendf(nil, `"level":%d`, Newest), []byte(`"level":0`), 1)
	if _, err := Decode(bytes.NewReader(before)); err == nil || !strings.Contains(err.Error(), "from before 0.1") {
		t.Errorf("a snapshot of before the first level: %v", err)
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
