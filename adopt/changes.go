package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// ErrNotTaken is what the error of Accounts.Send wraps if the cluster refuses a change for what it says.
var ErrNotTaken = errors.New("not taken")

// Accounts brings the accounts of a source into a cluster, with users, associations and QOS.
type Accounts struct {
	Source *Source
	// Replace has records that the cluster has in another way changed; without it they stay.
	Replace bool
	// Send brings changes to the cluster, all or nothing; nil: nothing is to change.
	Send func([]cluster.Change) error
	// Refused gets a line of JSON for each record, or part of one, that is not as in the source afterwards.
	Refused io.Writer

	batch int // changes of one command; 0: batchChanges
}

// batchChanges is how many changes one command carries.
const batchChanges = 1000

// AccountsReport is what became of the accounts of a source.
type AccountsReport struct {
	Records int `json:"records"` // accounts, users, associations and QOS of the source
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Same    int `json:"unchanged"`
	Kept    int `json:"kept"` // the cluster has them in another way
	Refused int `json:"refused"`
}

// Have is what a cluster has.
type Have struct {
	Accounts []*cluster.Account
	Users    []*cluster.User
	Assocs   []*cluster.Association
	QOS      []*cluster.QOS
}

// Run brings in what a cluster lacks.
func (a *Accounts) Run(have Have) (AccountsReport, error) {
	entries, refused := a.Source.entries()
	w := &adding{
		Accounts: a,
		known:    indexOf(have),
		first:    firstIndex(),
	}
	w.report.Records = len(entries)
	for _, r := range refused {
		if err := w.refuse(r); err != nil {
			return w.report, err
		}
	}
	for _, e := range entries {
		if err := w.take(e); err != nil {
			return w.report, err
		}
	}
	if err := w.flush(); err != nil {
		return w.report, err
	}
	w.list = w.later
	err := w.flush()
	return w.report, err
}

// adding is a run of Accounts.
type adding struct {
	*Accounts
	known  index
	first  index
	report AccountsReport
	list   []pending
	later  []pending // QOS that preempt others, which may be new themselves
}

// pending is a record that is to be sent, and what counts it.
type pending struct {
	*Entry
	count *int
}

// index is what a cluster has, by name.
type index struct {
	accounts map[string]*cluster.Account
	users    map[string]*cluster.User
	assocs   map[string]*cluster.Association
	qos      map[string]*cluster.QOS
	byID     map[cluster.AssocID]*cluster.Association
}

func assocKey(a *cluster.Association) string {
	return a.Account + "\x00" + a.User + "\x00" + a.Partition
}

func indexOf(have Have) index {
	x := index{
		accounts: map[string]*cluster.Account{},
		users:    map[string]*cluster.User{},
		assocs:   map[string]*cluster.Association{},
		qos:      map[string]*cluster.QOS{},
		byID:     map[cluster.AssocID]*cluster.Association{},
	}
	for _, a := range have.Accounts {
		x.accounts[a.Name] = a
	}
	for _, u := range have.Users {
		x.users[u.Name] = u
	}
	for _, a := range have.Assocs {
		x.assocs[assocKey(a)] = a
		x.byID[a.ID] = a
	}
	for _, q := range have.QOS {
		x.qos[q.Name] = q
	}
	return x
}

// firstIndex is what every cluster has before anything is changed there.
func firstIndex() index {
	account, user, qos, assocs := cluster.FirstBooks()
	return indexOf(Have{
		Accounts: []*cluster.Account{account},
		Users:    []*cluster.User{user},
		Assocs:   assocs,
		QOS:      []*cluster.QOS{qos},
	})
}

// take adds a record, changes it or leaves it.
func (w *adding) take(e *Entry) error {
	what := w.known.complete(e)
	count := &w.report.Changed
	switch {
	case what == "":
		w.report.Same++
		return nil
	case what == unknown:
		count = &w.report.Added
	case !w.Replace && what != moreKeys && !w.untouched(e):
		w.report.Kept++
		return w.note(e, "muster has it with another "+what+" and keeps it; --replace changes it")
	}
	*count++
	if e.QOS != nil && e.QOS.Preempt != nil {
		w.later = append(w.later, pending{e, count})
		if what != unknown {
			return nil
		}
		bare := *e.QOS
		bare.Preempt = nil
		e = &Entry{e.place, cluster.Change{QOS: &bare}}
		count = new(int)
	}
	w.list = append(w.list, pending{e, count})
	if len(w.list) < cmp.Or(w.batch, batchChanges) {
		return nil
	}
	return w.flush()
}

