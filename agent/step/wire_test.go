package step

import (
	"bytes"
	"reflect"
	"testing"

	"dev.muster/cluster"
)

func TestSpecsTravel(t *testing.T) {
	in := []Spec{
		{ID: ID{Job: 1, Step: -5, Node: "a"}, Env: cluster.BlobText("A=\xff\x00B=2\x00"),
			Script: cluster.BlobText("#!/bin/sh\n"), Note: []byte("n"),
			Tasks: []Task{{Rank: 3, Argv: []string{"x"}, CPUs: cluster.NewIDSet(1, 2)}}},
		{ID: ID{Job: 2}, Env: cluster.BlobText(""), Script: cluster.BlobText("")},
	}
	b, err := encodeSpecs(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := DecodeSpecs(b)
	if err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%v\n%+v\n%+v", err, in, out)
	}
	for i := range b {
		if _, err := DecodeSpecs(b[:i]); err == nil {
			t.Fatalf("%d of %d bytes decode", i, len(b))
		}
	}
}

func FuzzMessage(f *testing.F) {
	b, _ := encodeSpecs([]Spec{{ID: ID{Job: 1}, Env: cluster.BlobText("A=1\x00")}})
	f.Add(AppendMessage(nil, MsgStart, Number(1), b))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		kind, body, err := ReadMessage(bytes.NewReader(in), MaxMessage)
		if err != nil {
			return
		}
		if got := AppendMessage(nil, kind, body); !bytes.HasPrefix(in, got) {
			t.Errorf("%q becomes %q", in, got)
		}
		if _, body, err := CutNumber(body); err == nil {
			DecodeSpecs(body)
		}
	})
}

func TestParseStat(t *testing.T) {
	st, ok := parseProcess(5, "5 (a) b (c)) S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 0 0")
	if !ok || st.Ppid != 1 || st.Pgrp != 2 || st.Session != 3 || st.Start != 777 || st.State != 'S' {
		t.Errorf("%+v %v", st, ok)
	}
	if _, ok := parseProcess(5, "junk"); ok {
		t.Error("junk parses")
	}
}
