package conf

import "testing"

// TestYes: a key that is on or off takes each of Slurm's words, in any case.
func TestYes(t *testing.T) {
	for word, want := range map[string]bool{
		"YES": true, "yes": true, "True": true, "up": true, "1": true,
		"NO": false, "no": false, "FALSE": false, "Down": false, "0": false,
	} {
		got := !want
		if err := yes(&got, "Key", word); err != nil || got != want {
			t.Errorf("%s is %v, %v", word, got, err)
		}
	}
	for _, word := range []string{"", "perhaps", "2", "on"} {
		got := true
		if err := yes(&got, "Key", word); err == nil || !got {
			t.Errorf("%q is taken", word)
		}
	}
}
