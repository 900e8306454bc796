package cluster

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// goldenAmend says something of a job that there is, and of one that was.
func goldenAmend(w *world) {
	text := "it was fine"
	w.ok(alice, &AmendJobs{
		Jobs:      []JobRecord{{ID: 4711, Submitted: epoch, UID: alice.UID}},
		Amendment: Amendment{Comment: &text, Derived: &ExitStatus{Code: 3}},
	})
	id := w.submit(nil)
	j, _ := w.s.Snapshot().Job(id)
	w.ok(root, &AmendJobs{
		Jobs:      []JobRecord{{id, j.Submitted, j.Spec.UID}},
		Amendment: Amendment{AdminComment: &text, SystemComment: &text, WCKey: &text},
	})
}

// TestAmendJobs: a job that the state has is changed there, of one that it has forgotten history is told, each with
// a transaction; users speak of their own, and not of what is reserved to operators.
func TestAmendJobs(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(nil)
	j, _ := w.s.Snapshot().Job(id)
	here, gone := JobRecord{id, j.Submitted, 1000}, JobRecord{id, j.Submitted.Add(-time.Hour), 1000}
	text, secret := "it was fine", "looked at"
	own := Amendment{Comment: &text, Derived: &ExitStatus{Code: 7}}

	out := w.apply(alice, &AmendJobs{Jobs: []JobRecord{here, gone}, Amendment: own})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	var told []string
	for _, e := range out.Events {
		switch {
		case e.Change != nil:
			told = append(told, e.Change.Action+" by "+e.Change.Actor+": "+e.Change.Info)
		case e.Job != nil:
			told = append(told, "job: "+e.Job.Spec.Comment)
		case e.Amend != nil && reflect.DeepEqual(*e.Amend, AmendedJob{gone, own}):
			told = append(told, "amend")
		}
	}
	change := `Modify Job by alice: comment="it was fine", derived=7:0`
	if want := []string{change, "job: " + text, change, "amend"}; !reflect.DeepEqual(told, want) {
		t.Errorf("events %q, want %q", told, want)
	}
	if n, _ := w.s.Snapshot().Job(id); n.Spec.Comment != text || n.Derived.Code != 7 || j.Spec.Comment != "" {
		t.Errorf("the job says %q and %d, before it said %q", n.Spec.Comment, n.Derived.Code, j.Spec.Comment)
	}

	for _, tt := range []struct {
		by   Identity
		what AmendJobs
		want string
	}{
		{bob, AmendJobs{Jobs: []JobRecord{gone}, Amendment: own}, "job 1 is another user's"},
		{bob, AmendJobs{Jobs: []JobRecord{{id, j.Submitted, 1001}}, Amendment: own}, "job 1 is not of user 1001"},
		{
			alice, AmendJobs{Jobs: []JobRecord{here}, Amendment: Amendment{AdminComment: &secret}},
			"only operators may set AdminComment",
		},
		{
			alice, AmendJobs{Jobs: []JobRecord{here}, Amendment: Amendment{SystemComment: &secret}},
			"only operators may set SystemComment",
		},
		{
			alice, AmendJobs{Jobs: []JobRecord{here}, Amendment: Amendment{WCKey: &secret}},
			"only operators may set WCKey",
		},
		{alice, AmendJobs{Jobs: []JobRecord{here}}, "nothing is said"},
		{alice, AmendJobs{Amendment: own}, "0 jobs at once"},
		{
			alice,
			AmendJobs{Jobs: []JobRecord{here}, Amendment: Amendment{Derived: &ExitStatus{Code: 256}}},
			"256:0 is no exit code",
		},
	} {
		if out := w.apply(tt.by, &tt.what); out.Err == nil || !strings.Contains(out.Err.Message, tt.want) || len(out.Events) > 0 {
			t.Errorf("%s amends %+v: %v and %d events, want an error with %q", tt.by.User, tt.what, out.Err,
				len(out.Events), tt.want)
		}
	}
	if out := w.apply(root, &AmendJobs{Jobs: []JobRecord{here}, Amendment: Amendment{AdminComment: &secret, SystemComment: &secret, WCKey: &text}}); out.Err != nil {
		t.Error(out.Err)
	}
	if n, _ := w.s.Snapshot().Job(id); n.Spec.AdminComment != secret || n.SystemComment != secret || n.Spec.WCKey != text {
		t.Errorf("root's words: %q, %q, %q", n.Spec.AdminComment, n.SystemComment, n.Spec.WCKey)
	}
}
