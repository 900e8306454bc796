package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Remarks of users and the site about jobs afterwards. A job that the state still has is changed there; of one that it
// has forgotten an event tells history, whose record it is.

// JobRecord names a record of history and whose it is; a job that went back into the queue has several.
type JobRecord struct {
	ID        JobID     `json:"id"`
	Submitted time.Time `json:"submitted"`
	UID       uint32    `json:"uid"`
}

// Amendment is what is said of a job afterwards; nil fields stay.
type Amendment struct {
	Comment *string `json:"comment,omitempty"`
	// Derived is whether the job's user takes it for a success.
	Derived       *ExitStatus `json:"derived,omitempty"`
	AdminComment  *string     `json:"admin_comment,omitempty" text:"1024,lines" by:"operator"`
	SystemComment *string     `json:"system_comment,omitempty" text:"1024,lines" by:"operator"`
	Extra         *string     `json:"extra,omitempty"`
	WCKey         *string     `json:"wckey,omitempty" by:"operator"`
}

func (a *Amendment) check() error {
	if *a == (Amendment{}) {
		return Errorf(Invalid, ErrNoChange, "nothing is said of the jobs")
	}
	for _, text := range []*string{a.Comment, a.AdminComment, a.SystemComment, a.Extra, a.WCKey} {
		if text != nil && len(*text) > maxCommentBytes {
			return Errorf(Invalid, ErrTooBig, "a text of %d bytes about a job is longer than %d",
				len(*text), maxCommentBytes)
		}
	}
	if a.WCKey != nil && strings.HasPrefix(*a.WCKey, WCKeyDefault) {
		return Errorf(Invalid, ErrWCKey,
			"wckey %q: %s at the beginning stands for a default one, give another name", *a.WCKey,
			WCKeyDefault)
	}
	if a.Derived == nil {
		return nil
	}
	return a.Derived.check()
}

// check refuses what is no exit code that one could write.
func (e *ExitStatus) check() error {
	for _, n := range []int{e.Code, e.Signal} {
		if n < 0 || n > 255 {
			return Errorf(Invalid, ErrNoChange, "%d:%d is no exit code: want numbers from 0 to 255", e.Code, e.Signal)
		}
	}
	return nil
}

// Of changes a job, which must be a copy; its specification is copied.
func (a *Amendment) Of(j *Job) {
	spec := *j.Spec
	set(&spec.Comment, a.Comment)
	set(&spec.AdminComment, a.AdminComment)
	if a.Extra != nil {
		spec.Layout = spec.Layout.Clone()
		spec.Extra = *a.Extra
	}
	set(&spec.WCKey, a.WCKey)
	set(&j.SystemComment, a.SystemComment)
	set(&j.Derived, a.Derived)
	j.Spec = &spec
}

// text is what transactions tell of it.
func (a *Amendment) text() string {
	var words []string
	for _, f := range []struct {
		name string
		text *string
	}{
		{"comment", a.Comment}, {"admin_comment", a.AdminComment}, {"system_comment", a.SystemComment},
		{"extra", a.Extra}, {"wckey", a.WCKey},
	} {
		if f.text != nil {
			words = append(words, fmt.Sprintf("%s=%q", f.name, *f.text))
		}
	}
	if a.Derived != nil {
		words = append(words, fmt.Sprintf("derived=%d:%d", a.Derived.Code, a.Derived.Signal))
	}
	text := strings.Join(words, ", ")
	return text[:min(len(text), maxTransactionInfo)]
}

// AmendedJob is an amendment of a record that history alone has.
type AmendedJob struct {
	JobRecord
	Amendment
}

// AmendJobs says something of jobs, all or nothing. Users may speak of their own. That a job which the state has
// forgotten is its user's history checks: it leaves a record alone that is another user's.
type AmendJobs struct {
	Jobs []JobRecord `json:"jobs"`
	Amendment
}

// MaxAmended bounds the jobs of one AmendJobs.
const MaxAmended = 500

func (*AmendJobs) kind() string { return "amend" }

func (c *AmendJobs) apply(t *tx) (any, error) {
	if len(c.Jobs) == 0 || len(c.Jobs) > MaxAmended {
		return nil, Errorf(Invalid, ErrNoChange, "%d jobs at once: between 1 and %d can be changed",
			len(c.Jobs), MaxAmended)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if !t.keepsBooks(t.by) {
		if name := reservedIn(&c.Amendment); name != "" {
			return nil, Errorf(Denied, ErrAccess, "only operators may set %s of a job", name)
		}
		if i := slices.IndexFunc(c.Jobs, func(r JobRecord) bool { return r.UID != t.by.UID }); i >= 0 {
			return nil, Errorf(Denied, ErrAccess, "job %d is another user's", c.Jobs[i].ID)
		}
	}
	for _, r := range c.Jobs {
		t.events = append(t.events, Event{
			Change: &Transaction{
				At:     t.at,
				Action: "Modify Job",
				Actor:  t.by.actor(),
				Where:  fmt.Sprintf("job=%d submitted=%d", r.ID, r.Submitted.Unix()),
				Info:   c.text(),
			},
		})
		j, here := t.jobs.Get(r.ID)
		switch {
		case !here || !j.Recorded().Equal(r.Submitted):
			t.events = append(t.events, Event{Amend: &AmendedJob{r, c.Amendment}})
		case j.Spec.UID != r.UID:
			return nil, Errorf(Invalid, ErrAccess, "job %d is not of user %d", r.ID, r.UID)
		default:
			n := *j
			c.Of(&n)
			t.interned.share(n.Spec)
			t.putJob(&n)
			t.tell(&n)
		}
	}
	return nil, nil
}
