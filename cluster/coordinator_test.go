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
		{
			"a stranger", Identity{UID: 1002, User: "eve"},
			[]Change{{Assoc: &Association{Account: "lab", Shares: 2}}}, false,
		},
		{
			"a new user", ann,
			[]Change{
				{User: &User{Name: "cid", DefaultAccount: "lab"}},
				{Assoc: &Association{Account: "lab", User: "cid", Shares: 1}},
			},
			true,
		},
		{"somebody else's user", ann, []Change{{Assoc: &Association{Account: "lab", User: "bob", Shares: 1}}}, true},
		{
			"a limit of a user", ann,
			[]Change{
				{
					Assoc: &Association{
						Account: "lab", User: "cid", Shares: 1, Limits: Limits{{Name: "MaxJobs", Max: 3}},
					},
				},
			},
			true,
		},
		{
			"an account below", ann,
			[]Change{
				{Account: &Account{Name: "sub"}},
				{Assoc: &Association{Account: "sub", Parent: lab.ID, Shares: 1}},
			},
			true,
		},
		{"a user below", ann, []Change{{Assoc: &Association{Account: "sub", User: "cid", Shares: 1}}}, true},
		{
			"an account elsewhere", ann,
			[]Change{
				{Account: &Account{Name: "sub2"}},
				{Assoc: &Association{Account: "sub2", Parent: other.ID, Shares: 1}},
			},
			false,
		},
		{
			"the own account elsewhere", ann,
			[]Change{{Assoc: &Association{Account: "lab", Parent: other.ID, Shares: 1}}}, false,
		},
		{
			"another account's user", ann,
			[]Change{{Assoc: &Association{Account: "other", User: "bob", Shares: 9}}}, false,
		},
		{
			"an administrator", ann,
			[]Change{{User: &User{Name: "cid", DefaultAccount: "lab", AdminLevel: "Administrator"}}}, false,
		},
		{"a QOS", ann, []Change{{QOS: &QOS{Name: "fast"}}}, false},
		{"a user who is elsewhere too", ann, []Change{{User: &User{Name: "bob"}, Delete: true}}, false},
		{
			"a user of the account alone", ann,
			[]Change{{User: &User{Name: "cid", DefaultAccount: "lab"}, Delete: true}}, true,
		},
	} {
		if err := change(c.by, c.list...); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestOwnDefaults: users choose which of their accounts is the default one, and nothing else.
func TestOwnDefaults(t *testing.T) {
	s := NewState()
	s.Apply(Entry{At: s.Now, By: sys, Cmd: &RaiseLevel{Level: Newest}})
	change := func(by Identity, list ...Change) *Error {
		return s.Apply(Entry{At: s.Now, By: by, Cmd: &ChangeAccounts{Changes: list}}).Err
	}
	place := func(account, user string) Change {
		return Change{Assoc: &Association{Account: account, User: user, Shares: 1}}
	}
	bob := Identity{UID: 1001, User: "bob"}
	if err := change(Identity{}, Change{Account: &Account{Name: "a"}}, place("a", ""), Change{Account: &Account{Name: "b"}}, place("b", ""),
		Change{Account: &Account{Name: "c"}}, place("c", ""), Change{User: &User{Name: "bob", DefaultAccount: "a"}}, place("a", "bob"), place("b", "bob"),
		Change{User: &User{Name: "eve", DefaultAccount: "a"}}, place("a", "eve"), place("b", "eve")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		list []Change
		ok   bool
	}{
		"one that the user has":     {[]Change{{User: &User{Name: "bob", DefaultAccount: "b"}}}, true},
		"one that the user has not": {[]Change{{User: &User{Name: "bob", DefaultAccount: "c"}}}, false},
		"another's":                 {[]Change{{User: &User{Name: "eve", DefaultAccount: "b"}}}, false},
		"and more power": {
			[]Change{{User: &User{Name: "bob", DefaultAccount: "b", AdminLevel: "Operator"}}}, false,
		},
		"and a limit": {[]Change{{User: &User{Name: "bob", DefaultAccount: "b"}}, place("b", "bob")}, false},
		"and away":    {[]Change{{User: &User{Name: "bob", DefaultAccount: "b"}, Delete: true}}, false},
	} {
		if err := change(bob, c.list...); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
