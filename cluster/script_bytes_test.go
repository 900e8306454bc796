package cluster

import (
	"fmt"
	"strings"
	"testing"
)

// TestMaxUserScriptBytes submits scripts until a user has too many pending: one text counts once, also that of an
// array, others are not affected, and there is room again when jobs have started.
func TestMaxUserScriptBytes(t *testing.T) {
	w := newWorld(t, 1)
	limit := func(text string) {
		cfg := *w.s.Config()
		cfg.Keys = map[string]string{"maxuserscriptbytes": text}
		w.ok(root, &Configure{Config: &cfg})
	}
	limit("1K")
	script := func(i int) BlobText { return BlobText(fmt.Sprintf("#!/bin/sh\n# %0390d", i)) } // 400 bytes
	submit := func(by Identity, i int) *Submit {
		text := script(i)
		w.ok(by, &PutBlob{Hash: HashBlob(text), Text: text})
		name := map[uint32]string{alice.UID: "alice"}[by.UID]
		return &Submit{Spec: &JobSpec{Layout: &Layout{}, Name: "job", UID: by.UID, User: name, Script: HashBlob(text)}}
	}
	first := w.ok(alice, submit(alice, 1)).Result.(JobID)
	second := w.ok(alice, submit(alice, 2)).Result.(JobID)
	again := submit(alice, 1)
	again.Spec.Array = &ArraySpec{Tasks: RangeIDSet(0, 99), Text: "0-99"}
	w.ok(alice, again)
	refused := w.apply(alice, submit(alice, 3))
	for _, word := range []string{"user alice", "1206 bytes", "MaxUserScriptBytes=1024", "wait until"} {
		if refused.Err == nil || !strings.Contains(refused.Err.Error(), word) {
			t.Errorf("no %q in %v", word, refused.Err)
		}
	}
	w.ok(bob, submit(bob, 3))
	w.ok(alice, &Cancel{Ref: Ref{Job: first}})
	w.refused(alice, submit(alice, 3), ErrTooBig)
	w.run(second, 0, "n0")
	third := w.ok(alice, submit(alice, 3)).Result.(JobID)
	w.refused(alice, submit(alice, 4), ErrTooBig)
	limit("UNLIMITED")
	w.ok(alice, submit(alice, 4))
	limit("900")
	w.refused(alice, submit(alice, 5), ErrTooBig)
	w.ok(alice, submit(alice, 3)) // what is there already needs no room
	w.want(third, Pending)
}

// TestTextsAtTheDoor: a submission that would be refused for its script or environment does not come into the log.
func TestTextsAtTheDoor(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.Keys = map[string]string{"maxuserscriptbytes": "1M"}
	w.ok(root, &Configure{Config: &cfg})
	spec := &JobSpec{Layout: &Layout{}, Name: "job", UID: alice.UID}
	check := func(what string, script, env int, want bool) {
		t.Helper()
		text := func(n int) BlobText { return BlobText(strings.Repeat("x", n)) }
		if err := CheckTexts(w.s.Snapshot(), spec, text(script), text(env)); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("too large by itself", 900<<10, 200<<10, false)
	check("large", 900<<10, 0, true)
	text := BlobText(strings.Repeat("x", 900<<10))
	w.ok(alice, &PutBlob{Hash: HashBlob(text), Text: text})
	own := *spec
	own.Script = HashBlob(text)
	w.ok(alice, &Submit{Spec: &own})
	check("the same again", 900<<10, 100, true)
	check("too large with the other", 800<<10, 0, false)
	check("small", 1000, 1000, true)
}

// TestParseBytes reads numbers of bytes.
func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1, "64M": 64 << 20, "64MB": 64 << 20, "2g": 2 << 30, "K": 0,
		"1T": 1 << 40, "unlimited": -1, "": 0, "-1": 0, "9999999999T": 0, "1X": 0} {
		n, err := ParseBytes(text)
		if bad := want == 0 && text != "0"; n != want || (err != nil) != bad {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}
