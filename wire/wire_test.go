package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

type color uint8

func (c color) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "<%d>", c), nil }

func (c *color) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "<%d>", c)
	return err
}

type spaced struct{ N int }

func (s spaced) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, " { \"n\" :\n[ %d , \"a b & \u2028\", {} ] } ", s.N), nil
}

func (s *spaced) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(strings.Join(strings.Fields(string(b)), ""), `{"n":[%d`, &s.N)
	return err
}

type inner struct {
	Hidden int `json:"a"`
	Deep   string
}

type Outer struct{ inner }

// kinds has a field of every kind that the codec knows.
type kinds struct {
	Outer
	A     int                `json:"a"`
	Name  string             `json:"name,omitempty"`
	HTML  string             `json:"<h>&"`
	I8    int8               `json:"i8,omitempty"`
	U64   uint64             `json:"u64,omitempty"`
	F     float64            `json:"f"`
	F32   float32            `json:"f32,omitempty"`
	B     bool               `json:"b,omitempty"`
	Bytes []byte             `json:"bytes"`
	Raw   wire.RawMessage    `json:"raw,omitempty"`
	Any   any                `json:"any"`
	M     map[string]int     `json:"m,omitempty"`
	MI    map[int16]string   `json:"mi"`
	MU    map[uint8]*inner   `json:"mu,omitzero"`
	MT    map[color]bool     `json:"mt"`
	Arr   [3]int             `json:"arr,omitzero"`
	Arr8  [2]byte            `json:"arr8"`
	ArrE  [2]byte            `json:"arr_e,omitempty"`
	F0    float64            `json:"f0,omitempty"`
	L     []inner            `json:"l"`
	PP    **int              `json:"pp"`
	Self  []*kinds           `json:"self,omitempty"`
	T     time.Time          `json:"t"`
	TZ    time.Time          `json:"tz,omitzero"`
	PT    *time.Time         `json:"pt,omitempty"`
	D     time.Duration      `json:"d"`
	C     color              `json:"c,omitempty"`
	PC    *color             `json:"pc"`
	S     spaced             `json:"s"`
	PS    *spaced            `json:"ps,omitempty"`
	IP    netip.Addr         `json:"ip,omitzero"`
	Set   *cluster.IDSet     `json:"set,omitempty"`
	Empty struct{}           `json:"empty,omitempty"`
	Iface fmt.Stringer       `json:"iface"`
	Blobs []cluster.BlobText `json:"blobs,omitempty"`
	Skip  int                `json:"-"`
}

// types are what travels or is stored.
func types() []any {
	return []any{kinds{}, api.SubmitRequest{}, api.SubmitResponse{}, api.TestResponse{},
		api.WriteResponse{}, api.JobQuery{}, api.JobsResponse{},
		api.WaitRequest{}, api.WaitResponse{}, api.WhyRequest{}, api.WhyResponse{}, api.ScriptRequest{},
		api.ScriptResponse{}, api.NodeQuery{},
		api.NodesResponse{}, api.ClusterResponse{}, api.StepQuery{}, api.StepsResponse{},
		api.PingResponse{}, api.RegisterRequest{},
		api.RegisterResponse{}, api.ReportRequest{}, api.WorkRequest{}, api.Work{}, api.BlobRequest{},
		api.BlobResponse{}, api.StepRequest{},
		api.StepResponse{}, api.StepSignal{}, api.AttachRequest{}, api.HistoryQuery{},
		api.HistoryResponse{}, api.Error{},
		cluster.PutBlob{}, cluster.Submit{}, cluster.UpdateJob{}, cluster.HoldJobs{}, cluster.Requeue{},
		cluster.Suspend{}, cluster.TakeTurns{}, cluster.Cancel{},
		cluster.Finish{}, cluster.Decide{}, cluster.Report{}, cluster.Expire{}, cluster.Purge{},
		cluster.NodeUp{}, cluster.NodeDown{},
		cluster.NodeSet{}, cluster.PartitionSet{}, cluster.Configure{}, cluster.Event{}, cluster.Blob{},
		cluster.Config{}, cluster.Load{}, cluster.TokenPut{}, cluster.Token{}, cluster.Member{},
		step.Spec{}, step.Status{}, step.ID{}}
}

// filler fills values at random.
type filler struct{ *rand.Rand }

