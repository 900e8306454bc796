package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dev.muster/agent/agenttest"
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

// TestPeerTexts: what another cluster tells of itself is checked before it is kept.
func TestPeerTexts(t *testing.T) {
	for _, row := range []struct {
		urls, token string
		good        bool
	}{
		{"http://a:7480", "peer.ABC", true},
		{"http://a:7480,https://b.example/muster", "peer.ABC", true},
		{"https://[::1]:7480/", "", true},
		{"", "peer.ABC", true},
		{"http://a:7480/%0d%0aX: y", "peer.ABC", false},
		{"http://a:7480/%0d%0aX:y", "peer.ABC", false},
		{"http://user:pass@a:7480", "peer.ABC", false},
		{"http://a:7480/?x=", "peer.ABC", false},
		{"http://a:7480#x", "peer.ABC", false},
		{"file:///etc/passwd", "peer.ABC", false},
		{"unix:///run/x", "peer.ABC", false},
		{"a:7480", "peer.ABC", false},
		{"http://a:7480,", "peer.ABC", false},
		{"http://", "peer.ABC", false},
		{"http://a:7480", "peer.A\r\nX: y", false},
		{"http://a:7480", "peer. A", false},
	} {
		t.Run(row.urls+" "+row.token, func(t *testing.T) {
			err := checkPeer(&cluster.PeerCluster{Name: "b", URLs: row.urls, Send: row.token})
			if good := err == nil; good != row.good {
				t.Errorf("it is refused with %v", err)
			}
		})
	}
}

// TestPeerGreetings: an invitation is good for one greeting, which may be repeated and then writes nothing.
func TestPeerGreetings(t *testing.T) {
	fresh := cluster.PeerCluster{Name: "b", Accept: "x"}
	used := cluster.PeerCluster{Name: "b", Accept: "x", URLs: "http://b:7480", Send: "peer.1"}
	for name, row := range map[string]struct {
		peer          cluster.PeerCluster
		hello         peerHello
		changed, fail bool
	}{
		"first":         {fresh, peerHello{URLs: "http://b:7480", Token: "peer.1"}, true, false},
		"repeated":      {used, peerHello{URLs: "http://b:7480", Token: "peer.1"}, false, false},
		"other address": {used, peerHello{URLs: "http://c:7480", Token: "peer.1"}, false, true},
		"other token":   {used, peerHello{URLs: "http://b:7480", Token: "peer.2"}, false, true},
		"bad token":     {fresh, peerHello{URLs: "http://b:7480", Token: "peer.1\n"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			next, changed, err := greeted(&row.peer, &row.hello)
			if changed != row.changed || (err != nil) != row.fail {
				t.Fatalf("changed %v, %v", changed, err)
			}
			if err == nil && (next.URLs != row.hello.URLs || next.Send != row.hello.Token || next.Accept != "x") {
				t.Errorf("it is %+v now", next)
			}
		})
	}
}

// TestPeerCallsItselfAnother: a cluster that is added cannot take the place of a peer at other addresses.
func TestPeerCallsItselfAnother(t *testing.T) {
	state := cluster.NewState()
	do := agenttest.Doing(t, state, 4)
	put := func(name, urls, send string) {
		accept := strings.Repeat("ab", 32)
		do(&cluster.PeerPut{Peer: cluster.PeerCluster{Name: name, URLs: urls, Send: send, Accept: accept}})
	}
	put("beta", "http://b:7480", "peer.1")
	put("invited", "", "")
	for _, row := range []struct {
		name, urls string
		good       bool
	}{
		{"gamma", "http://c:7480", true},
		{"beta", "http://b:7480", true},
		{"beta", "http://c:7480", false},
		{"BETA", "http://c:7480", false},
		{"invited", "http://c:7480", false},
	} {
		t.Run(row.name+" at "+row.urls, func(t *testing.T) {
			err := checkNewPeer(state.Snapshot(), row.name, row.urls)
			if good := err == nil; good != row.good {
				t.Errorf("it is refused with %v", err)
			}
		})
	}
}
