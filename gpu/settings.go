package gpu

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"dev.muster/wire"
)

// Want says what a GPU is to be set to.
type Want struct {
	UUID     string   `json:"uuid"`
	Settings Settings `json:"settings"`
}

// Kept is something that could not be set.
type Kept struct {
	UUID string `json:"uuid"`
	Text string `json:"text"`
}

// setLine is what a request to set something begins with; what is wanted follows as JSON.
const setLine = "set "

// Set sets GPUs through the helper to what is wanted where they are not; it tells what could not be set. Run has to
// be under way.
func (w *Watcher) Set(ctx context.Context, want []Want) ([]Kept, error) {
	text, err := wire.Marshal(want)
	if err != nil {
		return nil, fmt.Errorf("ask for settings of GPUs: %w", err)
	}
	a, err := w.request(ctx, setLine+string(text))
	if err != nil || a.Kept == nil {
		return nil, err
	}
	return *a.Kept, nil
}

// set does in the helper what a line of Set asks for.
func set(src Source, text string) []Kept {
	var want []Want
	kept := []Kept{}
	if err := wire.Unmarshal([]byte(text), &want); err != nil || src == nil {
		return kept
	}
	for _, one := range want {
		for _, name := range slices.Sorted(maps.Keys(one.Settings)) {
			if err := src.Set(one.UUID, name, one.Settings[name]); err != nil {
				kept = append(kept, Kept{one.UUID, err.Error()})
			}
		}
	}
	return kept
}
