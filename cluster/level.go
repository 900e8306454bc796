package cluster

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"dev.muster/wire"
)

// Servers of two versions hold one state while a cluster is upgraded, so all of them must read an entry of the log
// alike. The state has a level. A version's additions to the log begin at a level: kinds of commands (the column
// since of commands), their fields and those of records (the tag since), and changes of Apply
// (tables.level). The leader raises the level once all servers of the group have said that they know it; until then
// nothing of above it is proposed.
//
//	since:"2"           a command that has this field is refused below level 2
//	since:"2,optional"  so far the field is left out
//
// Such fields must be omitempty. A new value of an old field needs a level as well: propose it at its level only.
//
// Levels of before version 0.1 were folded into the first one: no release had written them.
const (
	// First is the level of version 0.1.
	First = 1
	// Newest is the level that this program knows.
	Newest = First
)

// Level is that of what the log holds, and of what Apply makes of it.
func (t *tables) Level() int { return t.level }

// RaiseLevel says that all servers know a level.
type RaiseLevel struct {
	Level int `json:"level"`
}

func (*RaiseLevel) kind() string { return "raise_level" }

func (c *RaiseLevel) apply(t *tx) (any, error) {
	if c.Level > t.level {
		keepOld(t, &t.level)
		t.level = c.Level
	}
	return nil, nil
}

// checkLevel refuses a log or a snapshot of a level that this program does not know.
func checkLevel(level int) error {
	if level <= Newest {
		return nil
	}
	return fmt.Errorf("it is of level %d, this program knows up to %d: %w", level, Newest, ErrNewer)
}

// ErrNewer says that something of the log or a snapshot is not known here.
var ErrNewer = errors.New("it was written by a newer muster")

// newer says so of a field that is not known.
func newer(err error) error {
	if errors.Is(err, wire.ErrUnknown) {
		return fmt.Errorf("%w: %w", err, ErrNewer)
	}
	return err
}

// AtLevel is a command as servers of a level read it: without what is optional, and refused if it says more than that.
func AtLevel(cmd Command, level int) (Command, error) {
	if level >= Newest {
		return cmd, nil
	}
	if since := sinceOf(cmd.kind()); since > level {
		return nil, notYet(cmd.kind(), since)
	}
	text, err := wire.Marshal(cmd)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", cmd.kind(), err)
	}
	old := newCommand(cmd.kind())
	if err := wire.UnmarshalStrict(text, old); err != nil {
		return nil, fmt.Errorf("decode %s: %w", cmd.kind(), err)
	}
	if err := dropNewer(reflect.ValueOf(old).Elem(), level); err != nil {
		return nil, err
	}
	return old, nil
}

func sinceOf(kind string) int {
	for i := range commands {
		if commands[i].kind == kind {
			return commands[i].since
		}
	}
	return 0
}

func notYet(what string, since int) *Error {
	return Errorf(Conflict, "",
		"%s is known from level %d of the log on, and not all servers know that yet: "+
			"upgrade them all, muster server members shows their versions", what, since)
}

// dropNewer leaves out what is optional of above a level; anything else of above it is an error.
func dropNewer(v reflect.Value, level int) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return dropNewer(v.Elem(), level)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := dropNewer(v.Index(i), level); err != nil {
				return err
			}
		}
	case reflect.Map:
		return dropNewerIn(v, level)
	case reflect.Struct:
		return dropNewerOf(v, level)
	}
	return nil
}

func dropNewerIn(m reflect.Value, level int) error {
	for _, key := range m.MapKeys() {
		c := reflect.New(m.Type().Elem()).Elem()
		c.Set(m.MapIndex(key))
		if err := dropNewer(c, level); err != nil {
			return err
		}
		m.SetMapIndex(key, c)
	}
	return nil
}

func dropNewerOf(v reflect.Value, level int) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		since, optional := fieldSince(f)
		switch {
		case since <= level:
			if err := dropNewer(v.Field(i), level); err != nil {
				return err
			}
		case optional:
			v.Field(i).SetZero()
		case !v.Field(i).IsZero():
			return notYet(f.Name, since)
		}
	}
	return nil
}

// fieldSince reads the tag since.
func fieldSince(f reflect.StructField) (level int, optional bool) {
	text, option, _ := strings.Cut(f.Tag.Get("since"), ",")
	level, _ = strconv.Atoi(text) // the test of levels refuses what is no number
	return level, option == "optional"
}
