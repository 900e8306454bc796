package hostlist

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	for _, c := range []struct{ in, want, err string }{
		{in: "", want: ""},
		{in: "a", want: "a"},
		{in: "a,b c\nd", want: "a b c d"},
		{in: "a[1-3]", want: "a1 a2 a3"},
		{in: "a[001-003,10]", want: "a001 a002 a003 a10"},
		{in: "a[9-11]", want: "a9 a10 a11"},
		{in: "a[099-101]", want: "a099 a100 a101"},
		{in: "a[1-2]b[1-2]", want: "a1b1 a1b2 a2b1 a2b2"},
		{in: "r[1-2]n[01]-ib", want: "r1n01-ib r2n01-ib"},
		{in: "a[1,1-2],a1", want: "a1 a1 a2 a1"},
		{in: "a[3,1-2]", want: "a3 a1 a2"},
		{in: "[1-2]", want: "1 2"},
		{in: "a[1", err: `host list "a[1": missing ]`},
		{in: "a1]", err: `host list "a1]": unbalanced ]`},
		{in: "a[[1]]", err: `host list "a[[1]]": bracket within a bracket`},
		{in: "a[]", err: `host list: invalid range "" in []`},
		{in: "a[3-1]", err: `host list: invalid range "3-1" in [3-1]`},
		{in: "a[x]", err: `host list: invalid range "x" in [x]`},
		{in: "a[1-]", err: `host list: invalid range "1-" in [1-]`},
		{in: "a[1-2-3]", err: `host list: invalid range "1-2-3" in [1-2-3]`},
		{in: "a\x01", err: `host list "a\x01": control character`},
		{in: "a[1-9999999999]", err: ErrTooMany.Error()},
		{in: "a[1-2000]b[1-2000]", err: ErrTooMany.Error()},
		{in: "a[1-1000000],b[1-1000000]", err: ErrTooMany.Error()},
	} {
		got, err := Expand(c.in)
		if text := errText(err); text != c.err || strings.Join(got, " ") != c.want {
			t.Errorf("Expand(%q) = %q, %q, want %q, %q", c.in, got, text, c.want, c.err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCompress(t *testing.T) {
	for _, c := range []struct{ in, want, sorted string }{
		{"", "", ""},
		{"a", "a", "a"},
		{"a1", "a1", "a1"},
		{"a3 a1 a2", "a[3,1-2]", "a[1-3]"},
		{"a1 a1 a2", "a[1,1-2]", "a[1,1-2]"},
		{"a001 a002 a10", "a[001-002,10]", "a[10,001-002]"},
		{"a9 a10 a11", "a[9-11]", "a[9-11]"},
		{"a099 a100", "a[099-100]", "a[099-100]"},
		{"n1-1 n1-2 n2-1", "n1-[1-2],n2-1", "n1-[1-2],n2-1"},
		{"a1 b1 a2", "a1,b1,a2", "a[1-2],b1"},
		{"a1x a2x", "a1x,a2x", "a1x,a2x"},
		{"1 2 3", "[1-3]", "[1-3]"},
	} {
		in := strings.Fields(c.in)
		if got := Compress(in); got != c.want {
			t.Errorf("Compress(%q) = %q, want %q", in, got, c.want)
		}
		if got := CompressSorted(in); got != c.sorted {
			t.Errorf("CompressSorted(%q) = %q, want %q", in, got, c.sorted)
		}
	}
}

// TestRoundTrip checks that Expand undoes Compress for names of every shape.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		names := make([]string, r.IntN(20))
		for i := range names {
			names[i] = []string{"a", "b-", "n1-", ""}[r.IntN(4)] + pad(r.Uint64N(120), r.IntN(4)) + []string{
				"", "", "", "x",
			}[r.IntN(4)]
		}
		got, err := Expand(Compress(names))
		if err != nil || !slices.Equal(got, names) {
			t.Fatalf("%q: Compress = %q, back %q, %v", names, Compress(names), got, err)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{
		"a[1-3]", "a[001-003,7]b[1-2],c", "a[", "]", "a[1-99999999999999999999]",
		"000000000000000000000001",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		names, err := Expand(s)
		if err != nil {
			return
		}
		if len(names) > MaxNames {
			t.Fatalf("%d names", len(names))
		}
		if len(names) > 4096 {
			return
		}
		again, err := Expand(Compress(names))
		if err != nil || !slices.Equal(again, names) {
			t.Fatalf("%q: back %q, %v", names, again, err)
		}
	})
}
