package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriteNotices: each component is listed with its license, an equal text is there once, and a license that is not
// known is an error.
func TestWriteNotices(t *testing.T) {
	const mit = "Permission is hereby granted, free of\ncharge, to any person\n"
	const mpl = "Mozilla Public License, version 2.0\n"
	for name, c := range map[string]struct {
		list []component
		has  []string
		err  string
	}{
		"equal texts": {
			list: []component{{"a", "v1", []string{mit}}, {"b", "v2", []string{mit}}},
			has:  []string{"  a v1: MIT\n  b v2: MIT\n", "\na, b\n\n" + mit},
		},
		"source": {
			list: []component{{"host/c", "v3", []string{mpl}}},
			has:  []string{"  host/c v3: MPL-2.0\n    source: https://host/c, version v3\n"},
		},
		"notice beside a license": {
			list: []component{{"d", "v1", []string{mit, "Copyright of many\n"}}},
			has:  []string{"  d v1: MIT\n", "\nd\n\nCopyright of many\n"},
		},
		"unknown": {
			list: []component{{"e", "v1", []string{"All rights reserved\n"}}},
			err:  "the license of e is none of the known ones",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := writeNotices(c.list)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("error %v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range c.has {
				if strings.Count(got, part) != 1 {
					t.Errorf("%q is not there once:\n%s", part, got)
				}
			}
		})
	}
}

// TestNoticesAreCurrent: the file in the repository names all that is linked now.
func TestNoticesAreCurrent(t *testing.T) {
	root := filepath.Join("..", "..")
	list, err := findComponents(root)
	if err != nil {
		t.Fatal(err)
	}
	want, err := writeNotices(list)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "packaging", "NOTICES"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("packaging/NOTICES is not what is linked: make notices")
	}
}