func (r filler) text() string {
	words := []string{
		"", "a", "gpu", "node001", "x\ny\t\"q\"\\", "<b>&amp;", "äöü€𝄞", "\u2028\u2029",
		"\xff\xfe bad", "b64:x", "\x00\x1f\x7f", strings.Repeat("long ", 20),
	}
	return words[r.IntN(len(words))]
}

func (r filler) time() time.Time {
	t := time.Unix(r.Int64N(4e9), r.Int64N(1e9)).UTC()
	switch r.IntN(4) {
	case 0:
		return time.Time{}
	case 1:
		return t.In(time.FixedZone("", 60*(r.IntN(1400)-700)))
	case 2:
		return t.Truncate(time.Second)
	}
	return t
}

func (r filler) fill(v reflect.Value, depth int) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = r.time()
		return
	case *cluster.IDSet:
		*x = cluster.NewIDSet(r.IntN(9), r.IntN(200), r.IntN(200))
		return
	case *wire.RawMessage:
		*x = wire.RawMessage(`{"a" : [1, "<", null ]}`)
		return
	case *netip.Addr:
		*x = netip.AddrFrom4([4]byte{byte(r.IntN(256)), 1})
		return
	}
	few := func() int {
		if depth > 5 {
			return 0
		}
		return r.IntN(4)
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64() >> r.IntN(64) * int64(1-2*r.IntN(2)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(65))
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{
			0, math.Copysign(0, -1), -0.5, 1e-7, 1e21, 3.25e-300, 12345678, 1e20, math.MaxFloat32, 1e-9,
			r.NormFloat64(),
		}[r.IntN(11)])
	case reflect.String:
		v.SetString(r.text())
	case reflect.Slice:
		if r.IntN(4) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), few(), 9))
		}
		for i := range v.Len() {
			r.fill(v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			r.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if r.IntN(4) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range few() {
				k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				r.fill(k, depth+1)
				r.fill(e, depth+1)
				v.SetMapIndex(k, e)
			}
		}
	case reflect.Pointer:
		if few() > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); v.Type().Field(i).Anonymous && f.Kind() == reflect.Pointer { // is always there after reading
				f.Set(reflect.New(f.Type().Elem()))
				r.fill(f.Elem(), depth+1)
			} else if f.CanSet() && r.IntN(3) > 0 {
				r.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Interface:
		if v.NumMethod() == 0 {
			list := []any{
				nil, true, 1.5, "x", []any{nil, "y"}, map[string]any{"b": 1.0, "a": []any{}},
				&inner{1, "z"}, inner{2, ""},
			}
			v.Set(reflect.ValueOf(&list[r.IntN(len(list))]).Elem())
		}
	}
}

// TestAgainstEncodingJSON writes and reads random values of all types with both codecs.
func TestAgainstEncodingJSON(t *testing.T) {
	for _, sample := range types() {
		typ := reflect.TypeOf(sample)
		t.Run(typ.String(), func(t *testing.T) {
			r := filler{rand.New(rand.NewPCG(1, 2))}
			for range 100 {
				v := reflect.New(typ)
				r.fill(v.Elem(), 0)
				whole(v.Interface())
				want, werr := json.Marshal(v.Interface())
				got, gerr := wire.Marshal(v.Interface())
				if werr != nil || gerr != nil {
					if (werr == nil) != (gerr == nil) {
						t.Fatalf("wire: %v, encoding/json: %v", gerr, werr)
					}
					continue
				}
				if !bytes.Equal(got, want) && !(holdsOrdered(typ) && sameMembers(got, want)) {
					t.Fatalf("written otherwise:\n%s\n%s", got, want)
				}
				a, b := reflect.New(typ), reflect.New(typ)
				werr, gerr = json.Unmarshal(want, a.Interface()), wire.Unmarshal(want, b.Interface())
				fillBehind(a.Elem())
				if (werr == nil) != (gerr == nil) {
					t.Fatalf("wire: %v, encoding/json: %v\n%s", gerr, werr, want)
				}
				if werr == nil && !reflect.DeepEqual(a.Interface(), b.Interface()) {
					t.Fatalf("read otherwise: %s", want)
				}
			}
		})
	}
}

// holdsOrdered reports whether a type has something in it whose fields are written in an order of its own.
func holdsOrdered(typ reflect.Type) bool {
	seen := map[reflect.Type]bool{}
	var holds func(reflect.Type) bool
	holds = func(typ reflect.Type) bool {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			return holds(typ.Elem())
		case reflect.Struct:
		default:
			return false
		}
		if seen[typ] {
			return false
		}
		seen[typ] = true
		for i := range typ.NumField() {
			if holds(typ.Field(i).Type) {
				return true
			}
		}
		return typ.Implements(reflect.TypeFor[wire.Ordered]())
	}
	return holds(typ)
}

