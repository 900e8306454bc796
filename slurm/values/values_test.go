package values

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

func TestParseTimeLimit(t *testing.T) {
	const no = time.Duration(-1)
	for in, want := range map[string]time.Duration{
		"5": 5 * time.Minute, "0:45": time.Minute, "5:30": 6 * time.Minute, "1:00:00": time.Hour, "1-": 24 * time.Hour,
		"1-2": 26 * time.Hour, "1-2:30": 26*time.Hour + 30*time.Minute, "1-0:0:1": 24*time.Hour + time.Minute,
		"0": cluster.Unlimited, "-1": cluster.Unlimited, "INFINITE": cluster.Unlimited, "unlimited": cluster.Unlimited,
		"999999999-0": cluster.Unlimited,
		"5m":          no, "1:2:3:4": no, "abc": no, "": no, "-": no, ":": no, "1:": no, "+5": no, "1.5": no,
	} {
		got, ok := ParseTimeLimit(in)
		if !ok {
			got = no
		}
		if got != want {
			t.Errorf("%q: got %v, want %v", in, got, want)
		}
	}
}

func TestParseMem(t *testing.T) {
	for in, want := range map[string]cluster.MemMB{"0": 0, "5": 5, "5m": 5, "5MB": 5, "1000k": 1,
		"1025K": 2, "5G": 5120, "5gb": 5120, "2T": 2 << 20,
		"x": -1, "": -1, "-1": -1, "1.5G": -1, "5X": -1, "1P": -1, "5GiB": -1, "9999999999999T": -1} {
		got, ok := ParseMem(in)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, want %d", in, got, want)
		}
	}
}

