package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/wire"
)

// Transaction tells history of one change of the books.
type Transaction struct {
	At     time.Time `json:"at"`
	Action string    `json:"action"` // as Slurm words it: Add Accounts, Modify QOS, Remove Users …
	Actor  string    `json:"actor"`
	Where  string    `json:"where"` // which record
	Info   string    `json:"info"`  // its fields that were set or changed, as key=value, values as JSON
	// Account and User are whom it concerns, if any.
	Account string `json:"account,omitempty"`
	User    string `json:"user,omitempty"`
	// Gone are the records that it took away, as they were.
	Gone []Change `json:"gone,omitempty"`
}

// maxTransactionInfo bounds the text of one.
const maxTransactionInfo = 4096

// actor is who it was.
func (id Identity) actor() string {
	if id.User == "" {
		return fmt.Sprintf("uid %d", id.UID)
	}
	return id.User
}

// record is what a change is about: the kind's name in Slurm, which one it is, and the record there and to be.
func (c *Change) record(t *tx) (kind, where string, old, now any) {
	switch {
	case c.Account != nil:
		o, _ := t.accounts.Get(c.Account.Name)
		return "Accounts", "name='" + c.Account.Name + "'", o, c.Account
	case c.User != nil:
		o, _ := t.users.Get(c.User.Name)
		return "Users", "name='" + c.User.Name + "'", o, c.User
	case c.QOS != nil:
		o, _ := t.qos.Get(c.QOS.Name)
		return "QOS", "name='" + c.QOS.Name + "'", o, c.QOS
	case c.Assoc != nil:
		a := c.Assoc
		where = "acct='" + a.Account + "'"
		if a.User != "" {
			where += " user='" + a.User + "'"
		}
		if a.Partition != "" {
			where += " partition='" + a.Partition + "'"
		}
		var o *Association
		if id, ok := t.byOwner.Get(ownerOf(a.Account, a.User, a.Partition)); ok {
			o, _ = t.assocs.Get(*id)
		}
		return "Associations", where, o, a
	}
	return "", "", nil, nil
}

// transaction is what history is told of a change that is about to be made.
func (c *Change) transaction(t *tx) (*Transaction, error) {
	kind, where, old, now := c.record(t)
	if kind == "" {
		return nil, nil // which the change refuses
	}
	before, err := fieldsOf(old)
	if err != nil {
		return nil, err
	}
	after, err := fieldsOf(now)
	if err != nil {
		return nil, err
	}
	x := &Transaction{
		At:     t.at,
		Actor:  t.by.actor(),
		Where:  where,
		Action: "Add " + kind,
	}
	switch {
	case c.Delete:
		x.Action = "Remove " + kind
		after = nil
	case before != nil:
		x.Action = "Modify " + kind
	}
	if c.Account != nil {
		x.Account = c.Account.Name
	}
	if c.User != nil {
		x.User = c.User.Name
	}
	if c.Assoc != nil {
		x.Account = c.Assoc.Account
		x.User = c.Assoc.User
	}
	var info []string
	for _, k := range slices.Sorted(maps.Keys(after)) {
		if string(before[k]) != string(after[k]) {
			info = append(info, k+"="+string(after[k]))
		}
	}
	if !c.Delete {
		for _, k := range slices.Sorted(maps.Keys(before)) {
			if _, ok := after[k]; !ok {
				info = append(info, k+"=")
			}
		}
	}
	if c.Reset {
		info = append(info, "raw_usage=0")
	}
	if c.Usage != nil {
		info = append(info, "raw_usage="+strconv.FormatFloat(c.Usage.Raw, 'f', -1, 64))
	}
	x.Info = strings.Join(info, ", ")
	x.Info = x.Info[:min(len(x.Info), maxTransactionInfo)]
	return x, nil
}

// fieldsOf are the fields of a record that people set, as JSON; nil for none.
func fieldsOf(record any) (map[string]wire.RawMessage, error) {
	text, err := wire.Marshal(record)
	if err != nil || string(text) == "null" {
		return nil, err
	}
	out := map[string]wire.RawMessage{}
	if err := wire.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	for _, k := range []string{"id", "name", "account", "user", "partition", "spent", "fair_share"} {
		delete(out, k)
	}
	return out, nil
}
