package lua

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// hostileSite looks at texts the way that sites do, which takes long for some texts.
const hostileSite = `
function slurm_job_submit(d, parts, uid)
	if d.name == "spin" then while true do end end
	if d.name == "grow" then local t = {} while true do t[#t + 1] = string.rep(d.name, 1e6) end end
	if string.match(d.script, "#SBATCH.-gres.-gpu") then return slurm.ERROR end
	return slurm.SUCCESS
end
function slurm_job_modify() return slurm.SUCCESS end`

// hostileScript is a user's script that takes the pattern of hostileSite days.
func hostileScript() cluster.BlobText {
	return cluster.BlobText("#!/bin/sh\n" + strings.Repeat("# #SBATCH gres ", 20000))
}

// submitAs submits a job of a user, and returns what the site said and how long it took.
func (w *world) submitAs(uid uint32, user string, change func(q *api.SubmitRequest)) (string, time.Duration, error) {
	q := batch(func(s *cluster.JobSpec) { s.UID, s.User = uid, user })
	change(q)
	began := time.Now()
	at := w.scene(uid)
	at.User = user
	said, err := w.filter.Submit(context.Background(), at, q, -1)
	return strings.Join(said, "\n"), time.Since(began), err
}

// TestHostileScript submits a script that takes the site's pattern days: the submission fails with the user's name,
// and the next one is answered.
func TestHostileScript(t *testing.T) {
	w := newWorld(t, hostileSite)
	said, took, err := w.submitAs(7002, "bob", func(q *api.SubmitRequest) { q.Script = hostileScript() })
	if err == nil || !strings.Contains(said, "longer than 1s (user bob)") || took > 5*time.Second {
		t.Errorf("bob: %q, %v after %v", said, err, took)
	}
	if !strings.Contains(w.logged.String(), "user=bob") {
		t.Errorf("the log does not name bob: %s", w.logged)
	}
	said, took, err = w.submitAs(7001, "alice", func(*api.SubmitRequest) {})
	if err != nil || took > time.Second {
		t.Errorf("alice: %q, %v after %v", said, err, took)
	}
}

// TestFairTurns has bob submit 50 jobs at once that take all of their time: alice's job does not wait for them.
func TestFairTurns(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(q *api.SubmitRequest)
	}{
		{"pattern", func(q *api.SubmitRequest) { q.Script = hostileScript() }},
		{"loop", func(q *api.SubmitRequest) { q.Spec.Name = "spin" }},
		{"memory", func(q *api.SubmitRequest) { q.Spec.Name = "grow" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, hostileSite)
			ctx, cancel := context.WithCancel(t.Context())
			var bobs sync.WaitGroup
			var over atomic.Int32
			defer bobs.Wait()
			defer cancel()
			for range 50 {
				bobs.Go(func() {
					q := batch(func(s *cluster.JobSpec) { s.UID, s.User = 7002, "bob" })
					c.spoil(q)
					if _, err := w.filter.Submit(ctx, w.scene(7002), q, -1); err == nil {
						t.Error("bob's job was accepted")
					}
					over.Add(1)
				})
			}
			for over.Load() < 2 {
				said, took, err := w.submitAs(7001, "alice", func(*api.SubmitRequest) {})
				if err != nil || took > time.Second {
					t.Errorf("alice: %q, %v after %v", said, err, took)
				}
			}
		})
	}
}

