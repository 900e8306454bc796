package front

import (
	"fmt"
	"strings"
	"testing"
)

func TestHetTargets(t *testing.T) {
	for w, want := range map[string]string{
		"42+[0-1,3]": "42+0 42+1 42+3", "42+[2]": "42+2", "42+1": "42+1", "42_[1-2]": "42_[1-2]",
		"42+[x]": "42+[x]", "42+[0-1": "42+[0-1", "42+[0-500]": "42+[0-500]", "a+[b]": "a+[b]",
	} {
		if got := strings.Join(SplitParts(w), " "); got != want {
			t.Errorf("%s is %s", w, got)
		}
	}
	for w, want := range map[string]string{
		"42+1": "42 2", "42+0": "42 1", "42": "42 0", "42+1.3": "42 2 3", "42+x": "", "42+1_2": "",
	} {
		got := ""
		if x, ok := ParseTarget(w); ok {
			if got = fmt.Sprint(x.Ref.Job, " ", x.Ref.Part); x.Step != nil {
				got += fmt.Sprint(" ", *x.Step)
			}
		}
		if got != want {
			t.Errorf("%s is %q, want %q", w, got, want)
		}
	}
}