// sameMembers reports whether two texts have the same members, in whatever order.
func sameMembers(a, b []byte) bool {
	var values [2]any
	for i, text := range [][]byte{a, b} {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		if dec.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// TestOrdered: fields are written in the order of their type, those without a place behind.
func TestOrdered(t *testing.T) {
	v := ordered{inOrder{1, 2}, 3, 4, 5}
	const want = `{"c":3,"a":1,"d":4,"e":5}`
	got, err := wire.Marshal(&v)
	if err != nil || string(got) != `{"c":3,"b":2,"a":1,"d":4,"e":5}` {
		t.Errorf("%s %v", got, err)
	}
	v.B = 0
	if got, err := wire.Marshal(v); err != nil || string(got) != want {
		t.Errorf("%s %v, want %s", got, err, want)
	}
	var again ordered
	if err := wire.UnmarshalStrict([]byte(want), &again); err != nil || again != v {
		t.Errorf("%+v %v, want %+v", again, err, v)
	}
}

type inOrder struct {
	A int `json:"a"`
	B int `json:"b,omitempty"`
}

type ordered struct {
	inOrder
	C int `json:"c"`
	D int `json:"d"`
	E int `json:"e"`
}

func (ordered) FieldOrder() []string { return []string{"c", "gone", "b", "a"} }

// fillBehind makes what embedded pointers lead to where encoding/json has found nothing for it.
func fillBehind(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		fillBehind(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			fillBehind(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if f.Kind() == reflect.Pointer && f.IsNil() && f.CanSet() && v.Type().Field(i).Anonymous {
				f.Set(reflect.New(f.Type().Elem()))
			}
			fillBehind(f)
		}
	}
}

func TestIndent(t *testing.T) {
	r := filler{rand.New(rand.NewPCG(3, 4))}
	for range 100 {
		var v kinds
		r.fill(reflect.ValueOf(&v).Elem(), 0)
		want, werr := json.MarshalIndent(&v, "  ", "\t")
		got, gerr := wire.AppendIndent([]byte("x"), &v, "  ", "\t")
		if (werr == nil) != (gerr == nil) || werr == nil && string(got) != "x"+string(want) {
			t.Fatalf("%s %v\n%s %v", got, gerr, want, werr)
		}
	}
}

func TestMarshalErrors(t *testing.T) {
	twice := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`}})
	type byPointer struct{ *inner }
	type Half struct{ A int }
	type Other struct{ B int }
	for _, c := range []struct {
		v    any
		want string
	}{
		{map[string]any{"a": []any{1, math.NaN()}}, "a[1]: there is no JSON for NaN"},
		{[]kinds{{F: math.Inf(1)}}, "[0].f: there is no JSON for +Inf"},
		{make(chan int), "cannot encode or decode a chan int"},
		{struct{ F func() }{}, "F: cannot encode or decode a func()"},
		{reflect.Zero(twice).Interface(), "two fields of " + twice.String() + " are named x"},
		{byPointer{}, "wire_test.byPointer embeds a pointer"},
		{struct {
			*Half
			*Other
		}{}, "struct { *wire_test.Half; *wire_test.Other } embeds a pointer"},
		{struct {
			N int `json:"n,string"`
		}{}, "struct { N int \"json:\\\"n,string\\\"\" } uses the tag option string"},
		{map[float64]int{1: 1}, "a float64 cannot name a member"},
		{wire.RawMessage("{"), "want a string, got the end at byte 1"},
		{wire.RawMessage("{1:2}"), "want a string, got a number at byte 1"},
		{wire.RawMessage("1 2"), "want the end, got a number at byte 2"},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "Time.AppendText: year outside of range [0,9999]"},
	} {
		if _, err := wire.Marshal(c.v); err == nil || err.Error() != c.want {
			t.Errorf("%T: %v, want %s", c.v, err, c.want)
		}
	}
	if b, err := wire.Marshal(nil); err != nil || string(b) != "null" {
		t.Errorf("nil: %s %v", b, err)
	}
}

func TestUnmarshalErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, "want an object, got the end at byte 0"},
		{`[]`, "want an object, got a list at byte 0"},
		{`{"jobs":[{},{"spec":{"limit":"x"}}]}`, `jobs[1].spec.limit: want a number, got a string at byte 29`},
		{`{"jobs":{}}`, "jobs: want a list, got an object at byte 8"},
		{`{"index":-1}`, "index: -1 does not fit uint64 at byte 9"},
		{`{"index":1.5}`, "index: 1.5 does not fit uint64 at byte 9"},
		{`{"index":1e3}`, "index: 1e3 does not fit uint64 at byte 9"},
		{`{"index":01}`, "want a comma or the end of the object, got a number at byte 10"},
		{`{"now":1}`, "now: want a time: Time.UnmarshalJSON: input is not a JSON string at byte 7"},
		{`{"now":"yesterday"}`, `now: want a time: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006" at byte 7`},
		{`{"jobs":[{"tasks":"5-1"}]}`, `jobs[0].tasks: bad cluster.IDSet: invalid range "5-1" at byte 18`},
		{`{"jobs":[{"tasks":5}]}`, `jobs[0].tasks: want a string, got a number at byte 18`},
		{`{"unknown":{"a":[}]}}`, "want a value, got '}' at byte 17"},
		{`{"unknown":"\x"}`, "an unknown escape in a string at byte 13"},
		{`{"unknown":"` + "\n" + `"}`, "a control character in a string at byte 12"},
		{`{"unknown":"\ud8"}`, "an unknown escape in a string at byte 13"},
		{`{"unknown":tru}`, "want true, false or null, got a boolean at byte 11"},
		{`{"index":nul}`, "index: want a number, got null at byte 9"},
		{`{"index":1,}`, "want a string, got '}' at byte 11"},
		{`{"index" 1}`, "want a colon, got a number at byte 9"},
		{`{"index":1} x`, "want the end, got 'x' at byte 12"},
		{`{"index":1`, "want a comma or the end of the object, got the end at byte 10"},
		{`{"unknown":` + strings.Repeat("[", 20_000), "nested too deeply at byte 10010"},
		{strings.Repeat(`{"unknown":`, 20_000), "nested too deeply at byte 110000"},
		{"\xef\xbb\xbf{}", "want an object, got 'ï' at byte 0"},
	} {
		var r api.JobsResponse
		if err := wire.Unmarshal([]byte(c.in), &r); err == nil || err.Error() != c.want {
			t.Errorf("%.40s: %v, want %s", c.in, err, c.want)
		}
	}
	for _, v := range []any{nil, api.JobsResponse{}, (*api.JobsResponse)(nil)} {
		if wire.Unmarshal([]byte("{}"), v) == nil {
			t.Errorf("%T: decoded into what is no pointer", v)
		}
	}
	var s fmt.Stringer
	if wire.Unmarshal([]byte("{}"), &s) == nil {
		t.Error("decoded into an interface with methods")
	}
}

// TestDepth reads what is nested as deeply as encoding/json permits, and nothing deeper.
// TestStrict: what a type knows nothing of is an error that names it, at any depth, but for fields that it once had.
func TestStrict(t *testing.T) {
	type part struct {
		_ struct{} `retired:"was,that"`
		A int      `json:"a"`
	}
	type whole struct {
		Parts []part          `json:"parts"`
		More  map[string]part `json:"more"`
	}
	for in, want := range map[string]string{
		`{"parts":[{"a":1}],"more":{"x":{"a":2}}}`:    "",
		`{"parts":[{"a":1,"was":2,"that":{"b":[]}}]}`: "",
		`{"was":1}`:                    `"was": unknown field at byte 7`,
		`{"parts":[{"a":1},{"A":2}]}`:  `parts[1]: "A": unknown field at byte 23`,
		`{"more":{"x":{"a":1,"b":2}}}`: `more.x: "b": unknown field at byte 24`,
	} {
		var v whole
		err := wire.UnmarshalStrict([]byte(in), &v)
		if (err == nil) != (want == "") || err != nil && (err.Error() != want || !errors.Is(err, wire.ErrUnknown)) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
		if err := wire.Unmarshal([]byte(in), &v); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestDepth(t *testing.T) {
	for _, n := range []int{9_999, 10_000, 10_001} {
		in := []byte(strings.Repeat("[", n) + strings.Repeat("]", n))
		var a, b any
		werr, gerr := json.Unmarshal(in, &a), wire.Unmarshal(in, &b)
		if (werr == nil) != (gerr == nil) {
			t.Errorf("depth %d: wire %v, encoding/json %v", n, gerr, werr)
		}
	}
}

// TestMerge decodes into values that hold something: null, lists, maps and pointers behave alike.
func TestMerge(t *testing.T) {
	for _, in := range []string{`{"a":null,"name":null,"bytes":null,"any":null,"m":null,"l":null,"pp":null,"t":null,"c":null,"pc":null,"ps":null,"arr":null,"raw":null}`,
		`{"l":[{"a":7}],"m":{"b":2},"arr":[9],"pp":5,"mu":{"1":{"a":1}},"bytes":[1,2],"self":[{"a":1},{}]}`,
		`{"l":[{"a":7},{"Deep":"x"}],"l":[{"Deep":"y"}],"l":[{},{},{}],"arr":[1,2,3,4,5],"bytes":""}`,
		`{"A":1,"NAME":"not ours"}`} {
		var v [2]kinds
		for i := range v {
			n := 3
			p := &n
			c := color(4)
			v[i] = kinds{A: 1, Name: "n", Bytes: []byte("abc"), Any: 1.0, M: map[string]int{"a": 1},
				L: []inner{{1, "d"}, {2, "e"}}, PP: &p,
				T: time.Unix(5, 0).UTC(), C: 2, PC: &c, PS: &spaced{1}, Arr: [3]int{1, 2, 3},
				MU: map[uint8]*inner{1: {5, "q"}}}
		}
		if strings.Contains(in, "NAME") { // encoding/json ignores case, this package does not
			if err := wire.Unmarshal([]byte(in), &v[0]); err != nil || !reflect.DeepEqual(v[0], v[1]) {
				t.Errorf("%s: %v %+v", in, err, v[0])
			}
			continue
		}
		werr, gerr := json.Unmarshal([]byte(in), &v[0]), wire.Unmarshal([]byte(in), &v[1])
		if werr != nil || gerr != nil || !reflect.DeepEqual(v[0], v[1]) {
			t.Errorf("%s: %v %v\n%+v\n%+v", in, werr, gerr, v[0], v[1])
		}
	}
}

func jobs(n int) *api.JobsResponse {
	r := &api.JobsResponse{Index: 12345, Now: time.Unix(1_700_000_000, 5).UTC()}
	for i := range n {
		j := &cluster.Job{ID: cluster.JobID(i + 1), Task: cluster.TaskAny, Wait: cluster.WaitPriority,
			Submitted: r.Now, Eligible: r.Now,
			Spec: &cluster.JobSpec{Name: fmt.Sprint("wrap", i), UID: 1000, User: "alice",
				Account: "physics", QOS: "normal", Partitions: []string{"batch"},
				Limit: time.Hour, Layout: &cluster.Layout{Tasks: 4, CPUsPerTask: 2, MinNodes: 1}}}
		r.Jobs = append(r.Jobs, j)
	}
	return r
}

func bench(b *testing.B, size int, f func() error) {
	b.ReportAllocs()
	b.SetBytes(int64(size))
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshalJobs(b *testing.B) {
	v := jobs(1000)
	text, _ := wire.Marshal(v)
	b.Run("wire", func(b *testing.B) {
		bench(b, len(text), func() error { _, err := wire.Marshal(v); return err })
	})
	b.Run("encoding-json", func(b *testing.B) {
		bench(b, len(text), func() error { _, err := json.Marshal(v); return err })
	})
}

func BenchmarkUnmarshalJobs(b *testing.B) {
	text, _ := wire.Marshal(jobs(1000))
	b.Run("wire", func(b *testing.B) {
		bench(b, len(text), func() error { var r api.JobsResponse; return wire.Unmarshal(text, &r) })
	})
	b.Run("encoding-json", func(b *testing.B) {
		bench(b, len(text), func() error { var r api.JobsResponse; return json.Unmarshal(text, &r) })
	})
}

// TestEntry writes what encoding/json would for an entry of the log, body and all.
func TestEntry(t *testing.T) {
	r := filler{rand.New(rand.NewPCG(5, 6))}
	for range 100 {
		e := cluster.Entry{At: r.time(), By: cluster.Identity{UID: 7, User: "<u>"}}
		var cmd cluster.Submit
		r.fill(reflect.ValueOf(&cmd).Elem(), 0)
		e.Cmd = &cmd
		want, err := json.Marshal(struct {
			V    int              `json:"v"`
			Kind string           `json:"kind"`
			At   time.Time        `json:"at"`
			By   cluster.Identity `json:"by"`
			Body any              `json:"body"`
		}{cluster.EnvelopeVersion, "submit", e.At, e.By, e.Cmd})
		got, gerr := cluster.EncodeEntry(e)
		if err != nil || gerr != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s %v\n%s %v", got, gerr, want, err)
		}
		back, err := cluster.DecodeEntry(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := cluster.EncodeEntry(back)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := cluster.DecodeEntry(again); err != nil || !reflect.DeepEqual(same, back) {
			t.Fatalf("%+v %v\n%+v", same, err, back)
		}
	}
}

// TestShared: what is shared is never written to again.
func TestShared(t *testing.T) {
	type item struct {
		Spec *inner `json:"spec" wire:"shared"`
	}
	var got []item
	in := `[{"spec":{"a":1}},{"spec":{"a":1}},{"spec":{"a":1},"spec":{"Deep":"x"}},{"spec":{"a":1}},{"spec":null},{"spec":{"a":1 }}]`
	if err := wire.Unmarshal([]byte(in), &got); err != nil {
		t.Fatal(err)
	}
	one, deep := &inner{Hidden: 1}, &inner{Deep: "x"}
	if want := []item{{one}, {one}, {deep}, {one}, {nil}, {one}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got[0].Spec != got[1].Spec || got[0].Spec != got[3].Spec || got[0].Spec == got[5].Spec {
		t.Error("shared otherwise")
	}
}

// Part is embedded by pointer.
type Part struct {
	N    int    `json:"n,omitempty"`
	Text string `json:"text,omitempty"`
	Both string `json:"both,omitempty"`
}

// TestBehind: what an embedded pointer leads to is written and read as part of the struct; after reading it is there.
func TestBehind(t *testing.T) {
	type outer struct {
		First string `json:"first,omitempty"`
		*Part
		Both string `json:"both,omitempty"`
		Last int    `json:"last"`
	}
	for _, v := range []outer{
		{}, {Part: &Part{}}, {First: "a", Part: &Part{N: 1, Text: "x", Both: "hidden"}, Both: "b", Last: 2},
	} {
		want, err := json.Marshal(&v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Marshal(&v)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s, want %s: %v", got, want, err)
		}
		var back outer
		if err := wire.Unmarshal(got, &back); err != nil || back.Part == nil {
			t.Fatalf("%s became %+v: %v", got, back, err)
		}
		if v.Part == nil {
			v.Part = &Part{}
		}
		v.Part.Both = ""
		if !reflect.DeepEqual(back, v) {
			t.Errorf("%s became %+v", got, back)
		}
	}
}

// TestDecoder: texts that come one after the other in the same memory share what is equal, and one that is wrong
// harms no other.
func TestDecoder(t *testing.T) {
	var d wire.Decoder
	buf := make([]byte, 0, 1<<10)
	decode := func(text string) (*cluster.Job, error) {
		buf = append(buf[:0], text...)
		j := &cluster.Job{}
		return j, d.Decode(buf, j)
	}
	text := func(id int, name string) string { return fmt.Sprintf(`{"id":%d,"spec":{"name":%q,"uid":7}}`, id, name) }
	var jobs []*cluster.Job
	for i, name := range []string{"a", "b", "a"} {
		j, err := decode(text(i, name))
		if err != nil || j.Spec.Name != name {
			t.Fatal(j, err)
		}
		jobs = append(jobs, j)
		if _, err := decode(`{"id":1,"spec":{"name":[`); err == nil {
			t.Fatal("what ends too early was read")
		}
	}
	if jobs[0].Spec != jobs[2].Spec || jobs[0].Spec == jobs[1].Spec {
		t.Errorf("%p %p %p, want the first and the last the same", jobs[0].Spec, jobs[1].Spec, jobs[2].Spec)
	}
}

// TestDecoderStrict: one decoder for many texts refuses what it has no field for, as UnmarshalStrict does, and only
// when asked to.
func TestDecoderStrict(t *testing.T) {
	var d wire.Decoder
	var v struct{ A int }
	if err := d.DecodeStrict([]byte(`{"A":1,"b":2}`), &v); !errors.Is(err, wire.ErrUnknown) {
		t.Errorf("an unknown member: %v", err)
	}
	if err := d.Decode([]byte(`{"A":3,"b":2}`), &v); err != nil || v.A != 3 {
		t.Errorf("not strict any more: %v, %d", err, v.A)
	}
	if err := d.DecodeStrict([]byte(`{"A":4}`), &v); err != nil || v.A != 4 {
		t.Errorf("what is known: %v, %d", err, v.A)
	}
}
