package cluster

import "testing"

// TestCoordinators: they change what is below their accounts and nothing else.
func TestCoordinators(t *testing.T) {
	s := NewState()
	change := func(by Identity, list ...Change) *Error {
		return s.Apply(Entry{At: s.Now, By: by, Cmd: &ChangeAccounts{Changes: list}}).Err
	}
	root, ann := Identity{}, Identity{UID: 1001, User: "ann"}
	if err := change(root, Change{Account: &Account{Name: "lab", Coordinators: []string{"ann"}}}, Change{Assoc: &Association{Account: "lab", Shares: 1}},
		Change{Account: &Account{Name: "other"}}, Change{Assoc: &Association{Account: "other", Shares: 1}}, Change{User: &User{Name: "bob", DefaultAccount: "other"}},
		Change{Assoc: &Association{Account: "other", User: "bob", Shares: 1}}); err != nil {
		t.Fatal(err)
	}
	lab, _ := s.AssocOf("lab", "", "")
	other, _ := s.AssocOf("other", "", "")
	for _, c := range []struct {
		name string
		by   Identity
		list []Change
		ok   bool
	}{
		{"a stranger", Identity{UID: 1002, User: "eve"}, []Change{{Assoc: &Association{Account: "lab", Shares: 2}}}, false},
		{"a new user", ann, []Change{{User: &User{Name: "cid", DefaultAccount: "lab"}}, {Assoc: &Association{Account: "lab", User: "cid", Shares: 1}}}, true},
		{"somebody else's user", ann, []Change{{Assoc: &Association{Account: "lab", User: "bob", Shares: 1}}}, true},
		{"a limit of a user", ann, []Change{{Assoc: &Association{Account: "lab", User: "cid", Shares: 1, Limits: Limits{{Name: "MaxJobs", Max: 3}}}}}, true},
		{"an account below", ann, []Change{{Account: &Account{Name: "sub"}}, {Assoc: &Association{Account: "sub", Parent: lab.ID, Shares: 1}}}, true},
		{"a user below", ann, []Change{{Assoc: &Association{Account: "sub", User: "cid", Shares: 1}}}, true},
		{"an account elsewhere", ann, []Change{{Account: &Account{Name: "sub2"}}, {Assoc: &Association{Account: "sub2", Parent: other.ID, Shares: 1}}}, false},
		{"the own account elsewhere", ann, []Change{{Assoc: &Association{Account: "lab", Parent: other.ID, Shares: 1}}}, false},
		{"another account's user", ann, []Change{{Assoc: &Association{Account: "other", User: "bob", Shares: 9}}}, false},
		{"an administrator", ann, []Change{{User: &User{Name: "cid", DefaultAccount: "lab", AdminLevel: "Administrator"}}}, false},
		{"a QOS", ann, []Change{{QOS: &QOS{Name: "fast"}}}, false},
		{"a user who is elsewhere too", ann, []Change{{User: &User{Name: "bob"}, Delete: true}}, false},
		{"a user of the account alone", ann, []Change{{User: &User{Name: "cid", DefaultAccount: "lab"}, Delete: true}}, true},
	} {
		if err := change(c.by, c.list...); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
