package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestPeerSendsOn: a peer's server cannot redirect this one to another address.
func TestPeerSendsOn(t *testing.T) {
	reached := false
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer inside.Close()
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside.URL, http.StatusTemporaryRedirect)
	}))
	defer peer.Close()
	p := &cluster.PeerCluster{URLs: peer.URL, Send: "peer.x"}
	var out api.FederationAnswer
	if err := askPeer(t.Context(), p, "c", PeerFederationPath, api.FederationCall{}, &out); err == nil || reached {
		t.Errorf("an answer that sends on: %v, reached: %v", err, reached)
	}
	_, err := sayHello(t.Context(), peer.URL, "peer.x", peerHello{})
	if err == nil || reached || !strings.Contains(err.Error(), "at another address, which has to be given instead: "+inside.URL) {
		t.Errorf("a greeting that is sent on: %v, reached: %v", err, reached)
	}
}