// TestBoundedFunctions calls functions of the library that could take long or make much out of little.
func TestBoundedFunctions(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`string.find(string.rep("a", 1e5), string.rep(".-", 50) .. "b")`, errTime.Error()},
		{`string.gsub(string.rep("a", 1e5), string.rep("a*", 50) .. "b", "")`, errTime.Error()},
		{`for _ in string.gmatch(string.rep("a", 1e5), "a-a-a-a-b") do end`, errTime.Error()},
		{`string.find(string.rep("a", 1e6), string.rep("a?", 1e6))`, "pattern too complex"},
		{`string.gsub(string.rep("a", 1e6), "a", string.rep("b", 1e6))`, "resulting string too large"},
		{`local t = {} for i = 1, 1e5 do t[i] = d.big end table.concat(t)`, "resulting string too large"},
		{`string.format("%999999d", 1)`, "invalid format"},
		{`string.format("%[1]s%[1]s", "x")`, "invalid format"},
		{`string.format("%*d", 9, 9)`, "invalid format"},
		{`loadstring(string.rep("(", 4e6))`, "chunk too large"},
		{`load(function() return "((((((((((((((((" end)`, "chunk too large"},
		{`local t = {} for i = 1, 49 do t = {t, t} end slurm.to_json(t)`, "too many values"},
		{`local t = {} for i = 1, 1e5 do t[i] = 1e5 - i end while true do table.sort(t) end`, errTime.Error()},
		{`pcall(function() while true do end end) while true do end`, errTime.Error()},
		{
			`local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end local x = t.a`,
			"stack overflow",
		},
		{`slurm.from_json(string.rep("[", 1e6))`, "from_json"},
	} {
		t.Run(c.body, func(t *testing.T) {
			t.Parallel()
			m, err := newMachine(SubmitFile, "function hostile()\n local d = {big = string.rep('x', 1e4)} "+c.body+" end",
				func(string, string) {})
			if err != nil {
				t.Fatal(err)
			}
			defer m.state.Close()
			if c.want != errTime.Error() { // on a busy machine, the library's own bound may take a while
				m.longest = time.Minute
			}
			if _, err := m.call(t.Context(), "hostile"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestStrings compares functions of the library with what Lua 5.1 returns.
func TestStrings(t *testing.T) {
	for _, c := range []struct{ expression, want string }{
		{`string.find("hello", "l", 4)`, "4 4"},
		{`string.find("a.b", ".", 1, true)`, "2 2"},
		{`string.find("abc", "b", -2)`, "2 2"},
		{`string.find("abc", "", 10)`, "4 3"},
		{`string.find("k=v", "(%w)=(%w)")`, "1 3 k v"},
		{`("x=1, y=2"):match("y=(%d)")`, "2"},
		{`string.match("2026-11-27", "(%d+)-(%d+)-(%d+)")`, "2026 11 27"},
		{`string.match("abc", "()c")`, "3"},
		{`string.gsub("hello world", "o", "0")`, "hell0 w0rld 2"},
		{`string.gsub("hello world", "(%w+)", "<%1>", 1)`, "<hello> world 1"},
		{`string.gsub("abc", "%w", "%0%0")`, "aabbcc 3"},
		{`string.gsub("abc", "", "-")`, "-a-b-c- 4"},
		{`string.gsub("$name is $x", "%$(%w+)", {name = "lua", x = false})`, "lua is $x 2"},
		{`string.gsub("abc", "b", function(c) return c:upper() end)`, "aBc 1"},
		{`string.gsub("abc", "^a", "x")`, "xbc 1"},
		{`string.gsub("100%", "%%", "%%%%")`, "100%% 1"},
		{`string.gsub("a b", "%s", 7)`, "a7b 1"},
		{
			`(function() local o = {} for k, v in string.gmatch("a=1, b=2", "(%w+)=(%w+)") do
			o[#o + 1] = k .. v end return table.concat(o, " ") end)()`,
			"a1 b2",
		},
		{`(function() local n = 0 for _ in string.gmatch("abc", "") do n = n + 1 end return n end)()`, "4"},
		{`table.concat({1, "b", 3}, ",", 2, 3)`, "b,3"},
		{`(function() local t = {3, 1, 2} table.sort(t) return unpack(t) end)()`, "1 2 3"},
		{
			`(function() local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return unpack(t) end)()`,
			"3 2 1",
		},
		{`string.format("%5.2f|%-4s|%u|%lu|%%|%x|%c", 1.5, "a", 3, 4, 255, 65)`, " 1.50|a   |3|4|%|ff|A"},
		{`loadstring("return 1 + 1")()`, "2"},
		{
			`load((function() local n = 0 return function() n = n + 1 return ({"return ", "7"})[n] end end)())()`,
			"7",
		},
		{`select(2, pcall(string.gsub, "a", "a", "%2"))`, "invalid capture index"},
	} {
		t.Run(c.expression, func(t *testing.T) {
			w := newWorld(t, "function slurm_job_submit(d)\n local t = {"+c.expression+
				"} for i, v in ipairs(t) do t[i] = tostring(v) end slurm.log_user(table.concat(t, ' '))"+
				" return 0 end\nfunction slurm_job_modify() return 0 end")
			said, _, err := w.submitAs(7001, "alice", func(*api.SubmitRequest) {})
			if err != nil || strings.TrimPrefix(said, "job_submit.lua:2: ") != c.want {
				t.Errorf("%q %v, want %q\n%s", said, err, c.want, w.logged)
			}
		})
	}
}
