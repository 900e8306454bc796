package server

import (
	"fmt"
	"strings"
	"testing"

	"dev.muster/agent/container/layers"
	"dev.muster/api"
)

// TestLayerQuestions: what a member's question about a layer leaves with the server is small, however it asks.
func TestLayerQuestions(t *testing.T) {
	find := findLayer(layers.NewRows())
	who := api.Caller{Member: "n1"}
	long := strings.Repeat("a", maxLayerAddr+1)
	for name, q := range map[string]api.LayerQuery{
		"no layer":      {Addr: "n1:1"},
		"no address":    {Key: "k"},
		"long name":     {Key: long, Addr: "n1:1"},
		"long address":  {Key: "k", Addr: long},
		"many failures": {Key: "k", Addr: "n1:1", Failed: make([]string, maxLayerFailed+1)},
	} {
		if _, err := find(t.Context(), who, q); err == nil || len(err.Error()) > 4*maxLayerKey {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range 3 {
		if _, err := find(t.Context(), who, api.LayerQuery{Key: "k", Addr: fmt.Sprint("n1:", i)}); err != nil {
			t.Fatal(err)
		}
	}
	at, err := find(t.Context(), api.Caller{Member: "n2"}, api.LayerQuery{Key: "k", Addr: "n2:1"})
	if err != nil || at.Addr != "n1:2" {
		t.Errorf("%+v, %v", at, err)
	}
}
