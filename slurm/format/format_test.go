package format

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

type pair struct{ a, b string }

var cols = []Column[pair]{
	{Code: 'a', Long: "alpha first", Head: "ALPHA", Of: func(p *pair) string { return p.a }},
	{Code: 'b', Long: "beta", Head: "BETA", Whole: true, Of: func(p *pair) string { return p.b }},
}

func TestParse(t *testing.T) {
	p := &pair{"one", "7-00:00:00"}
	for _, c := range []struct{ spec, head, row, bad string }{
		{"%a", "ALPHA", "one", ""},
		{"x%a y", "xALPHA y", "xone y", ""},
		{"%2a|%.2a|%8a|%.8a|", "AL|AL|ALPHA   |   ALPHA|", "on|on|one     |     one|", ""},
		{"%3b|%.3b|%.12b", "BET|BET|        BETA", "7-0|7-00:00:00|  7-00:00:00", ""},
		{"%q,%a", "%q,ALPHA", "%q,one", "q"},
		{"%-5a|%a", "%-5a|ALPHA", "%-5a|one", "-"},
		{"%!%%|x%a", "%!%|xALPHA", "%!%|xone", "! |"},
		{"%5!x|%a", "%5!x|ALPHA", "%5!x|one", "!"},
		{"%all", "ALPHA|BETA", "one|7-00:00:00", ""},
		{"plain", "plain", "plain", ""},
		{"%a%5", "ALPHA%5", "one%5", ""},
		{
			"%99999999999a", strings.Repeat(" ", 0) + "ALPHA" + strings.Repeat(" ", maxWidth-5),
			"one" + strings.Repeat(" ", maxWidth-3), "",
		},
	} {
		f, bad := Parse(cols, c.spec, "%a|%b")
		check(t, c.spec, &f, bad, p, c.head, c.row, c.bad)
	}
}

func check(t *testing.T, spec string, f *Format[pair], bad []string, p *pair, head, row, wantBad string) {
	t.Helper()
	if got := string(f.Header(nil)); got != head {
		t.Errorf("%s: header %q, want %q", spec, got, head)
	}
	if got := string(f.Row(nil, p)); got != row {
		t.Errorf("%s: row %q, want %q", spec, got, row)
	}
	if got := strings.Join(bad, " "); got != wantBad || len(bad) > 0 && bad[0] == "" != (spec == "%a%5") {
		t.Errorf("%s: bad %q, want %q", spec, got, wantBad)
	}
}

