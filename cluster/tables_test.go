package cluster

import (
	"reflect"
	"testing"
	"unsafe"
)

// TestTableRows: every tree of the state is in the list of tables once, and so is every record of snapshots. Copies
// have trees of their own.
func TestTableRows(t *testing.T) {
	s := NewState()
	c := s.Snapshot()
	trees := treesOf(&s.tables)
	for name, tree := range trees {
		if tree == nil {
			t.Errorf("%s is not in tableRows", name)
		}
		if tree == treesOf(&c.tables)[name] {
			t.Errorf("a snapshot has the state's own %s", name)
		}
	}
	if rows := len(treeRows()); rows != len(trees) {
		t.Errorf("%d rows are trees, the state has %d", rows, len(trees))
	}
	fields := reflect.TypeFor[snapshotRecord]()
	for i := range fields.NumField() {
		var r snapshotRecord
		reflect.ValueOf(&r).Elem().Field(i).Set(reflect.New(fields.Field(i).Type.Elem()))
		if rows := takers(&r); len(rows) != 1 {
			t.Errorf("records of %s are of the tables %q, want one", fields.Field(i).Name, rows)
		}
	}
}

// treesOf are the trees of a state by their fields.
func treesOf(t *tables) map[string]unsafe.Pointer {
	out := map[string]unsafe.Pointer{}
	for _, p := range []any{t, &t.books, &t.arrayTables} {
		v := reflect.ValueOf(p).Elem()
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Type.Kind() == reflect.Pointer && f.Type.Elem().PkgPath() == "github.com/tidwall/btree" {
				out[f.Name] = v.Field(i).UnsafePointer()
			}
		}
	}
	return out
}

func treeRows() (names []string) {
	for _, row := range tableRows {
		if row.tree != nil {
			names = append(names, row.name)
		}
	}
	return names
}

// takers are the tables that a record is of.
func takers(r *snapshotRecord) (names []string) {
	for _, row := range tableRows {
		if row.stored == nil {
			continue
		}
		if row.stored.holds(r) {
			names = append(names, row.name)
		}
	}
	return names
}
