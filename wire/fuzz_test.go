package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// digits has names that encoding/json does not match without case.
type digits struct {
	One   int              `json:"1"`
	Two   string           `json:"2"`
	Three []digits         `json:"3"`
	Four  map[string]uint8 `json:"4"`
	Five  *float64         `json:"5"`
	Six   any              `json:"6"`
	Seven [2]bool          `json:"7"`
	Eight time.Time        `json:"8"`
	Nine  cluster.BlobText `json:"9"`
	Ten   map[int8][]byte  `json:"10"`
	Set   cluster.IDSet    `json:"11"`
}

func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`{}`, `null`, ` [1,-0.5e+3,"\ud834\udd1e\u00e9\n",true,false,null,{"a":{}}] `, `{"1":1,"1":2,"2":"x","3":[{"1":3}],"4":{"a":255},"5":1e-7}`,
		`{"6":{"b":[]},"7":[true],"8":"2024-02-29T12:00:00.5+01:00","9":"b64:AAE=","10":{"-1":"AQI="},"11":"0-3,8"}`, `{"1":1.0}`, `{"4":{"a":256}}`,
		`{"2":"\ud800x\udc00"}`, "{\"2\":\"\xff\"}", `[1e999]`, `-`, `-0`, `[1,]`, `{"a"}`, `"\u12"`, `{"3":[{"1":1}],"3":[{"2":"a"},{}],"3":[]}`, `{"2":"a\u0000b"}`,
		`{"8":null,"9":null,"10":null,"11":null}`, `{"10":{"300":""}}`, `{"\u0031":1}`, "\u2028", "[\"\x7f\u2028<>&\"]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, v := range [][2]any{
			{new(any), new(any)}, {new(digits), new(digits)}, {new(wire.RawMessage), new(wire.RawMessage)},
		} {
			werr, gerr := json.Unmarshal(in, v[0]), wire.Unmarshal(in, v[1])
			if (werr == nil) != (gerr == nil) {
				t.Fatalf("%T: encoding/json: %v, wire: %v", v[0], werr, gerr)
			}
			if werr != nil {
				continue
			}
			if !reflect.DeepEqual(v[0], v[1]) {
				t.Fatalf("%T: %+v, want %+v", v[0], v[1], v[0])
			}
			want, werr := json.Marshal(v[0])
			got, gerr := wire.Marshal(v[1])
			if (werr == nil) != (gerr == nil) || !bytes.Equal(got, want) {
				t.Fatalf("%s %v, want %s %v", got, gerr, want, werr)
			}
		}
	})
}

// FuzzTypes: whatever text comes for a type that travels or is stored, all ways of reading it agree, and what is read
// can be written and read again.
func FuzzTypes(f *testing.F) {
	list := types()
	r := filler{rand.New(rand.NewPCG(8, 9))}
	for i, sample := range list {
		for range 3 {
			v := reflect.New(reflect.TypeOf(sample))
			r.fill(v.Elem(), 3)
			whole(v.Interface())
			if text, err := wire.Marshal(v.Interface()); err == nil && len(text) < 4096 {
				f.Add(uint8(i), text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, in []byte) {
		typ := reflect.TypeOf(list[int(kind)%len(list)])
		read := func(how func([]byte, any) error, in []byte) (any, error) {
			v := reflect.New(typ).Interface()
			err := how(in, v)
			whole(v)
			return v, err
		}
		want, err := read(wire.Unmarshal, in)
		if got, serr := read(wire.UnmarshalStrict, in); serr == nil {
			same(t, "strictly", got, want, err)
		} else if err == nil && !errors.Is(serr, wire.ErrUnknown) {
			t.Fatalf("%v: strictly: %v", typ, serr)
		}
		var d wire.Decoder
		buf := bytes.Clone(in)
		first, derr := read(d.Decode, buf)
		for i := range buf {
			buf[i] = '#'
		}
		second, derr2 := read(d.Decode, in)
		if (derr == nil) != (err == nil) || (derr2 == nil) != (err == nil) {
			t.Fatalf("%v: %v, by a Decoder %v, again %v", typ, err, derr, derr2)
		}
		if err != nil {
			return
		}
		same(t, "by a Decoder", first, want, nil)
		same(t, "by a Decoder that has read it before", second, want, nil)
		once, err := again(t, typ, want)
		if err != nil {
			return // e.g. a year that JSON cannot write
		}
		twice, err := again(t, typ, once) // a list of none in a struct of zeros is lost once
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		same(t, "again", twice, once, nil)
	})
}

// again is a value that was written and read; that it cannot be written is an error.
func again(t *testing.T, typ reflect.Type, v any) (any, error) {
	t.Helper()
	text, err := wire.Marshal(v)
	if err != nil {
		return nil, err
	}
	back := reflect.New(typ).Interface()
	if err := wire.UnmarshalStrict(text, back); err != nil {
		t.Fatalf("%v: %s is not read: %v", typ, text, err)
	}
	return back, nil
}

// whole has lists of jobs written as they are: what is left out of brief ones is tested with their types.
func whole(v any) {
	switch list := v.(type) {
	case *api.JobsResponse:
		list.Brief = false
	case *api.HistoryResponse:
		list.Brief = false
	}
}

// same fails unless two values that were read from one text are written alike.
func same(t *testing.T, how string, got, want any, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%T: read %s, but else %v", want, how, err)
	}
	a, aerr := wire.Marshal(got)
	b, berr := wire.Marshal(want)
	if (aerr == nil) != (berr == nil) || !bytes.Equal(a, b) {
		t.Fatalf("%T: read %s it is %s %v, want %s %v", want, how, a, aerr, b, berr)
	}
}
