package cluster

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dev.muster/wire"
)

// TestFieldOrder: a configuration is written in its order, whatever section a field is in, and the order names fields
// that there are, each once.
func TestFieldOrder(t *testing.T) {
	want := Config{}.FieldOrder()
	var c Config
	c.RequeueExit, c.RequeueExitHold = NewIDSet(1), NewIDSet(2) // fillSome has no values for these
	r := rand.New(rand.NewPCG(1, 2))
	got := map[string]bool{}
	for range 50 { // what is empty is left out
		fillSome(r, reflect.ValueOf(&c).Elem(), 0)
		names := membersOf(t, &c)
		if places := placesIn(want, names); !slices.IsSorted(places) {
			t.Fatalf("written in another order: %v", names)
		}
		for _, name := range names {
			got[name] = true
		}
	}
	for i, name := range want {
		if !got[name] || slices.Index(want, name) != i {
			t.Errorf("the order names %s, which is no field or stands there twice", name)
		}
	}
}

// membersOf are the names of the members that a value is written with, as they follow each other.
func membersOf(t *testing.T, v any) (names []string) {
	t.Helper()
	text, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(text)))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
	}
	return names
}

// placesIn are the places of names in an order, behind all others if they have none.
func placesIn(order, names []string) (places []int) {
	for _, name := range names {
		i := slices.Index(order, name)
		if i < 0 {
			i = len(order)
		}
		places = append(places, i)
	}
	return places
}