func TestParseLong(t *testing.T) {
	p := &pair{"one", "7-00:00:00"}
	for _, c := range []struct{ spec, head, row, bad string }{
		{"alpha", "ALPHA               ", "one                 ", ""},
		{"ALPHA:4,first:.5", "ALPHALPHA", "one   one", ""},
		{"alpha:-2,beta:-5x", "ALPHA BETA x", "one 7-00:00:00 x", ""}, {"alpha:-x", "ALPHA-x", "one-x", ""},
		{"alpha:.-5", "ALPHA ", "one ", ""},
		{"alpha:,beta:2x", "ALPHABEx", "one7-x", ""},
		{"foo,alpha:3,b", "ALP", "one", "foo b"},
		{"alpha:3,foo:20.,beta:3", "ALP.BET", "one.7-0", "foo"}, {"foo:.5X,alpha:3", "XALP", "Xone", "foo"},
		{"", "", "", ""},
	} {
		f, bad := ParseLong(cols, c.spec)
		check(t, c.spec, &f, bad, p, c.head, c.row, c.bad)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("%5a|%.3b%all%q", "alpha:3,beta")
	f.Fuzz(func(t *testing.T, short, long string) {
		p := &pair{"one", "two"}
		a, _ := Parse(cols, short, "%a|%b")
		a.Header(nil)
		a.Row(nil, p)
		b, _ := ParseLong(cols, long)
		b.Header(nil)
		b.Row(nil, p)
	})
}

func TestDurations(t *testing.T) {
	for _, c := range []struct {
		d             time.Duration
		short, padded string
	}{
		{0, "0:00", "00:00:00"}, {10 * time.Second, "0:10", "00:00:10"},
		{90 * time.Second, "1:30", "00:01:30"}, {2 * time.Hour, "2:00:00", "02:00:00"},
		{30 * 24 * time.Hour, "30-00:00:00", "30-00:00:00"}, {25*time.Hour + time.Second, "1-01:00:01", "1-01:00:01"},
		{cluster.Unlimited, "UNLIMITED", "UNLIMITED"}, {-time.Second, "INVALID", "INVALID"},
	} {
		if a, b := Duration(c.d), Padded(c.d); a != c.short || b != c.padded {
			t.Errorf("%v: %q %q", c.d, a, b)
		}
	}
}

func TestMem(t *testing.T) {
	for _, c := range []struct {
		m    cluster.MemMB
		want string
	}{{0, "0"}, {100, "100M"}, {512, "512M"}, {1024, "1G"}, {1536, "1.50G"}, {2000, "2000M"}, {8192, "8G"},
		{32000, "32000M"}, {64000, "62.50G"},
		{256000, "250G"}, {512000, "500G"}, {1 << 20, "1T"}, {1536 << 10, "1.50T"}} {
		if got := Mem(c.m); got != c.want {
			t.Errorf("%d: %q, want %q", c.m, got, c.want)
		}
	}
}

func TestTRES(t *testing.T) {
	for _, c := range []struct {
		t    TRES
		want string
	}{
		{TRES{CPUs: 1, Nodes: 1, Mem: 2000}, "cpu=1,mem=2000M,node=1,billing=1"},
		{
			TRES{CPUs: 4, Nodes: 2, Mem: 8000, GPUs: 2, Types: map[string]int64{"h100": 1, "a100": 1}},
			"cpu=4,mem=8000M,node=2,billing=4,gres/gpu=2,gres/gpu:a100=1,gres/gpu:h100=1",
		},
		{TRES{CPUs: 4, Mem: 64000, Holding: true, Raw: true}, "cpu=4,mem=64000M"},
		{TRES{CPUs: 4, Holding: true, Billed: true}, "cpu=4,billing=4"},
		{TRES{}, ""},
	} {
		if got := c.t.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestArrayID(t *testing.T) {
	step := func(n, by int) cluster.IDSet {
		var ids []int
		for i := range n {
			ids = append(ids, i*by)
		}
		return cluster.NewIDSet(ids...)
	}
	for _, c := range []struct {
		set   cluster.IDSet
		limit int
		want  string
	}{
		{cluster.RangeIDSet(3, 5), 2, "7_[3-5%2]"}, {cluster.NewIDSet(1, 3, 5), 0, "7_[1,3,5]"},
		{step(3, 5), 0, "7_[0,5,10]"}, {step(6, 4), 0, "7_[0-20:4]"},
		{step(5, 4), 0, "7_[0,4,8,12,16]"}, {cluster.NewIDSet(5), 0, "7_[5]"},
		{cluster.NewIDSet(1, 3, 7, 9, 12, 15, 22, 28, 31, 44, 59), 0, "7_[1,3,7,9,12,15,22,28,31,44,59"},
	} {
		if got := ArrayID(7, c.set, c.limit); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	var ids []int
	for i := 1; i < 64; i += 2 {
		ids = append(ids, i)
	}
	long := cluster.NewIDSet(append(ids, 70, 73, 95)...)
	if got, want := ShortTasks(long, 0), "1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41,43..."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSmallTexts(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	got := []string{
		Stamp(when, ""), Stamp(time.Time{}, "N/A"), Null(""), Null("x"),
		GRES([]cluster.GRES{{Name: "gpu", Type: "h100", Count: 2}, {Name: "gpu", Count: 1}}), MemRaw(64000),
		MemRaw(0),
	}
	want := []string{"2026-01-02T03:04:05", "N/A", "(null)", "x", "gres:gpu:h100:2,gres:gpu:1", "64000M", "0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestMemIn(t *testing.T) {
	for _, c := range []struct {
		m    cluster.MemMB
		unit byte
		want string
	}{
		{3000, 'K', "3072000K"}, {3000, 'M', "3000M"}, {3000, 'G', "2.93G"}, {2048, 'G', "2G"},
		{3000, 'T', "0.00T"}, {0, 'P', "0P"},
	} {
		if got := MemIn(c.m, c.unit); got != c.want {
			t.Errorf("%d M in %c: %s, want %s", c.m, c.unit, got, c.want)
		}
	}
}

// TestStar: the mark of the default partition stays where its name is cut.
func TestStar(t *testing.T) {
	marked := slices.Clone(cols)
	marked[0].Star = true
	for _, c := range []struct{ text, spec, want string }{
		{"train*", "%5a|", "trai*|"}, {"train*", "%.5a", "trai*"}, {"train*", "%6a", "train*"}, {"train*", "%1a", "*"},
		{"debug", "%4a", "debu"},
	} {
		f, _ := Parse(marked, c.spec, "")
		if got := string(f.Row(nil, &pair{a: c.text})); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.spec, c.text, got, c.want)
		}
	}
}
