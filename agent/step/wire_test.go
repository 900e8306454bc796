package step

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"dev.muster/cluster"
)

func TestSpecsTravel(t *testing.T) {
	in := []Spec{
		{ID: ID{Job: 1, Step: -5, Node: "a"}, Env: cluster.BlobText("A=\xff\x00B=2\x00"), Script: cluster.BlobText("#!/bin/sh\n"), Note: []byte("n"),
			Tasks: []Task{{Rank: 3, Argv: []string{"x"}, CPUs: cluster.NewIDSet(1, 2)}}},
		{ID: ID{Job: 2}, Env: cluster.BlobText(""), Script: cluster.BlobText("")},
	}
	b, err := encodeSpecs(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := decodeSpecs(b)
	if err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%v\n%+v\n%+v", err, in, out)
	}
	for i := range b {
		if _, err := decodeSpecs(b[:i]); err == nil {
			t.Fatalf("%d of %d bytes decode", i, len(b))
		}
	}
}

func FuzzMessage(f *testing.F) {
	b, _ := encodeSpecs([]Spec{{ID: ID{Job: 1}, Env: cluster.BlobText("A=1\x00")}})
	f.Add(appendMessage(nil, msgStart, number(1), b))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		kind, body, err := readMessage(bytes.NewReader(in), MaxMessage)
		if err != nil {
			return
		}
		if got := appendMessage(nil, kind, body); !bytes.HasPrefix(in, got) {
			t.Errorf("%q becomes %q", in, got)
		}
		if _, body, err := cutNumber(body); err == nil {
			decodeSpecs(body)
		}
	})
}

func TestJournalCutShort(t *testing.T) {
	j := `{"op":"start","id":{"job":1},"spec":{"id":{"job":1},"tasks":[{"rank":0}]}}
{"op":"task","id":{"job":1},"pid":7,"status":{"rank":0,"pid":7}}
{"op":"start","id":{"job":2},"spec":{"id":{"job":2}}}
{"op":"forget","id":{"job":2}}
{"op":"exit","id":{"jo`
	m := readJournal(strings.NewReader(j+"\n{\"op\":\"frozen\",\"id\":{\"job\":1},\"frozen\":true}\n"), "")
	p := m[ID{Job: 1}]
	if len(m) != 1 || p == nil || p.tasks[0].PID != 7 || !p.frozen || p.ended {
		t.Errorf("%+v", m)
	}
}

func TestMergeEnv(t *testing.T) {
	got := mergeEnv([]string{"A=1", "B=2", "A=3"}, "B=4", "C=5", "C=6")
	if want := []string{"A=3", "B=4", "C=6"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestParseStat(t *testing.T) {
	st, ok := parseStat(5, "5 (a) b (c)) S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 0 0")
	if !ok || st.ppid != 1 || st.pgrp != 2 || st.session != 3 || st.start != 777 || st.state != 'S' {
		t.Errorf("%+v %v", st, ok)
	}
	if _, ok := parseStat(5, "junk"); ok {
		t.Error("junk parses")
	}
}