func TestParseNodes(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"4", "4 4"}, {"2-4", "2 4"}, {"1k", "1024 1024"}, {"2m", "2097152 2097152"}, {"-2", "1 2"}, {"0", "0 0"},
		{"abc", `error: "abc" is not a valid node count`}, {"", `error: "" is not a valid node count`},
		{
			"1-4:2", `error: "1-4:2" lists node counts, which muster does not support: ` +
				`name one count, as in 4, or a range, as in 1-4`,
		},
		{
			"1,3-5", `error: "1,3-5" lists node counts, which muster does not support: ` +
				`name one count, as in 4, or a range, as in 1-4`,
		},
		{"4-2", "error: Maximum node count 2 is less than minimum node count 4"},
		{"2-", "error: Maximum node count -1 is less than minimum node count 2"},
	} {
		lo, hi, err := ParseNodes(c.in)
		got := fmt.Sprint(lo, hi)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

func jsonOf(v any, ok bool) string {
	if !ok {
		return "bad"
	}
	b, _ := json.Marshal(v)
	return strings.ReplaceAll(string(b), `"`, "")
}

func TestParseLists(t *testing.T) {
	gpus := func(s string) string { v, ok := ParseGPUs(s); return jsonOf(v, ok) }
	gres := func(s string) string { v, ok := ParseGRES(s); return jsonOf(v, ok) }
	deps := func(s string) string { v, ok := ParseDepends(s); return jsonOf(v, ok) }
	array := func(s string) string { v, ok := ParseArray(s); return jsonOf(v, ok) }
	signal := func(s string) string { v, ok := ParseSignal(s); return jsonOf(v, ok) }
	mail := func(s string) string { v, ok := ParseMailTypes(s); return jsonOf(v, ok) }
	for _, c := range []struct {
		f        func(string) string
		in, want string
	}{
		{gpus, "2", "[{name:gpu,count:2}]"},
		{gpus, "h100:2,a100", "[{name:gpu,type:h100,count:2},{name:gpu,type:a100,count:1}]"},
		{gpus, "-1", "bad"},
		{gpus, "h100:-1", "bad"},
		{gres, "gpu:-1", "bad"},
		{gres, "gpu:", "bad"},
		{gpus, "0", "null"},
		{gpus, "a:b", "bad"},
		{gres, "gpu", "[{name:gpu,count:1}]"},
		{gres, "gpu:2,gres:shard:1k", "[{name:gpu,count:2},{name:shard,count:1024}]"},
		{gres, "gres/gpu:h100:3", "[{name:gpu,type:h100,count:3}]"},
		{gres, "gpu=2", "[{name:gpu,count:2}]"},
		{gres, "none", "null"},
		{gres, "gpu:h100:x", "bad"},
		{gres, "gpu:a:1:2", "bad"},
		{gres, ":h100", "bad"}, {gres, ":h100:2", "bad"}, {gres, "gpu::1", "bad"}, {gres, "gpu:h100:", "bad"},
		{gpus, ":2", "bad"}, {gpus, "h100:", "bad"},
		{deps, "afterany:5(unfulfilled)?singleton(unfulfilled)", "{any:true,terms:[{type:afterany,job:5,task:-1},{type:singleton,task:-1}]}"},
		{deps, "after:5+1(unfulfilled):6_2(failed)",
			"{terms:[{type:after,job:5,task:-1,plus:60000000000},{type:after,job:6,task:2}]}"}, {deps, "afterok:5(x)y", "bad"}, {deps, "afterok:5(", "bad"},
		{deps, "afterok:5()", "{terms:[{type:afterok,job:5,task:-1}]}"}, {deps, "(x)", "bad"},
		{deps, "12", "{terms:[{type:afterany,job:12,task:-1}]}"},
		{deps, "afterok:1_2:3_*", "{terms:[{type:afterok,job:1,task:2},{type:afterok,job:3,task:-1,array:true}]}"},
		{
			deps, "after:1+5?singleton",
			"{any:true,terms:[{type:after,job:1,task:-1,plus:300000000000},{type:singleton,task:-1}]}",
		},
		{deps, "0", "{}"}, {deps, "", "{}"},
		{deps, "afterok:", "bad"}, {deps, "afterok:1,", "bad"}, {deps, "foo:1", "bad"},
		{deps, "1:2", "bad"}, {deps, "1+5", "bad"}, {deps, "singleton:1", "bad"},
		{array, "0-3", "{tasks:0-3,step:1,text:0-3}"},
		{array, "[3,1,2]", "{tasks:1-3,step:1,text:[3,1,2]}"},
		{array, "1-10:4%2", "{tasks:1,5,9,limit:2,step:4,text:1-10:4%2}"},
		{array, "1,,2", "{tasks:1-2,step:1,text:1,,2}"},
		{array, "1-3%x", "{tasks:1-3,step:1,text:1-3%x}"},
		{array, "3-1", "bad"}, {array, "1:2", "bad"}, {array, "1-9:0", "bad"}, {array, "x", "bad"},
		{array, "", "bad"}, {array, "-1", "bad"}, {array, "0-99999999", "bad"},
		{signal, "USR1", "{num:10,before:60000000000}"},
		{signal, "B:sigusr2@10", "{num:12,before:10000000000,batch_only:true}"},
		{signal, "RB:1@0", "{num:1,batch_only:true,reservation:true}"},
		{signal, "Q:1", "bad"}, {signal, "0", "bad"}, {signal, "@5", "bad"}, {signal, "10@99999", "bad"},
		{signal, "FOO", "bad"}, {signal, "", "bad"},
		{mail, "end,FAIL", "[END,FAIL]"},
		{mail, "ALL", "[INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT]"},
		{mail, "END,x", "[END]"}, {mail, "none,END", "null"}, {mail, "x", "bad"}, {mail, "", "bad"},
	} {
		if got := c.f(c.in); got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
	}
}

func TestParseWhen(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 30, 0, 0, time.UTC)
	for in, want := range map[string]string{
		"now": "2026-11-21T14:30:00", "now+60": "2026-11-21T14:31:00", "now+1hour": "2026-11-21T15:30:00",
		"now + 2 days": "2026-11-23T14:30:00",
		"now-5minutes": "2026-11-21T14:25:00", "now+1week": "2026-11-28T14:30:00",
		"16:00": "2026-11-21T16:00:00", "14:00": "2026-11-22T14:00:00", "4:00PM": "2026-11-21T16:00:00",
		"4:00 am": "2026-11-22T04:00:00", "12:00AM": "2026-11-22T00:00:00",
		"noon-tomorrow": "2026-11-22T12:00:00", "tomorrow-noon": "2026-11-22T12:00:00",
		"-noon": "2026-11-22T12:00:00", "noon-": "2026-11-22T12:00:00",
		"16:00--tomorrow": "2026-11-22T16:00:00", "noonT12/25": "2026-12-25T12:00:00",
		"2026-11-25-12:00": "2026-11-25T12:00:00", "11/30-12:00": "2026-11-30T12:00:00",
		"midnight": "2026-11-22T00:00:00", "noon": "2026-11-22T12:00:00", "fika": "2026-11-21T15:00:00",
		"teatime": "2026-11-21T16:00:00",
		"today":   "2026-11-21T00:00:00", "tomorrow": "2026-11-22T00:00:00", "noon tomorrow": "2026-11-22T12:00:00",
		"2030-01-02": "2030-01-02T00:00:00", "2030-01-02T03:04:05": "2030-01-02T03:04:05",
		"01/02": "2027-01-02T00:00:00", "12/02": "2026-12-02T00:00:00",
		"01/02/30": "2030-01-02T00:00:00", "010230": "2030-01-02T00:00:00",
		"01.02.30": "2030-01-02T00:00:00", "2020-01-01": "2020-01-01T00:00:00",
		"4PM": "1", "now+x": "3", "now+1month": "4", "now+1hourx": "9", "16:0": "4", "25:00": "0",
		"2030-13-01": "5", "elevenses": "0",
		"10:00:61": "6", "4:00pmx": "6", "2030-01-01T10:00:00Z": "19", "2030-1-1": "0", "13:00PM": "5", "": "0",
	} {
		at, pos, ok := ParseWhen(in, now)
		got := at.Format("2006-01-02T15:04:05")
		if !ok {
			got = fmt.Sprint(pos)
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// TestParsePast: of the past a time of day is today's, whether it is over or not, and a date the last such one.
func TestParsePast(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 30, 0, 0, time.UTC)
	for in, want := range map[string]string{
		"00:00": "2026-11-21T00:00:00", "midnight": "2026-11-21T00:00:00", "noon": "2026-11-21T12:00:00",
		"16:00": "2026-11-21T16:00:00",
		"01/02": "2026-01-02T00:00:00", "12/25": "2025-12-25T00:00:00", "0102": "2026-01-02T00:00:00",
		"11/21":     "2026-11-21T00:00:00",
		"now-1hour": "2026-11-21T13:30:00", "tomorrow": "2026-11-22T00:00:00", "2030-01-02": "2030-01-02T00:00:00",
	} {
		if at, _, ok := ParsePast(in, now); !ok || at.Format("2006-01-02T15:04:05") != want {
			t.Errorf("%q: got %s, %v, want %s", in, at, ok, want)
		}
	}
}

func TestDistribution(t *testing.T) {
	for in, want := range map[string]string{
		"block": "0", "BLOCK:cyclic:fcyclic": "0", "plane=4": "4", "*:*": "0", "cyclic,pack": "0",
		"arbitrary": "0", "block:": "0", "pack": "0",
		"plane": "2 lines", "plane=x": "2 lines", "x": "invalid specification",
		"block:foo": "invalid specification", "": "invalid specification",
		"block:block:block:block": "invalid specification",
	} {
		n, err := ParseDistribution(in)
		got := fmt.Sprint(n)
		if err != nil {
			if got = err.Error(); strings.Contains(got, "\n") {
				got = "2 lines"
			}
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestBindings(t *testing.T) {
	for _, c := range []struct {
		f        func(string) error
		good     string
		bad, err string
	}{
		{CheckCPUBind, "verbose,map_cpu:0,1,0x2*3", "x", "error: unrecognized --cpu-bind argument \"x\""},
		{
			CheckCPUBind, "mask_cpu:f,F0,verbose", "verbose,map_cpu:",
			"error: missing list for \"--cpu-bind=map_cpu:<list>\"",
		},
		{
			CheckCPUBind, "quiet,mask_cpu:0x0001,0xFF", "map_cpu:",
			"error: missing list for \"--cpu-bind=map_cpu:<list>\"",
		},
		{CheckCPUBind, "cores", "mask_cpu:zz", "error: Failed to validate number: zz, the offending character is z"},
		{CheckMemBind, "local,verbose", "x", "error: unrecognized --mem-bind argument \"x\""},
		{CheckGPUBind, "verbose,map_gpu:0,1", "x", "error: Invalid --gpu-bind argument: gpu:x"},
		{CheckGPUFreq, "medium,memory=high,verbose", "foo=3", "error: Invalid --gpu-freq argument: gpu:foo=3"},
		{CheckCPUFreq, "low-high:performance", "5-3", "error: min cpu-frec (5) must be < max cpu-freq (3)"},
		{CheckAcctgFreq, "task=10,energy=5", "foo=2", "error: Invalid --acctg-freq specification: foo=2"},
		{CheckPropagate, "CORE,RLIMIT_AS", "nofile", "error: Bad rlimit name: nofile"},
	} {
		if err := c.f(c.good); err != nil {
			t.Errorf("%q: %v", c.good, err)
		}
		err := c.f(c.bad)
		if err == nil || !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%q: got %v, want %s", c.bad, err, c.err)
		}
	}
}

func FuzzValues(f *testing.F) {
	for _, s := range []string{
		"1-2:3", "now+1hour", "afterok:1_2+3?singleton", "1-9:2%3", "gpu:h100:2", "5G", "B:USR1@9",
		"map_cpu:0,1*2", "plane=4", "2-4",
	} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 14, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if d, ok := ParseTimeLimit(s); ok && d <= 0 {
			t.Fatal("limit", d)
		}
		if mb, ok := ParseMem(s); ok && mb < 0 {
			t.Fatal("memory", mb)
		}
		if lo, hi, err := ParseNodes(s); err == nil && (lo < 0 || hi < lo) {
			t.Fatal("nodes", lo, hi)
		}
		if _, pos, ok := ParseWhen(s, now); !ok && (pos < 0 || pos > len(s)) {
			t.Fatal("position", pos)
		}
		if a, ok := ParseArray(s); ok && a.Tasks.Empty() {
			t.Fatal("empty array")
		}
		ParseDepends(s)
		ParseGPUs(s)
		ParseGRES(s)
		ParseSignal(s)
		ParseMailTypes(s)
		_, _ = ParseDistribution(s)
		for _, check := range []func(string) error{
			CheckCPUBind, CheckMemBind, CheckGPUBind, CheckGPUFreq, CheckCPUFreq, CheckAcctgFreq,
		} {
			_ = check(s)
		}
	})
}
