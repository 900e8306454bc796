package container

import (
	"slices"
	"testing"
)

func TestEnviron(t *testing.T) {
	c := Config{Env: []string{"PATH=/bin", "A=image", "B=image", "E="}}
	got := c.Environ([]string{"PATH=/usr/bin", "A=job", "B=job", "C=job", "E=x"}, []string{"B", "D"})
	want := []string{"B=job", "C=job", "PATH=/bin:/usr/local/bin", "A=image", "E="}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
