package step

import (
	"reflect"
	"slices"
	"testing"
)

func TestAroundCommand(t *testing.T) {
	a := Around{
		Node: "n1", PIDEnv: "PID", Prologs: []AroundScript{{"/a b", true}, {"/c", false}},
		Epilogs: []AroundScript{{"/d", true}},
	}
	got, argv, err := ParseAround(a.Command([]string{"self"}, []string{"prog", "2", "x"})[1:])
	if err != nil || !reflect.DeepEqual(got, a) || !slices.Equal(argv, []string{"prog", "2", "x"}) {
		t.Errorf("%+v %q %v", got, argv, err)
	}
	for _, bad := range [][]string{
		nil, {"n", "P", "1", "true"}, {"n", "P", "0", "0"}, {"n", "P", "x", "0", "a"},
		{"n", "P", "-1", "0", "a"},
	} {
		if _, _, err := ParseAround(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