// untouched reports whether a cluster has a record as every new cluster does.
func (w *adding) untouched(e *Entry) bool {
	old := w.known.old(e)
	return w.first.complete(&Entry{e.place, old}) == ""
}

// unknown is a record that a cluster lacks; moreKeys is one of a user who only lacks wckeys.
const (
	unknown  = "nothing"
	moreKeys = "wckeys"
)

// flush sends the records that are gathered. If the cluster refuses one, the others are sent one by one.
func (w *adding) flush() error {
	list := w.list
	w.list = nil
	if w.Send == nil || len(list) == 0 {
		return nil
	}
	var changes []cluster.Change
	for _, p := range list {
		changes = append(changes, p.Change)
	}
	err := w.Send(changes)
	if !errors.Is(err, ErrNotTaken) {
		return err
	}
	if len(list) == 1 {
		*list[0].count--
		w.report.Refused++
		return w.note(list[0].Entry, err.Error())
	}
	for i := range list {
		w.list = list[i : i+1]
		if err := w.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (w *adding) note(e *Entry, why string) error {
	return w.write(Refused{
		Table: e.table,
		Row:   e.row,
		Name:  e.Label(),
		Why:   why,
	})
}

func (w *adding) refuse(r Refused) error {
	w.report.Refused++
	return w.write(r)
}

func (w *adding) write(r Refused) error {
	text, err := wire.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Refused.Write(append(text, '\n'))
	return err
}

// old returns the record that a cluster has in place of another one, with the account that it is below.
func (x *index) old(e *Entry) (c cluster.Change) {
	switch {
	case e.Account != nil:
		c.Account = x.accounts[e.Account.Name]
	case e.User != nil:
		c.User = x.users[e.User.Name]
	case e.QOS != nil:
		c.QOS = x.qos[e.QOS.Name]
	default:
		c.Assoc = x.assocs[assocKey(e.Assoc)]
		if c.Assoc != nil && x.byID[c.Assoc.Parent] != nil && c.Assoc.User == "" {
			c.Under = x.byID[c.Assoc.Parent].Account
		}
	}
	return c
}

// complete fills in what a source does not know of a record that a cluster has, and names what differs: "" for nothing.
func (x *index) complete(e *Entry) string {
	old := x.old(e)
	switch {
	case e.Account != nil && old.Account != nil:
		return differs(*old.Account, *e.Account)
	case e.User != nil && old.User != nil:
		return completeUser(e, *old.User)
	case e.QOS != nil && old.QOS != nil:
		q := *e.QOS
		q.UsageReset = old.QOS.UsageReset
		e.QOS = &q
		was := *old.QOS
		q.ID = was.ID
		q.Spent = was.Spent
		return differs(was, q)
	case e.Assoc != nil && old.Assoc != nil:
		if old.Under != e.Under {
			return "parent"
		}
		return differs(settingsOf(old.Assoc), settingsOf(e.Assoc))
	}
	return unknown
}

// settingsOf is an association with what people set alone.
func settingsOf(a *cluster.Association) cluster.Association {
	out := *a
	out.ID = 0
	out.Parent = 0
	out.Spent = cluster.Spent{}
	out.FairShare = 0
	return out
}

// completeUser keeps the wckeys that a user has.
func completeUser(e *Entry, old cluster.User) string {
	u := *e.User
	u.WCKeys = slices.Clone(old.WCKeys)
	for _, k := range e.User.WCKeys {
		if !old.HasWCKey(k.Name) {
			u.WCKeys = append(u.WCKeys, cluster.WCKey{Name: k.Name})
		}
	}
	more := len(u.WCKeys) > len(old.WCKeys)
	u.AdminLevel = levelText(u.AdminLevel)
	old.AdminLevel = levelText(old.AdminLevel)
	e.User = &u
	now := u
	now.WCKeys = old.WCKeys
	what := differs(old, now)
	if what == "" && more {
		return moreKeys
	}
	return what
}

// levelText is a level of a user, "" for none.
func levelText(level string) string {
	if level == "None" {
		return ""
	}
	return level
}

// differs names the first field in which two records differ, as their JSON does; "" if they are equal.
func differs(old, now any) string {
	a, b := reflect.ValueOf(old), reflect.ValueOf(now)
	for i := range a.NumField() {
		x, y := a.Field(i), b.Field(i)
		if x.Kind() == reflect.Slice && x.Len() == 0 && y.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(x.Interface(), y.Interface()) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}

// parseCount reads a number that is not negative.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n < 0 {
		err = fmt.Errorf("%d is negative", n)
	}
	return n, err
}
