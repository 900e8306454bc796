package client

import (
	"errors"
	"testing"

	"dev.muster/api"
)

// TestTextAgain: a text is asked for again while no server answers or none leads, as when a leader has just died, and
// once more is not asked for.
func TestTextAgain(t *testing.T) {
	f := &flaky{deaf: map[string]int{api.GetBlob.Path: 3}, alone: 2}
	texts := newTexts(f.client())
	for range 2 {
		if _, err := texts.get(t.Context(), 7, "hash"); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.calls) != 6 {
		t.Errorf("%d calls, want 6: %v", len(f.calls), f.calls)
	}
}

// TestTextRefused: a server that refuses a text is not asked again.
func TestTextRefused(t *testing.T) {
	f := &flaky{refuse: true, deaf: map[string]int{}}
	_, err := newTexts(f.client()).get(t.Context(), 7, "hash")
	if err == nil || errors.Is(err, api.ErrUnreachable) || len(f.calls) != 1 {
		t.Errorf("%v after %d calls", err, len(f.calls))
	}
}
