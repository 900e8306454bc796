package api

import (
	"errors"
	"strings"
	"testing"

	"dev.muster/wire"
)

// TestReadHeavy: what a peer says is read as far as it takes no more memory than a machine can spare.
func TestReadHeavy(t *testing.T) {
	say := func(rows int) error {
		text := `{"rows":[` + strings.Repeat(`{"spec":{"array":{"tasks":"0-4000000"}}},`, rows) + `{}]}`
		return Read([]byte(text), &FederationAnswer{})
	}
	if err := say(10); err != nil {
		t.Errorf("ten arrays: %v", err)
	}
	if err := say(2000); !errors.Is(err, wire.ErrHeavy) { // 86 kB, which would take a GB
		t.Errorf("2000 arrays of four million tasks: %v", err)
	}
}
