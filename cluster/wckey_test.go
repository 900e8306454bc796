package cluster

import "testing"

// TestWCKeys: a user's keys are numbered once, a job has its user's default one or one that it names, and with
// AccountingStorageEnforce=wckeys no other.
func TestWCKeys(t *testing.T) {
	w := newWorld(t, 1)
	keys := func(names ...string) (list []WCKey) {
		for _, n := range names {
			list = append(list, WCKey{Name: n})
		}
		return list
	}
	user := func(u User) *ChangeAccounts { return &ChangeAccounts{Changes: []Change{{User: &u}}} }
	configure := func(track, enforce bool) {
		cfg := *w.s.Config()
		cfg.TrackWCKey, cfg.Enforce.WCKeys = track, enforce
		w.ok(root, &Configure{Config: &cfg})
	}
	w.ok(root, user(User{Name: "alice", WCKeys: keys("proj2", "proj1", "proj1"), DefaultWCKey: "proj2"}))
	w.ok(root, user(User{Name: "bob", WCKeys: keys("proj1")}))
	w.ok(root, user(User{Name: "alice", WCKeys: keys("new", "proj2"), DefaultWCKey: "proj2"}))
	if u, _ := w.s.User("alice"); len(u.WCKeys) != 2 || u.WCKeys[0] != (WCKey{4, "new"}) || u.WCKeys[1] != (WCKey{2, "proj2"}) {
		t.Errorf("alice's keys are %v", u.WCKeys)
	}
	w.refused(root, user(User{Name: "alice", WCKeys: keys("a"), DefaultWCKey: "b"}), ErrWCKey)
	w.refused(root, user(User{Name: "alice", WCKeys: keys("*a")}), ErrWCKey)
	w.refused(root, user(User{Name: "alice", WCKeys: keys("")}), ErrAccount)

	for _, c := range []struct {
		name           string
		track, enforce bool
		user           string
		uid            uint32
		asked, want    string
		refused        bool
	}{
		{"any word without tracking", false, false, "alice", 1001, "x", "x", false},
		{"none without tracking", false, false, "alice", 1001, "", "", false},
		{"the default one", true, false, "alice", 1001, "", "*proj2", false},
		{"the default one, seen before", true, false, "alice", 1001, "*old", "*proj2", false},
		{"an unknown one", true, false, "alice", 1001, "X", "x", false},
		{"no default one", true, false, "bob", 1002, "", "*", false},
		{"nobody's", true, false, "eve", 1003, "", "*", false},
		{"the default one, enforced", false, true, "alice", 1001, "", "*proj2", false},
		{"one of the user's", false, true, "alice", 1001, "new", "new", false},
		{"another user's", false, true, "alice", 1001, "proj1", "", true},
		{"no default one, enforced", false, true, "bob", 1002, "", "", true},
		{"root needs none", false, true, "root", 0, "", "*", false},
		{"root cannot have any", false, true, "root", 0, "x", "", true},
	} {
		configure(c.track, c.enforce)
		spec, err := Admit(w.s.Snapshot(), Identity{UID: c.uid}, JobSpec{
			UID: c.uid, User: c.user, WCKey: c.asked, Layout: &Layout{MinNodes: 1, Tasks: 1},
		})
		if c.refused {
			if e, ok := err.(*Error); !ok || e.Kind != ErrWCKey {
				t.Errorf("%s: %v", c.name, err)
			}
		} else if err != nil || spec.WCKey != c.want {
			t.Errorf("%s: key %q, want %q, %v", c.name, spec.WCKey, c.want, err)
		}
	}
}

// TestWCKeyOfJob: a pending job's key changes as it would be submitted, and reports count a default key as the key.
func TestWCKeyOfJob(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.Enforce.WCKeys = true
	w.ok(root, &Configure{Config: &cfg})
	w.ok(root, &ChangeAccounts{
		Changes: []Change{{User: &User{Name: "alice", WCKeys: []WCKey{{Name: "a"}, {Name: "b"}}, DefaultWCKey: "a"}}},
	})
	id := w.submit(func(s *JobSpec) { s.User = "alice" })
	wckey := func() string { j, _ := w.s.Job(id); return j.Spec.WCKey }
	patch := func(key string) *UpdateJob { return &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{WCKey: &key}} }
	if wckey() != "*a" {
		t.Errorf("submitted with key %q", wckey())
	}
	w.ok(root, patch("b"))
	w.refused(root, patch("c"), ErrWCKey)
	if wckey() != "b" {
		t.Errorf("changed to key %q", wckey())
	}
	w.ok(root, patch(""))
	w.run(id, 0, "n0")
	j, _ := w.s.Job(id)
	if f := j.Footprint(); wckey() != "*a" || f.Class.WCKey != "a" {
		t.Errorf("runs with key %q, counted as %q", wckey(), f.Class.WCKey)
	}
}
