package api

// Layers of images go from node to node: a node that fetches one asks the server that leads who has it, and a
// later one is sent to the node before it. The server's knowledge is in memory alone: without it a layer is
// fetched from its registry once more.
var FindLayer = Endpoint[LayerQuery, LayerPlace]{"POST", "/v1/layers/find", Node, true, 0}

const (
	// FetchLayer is the tunnel by which the process that fetches images gets a layer from its node's daemon: head and
	// bytes, as package layers keeps them, as far as other nodes have them.
	FetchLayer = "/v1/layers/fetch"
	// SendLayer is the tunnel by which a client gets it from another one.
	SendLayer = "/v1/layers/send"
)

// LayerQuery asks who has a layer, or will have it.
type LayerQuery struct {
	Key  string `json:"key"`  // of package layers
	Addr string `json:"addr"` // of the client that asks, and will have it
	// Failed are addresses that did not have it.
	Failed []string `json:"failed,omitempty"`
}

// LayerPlace is the address of the client to ask; empty: nobody's, the registry has it.
type LayerPlace struct {
	Addr string `json:"addr,omitempty"`
}

// LayerRequest asks for a layer from a byte on, the head's counted.
type LayerRequest struct {
	Key  string `json:"key"`
	From int64  `json:"from,omitempty"`
	End  int64  `json:"end,omitempty"` // where it ends, if that is known; it must be where From is behind the head
}
