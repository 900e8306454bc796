package supervisor

import (
	"reflect"
	"strings"
	"testing"

	"dev.muster/agent/step"
)

func TestJournalCutShort(t *testing.T) {
	j := `{"op":"start","id":{"job":1},"spec":{"id":{"job":1},"tasks":[{"rank":0}]}}
{"op":"task","id":{"job":1},"pid":7,"status":{"rank":0,"pid":7}}
{"op":"start","id":{"job":2},"spec":{"id":{"job":2}}}
{"op":"forget","id":{"job":2}}
{"op":"exit","id":{"jo`
	m := readJournal(strings.NewReader(j+"\n{\"op\":\"frozen\",\"id\":{\"job\":1},\"frozen\":true}\n"), "")
	p := m[step.ID{Job: 1}]
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
