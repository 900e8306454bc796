package agent

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dev.muster/agent/server"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Other clusters are asked through tunnels: a front-end opens one at its own daemon, a server of this cluster
// leads it to a server of the other one, with the peer's token and the name of the user, and there the calls of the
// tunnel are served as that user's. So a peer's token never leaves the servers, and every
// call works there as it does here.

// peerRoutes registers the tunnel at a server.
func peerRoutes(m *api.Mux, s *server.Server) {
	if s != nil {
		server.ReachPeers(s, func(who api.Caller, name string) (*api.Client, error) {
			p, as, err := server.PeerTarget(s, who, name)
			own := s.Snapshot().Config().ClusterName
			dial := func(ctx context.Context) (api.Conn, error) { return dialPeer(ctx, p, own, as) }
			return &api.Client{Dial: dial}, err
		})
	}
	check := func(who api.Caller, body []byte) error {
		var q api.PeerQuery
		if err := wire.Unmarshal(body, &q); err != nil {
			return cluster.Errorf(cluster.Invalid, "", "the name of a cluster: %v", err)
		}
		_, _, err := server.PeerTarget(s, who, q.Cluster)
		return err
	}
	lead := func(ctx context.Context, who api.Caller, body []byte, near api.Conn) error {
		var q api.PeerQuery
		if err := wire.Unmarshal(body, &q); err != nil {
			return err
		}
		p, as, err := server.PeerTarget(s, who, q.Cluster)
		if err != nil {
			return err
		}
		far, err := dialPeer(ctx, p, s.Snapshot().Config().ClusterName, as)
		if err != nil {
			_, _ = io.WriteString(near, strings.ReplaceAll(err.Error(), "\n", " ")+"\n")
			return err
		}
		if _, err := io.WriteString(near, api.PeerReached+"\n"); err != nil {
			far.Close()
			return err
		}
		api.Splice(ctx, near, far)
		return nil
	}
	api.HandleTunnel(m, api.CallPeer, api.User, check, lead)
}

// maxPeerAnswer bounds what a peer may say before a tunnel begins, in bytes.
const maxPeerAnswer = 64 << 10

// dialPeer connects to the first server of a peer that answers.
func dialPeer(ctx context.Context, p *cluster.PeerCluster, own, as string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, server.PeerTime)
	defer cancel()
	list := strings.Split(p.URLs, ",")
	var err error
	for i, text := range list {
		one, done := context.WithTimeout(ctx, server.PeerTime/time.Duration(len(list)-i+1)+server.PeerTime/4)
		var conn net.Conn
		conn, err = dialPeerAt(one, text, p.Send, own, as)
		done()
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// dialPeerAt connects to a server of a peer, which agrees to serve a user.
func dialPeerAt(ctx context.Context, text, token, own, as string) (net.Conn, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"https": "443"}[u.Scheme])
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: u.Hostname()})
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := askTunnel(conn, text, token, own, as); err != nil {
		conn.Close()
		return nil, err
	}
	answer := &io.LimitedReader{R: conn, N: maxPeerAnswer}
	r := bufio.NewReader(answer)
	resp, err := http.ReadResponse(r, nil)
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		err = fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(why)))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	answer.N = math.MaxInt64
	return &bufferedConn{conn, r}, nil
}

// askTunnel writes the request that opens a tunnel at a peer. Line breaks in the address or token that the peer
// supplied cannot add lines to the request.
func askTunnel(conn io.Writer, at, token, own, as string) error {
	r, err := http.NewRequest(http.MethodPost, strings.TrimSuffix(at, "/")+server.PeerCallPath, nil)
	if err != nil {
		return err
	}
	for key, value := range map[string]string{
		"Connection":          "Upgrade",
		"Upgrade":             api.PeerProtocol,
		"Authorization":       "Bearer " + token,
		server.PeerNameHeader: own,
		server.PeerUserHeader: as,
	} {
		r.Header.Set(key, value)
	}
	return r.Write(conn)
}

// servePeers answers peers on the port of the page.
func servePeers(x *rest, s *server.Server, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == server.PeerHelloPath {
		server.ServePeerHello(s, w, r, func(ctx context.Context, put cluster.PeerPut) error {
			return admitPeer(ctx, x.as, put, "address:"+visitorAddress(r))
		})
		return
	}
	p, err := server.PeerOfToken(s, r.Header.Get(server.PeerNameHeader), r)
	if err == nil && r.URL.Path == server.PeerFederationPath {
		serveFederation(x.as, p, w, r)
		return
	}
	var who api.Caller
	if err == nil {
		who, err = server.PeerCaller(s, p, r.Header.Get(server.PeerUserHeader))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if r.Header.Get("Upgrade") != api.PeerProtocol {
		http.Error(w, "this path is a tunnel for peers", http.StatusBadRequest)
		return
	}
	conn, err := upgrade(w, api.PeerProtocol)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	who.Origin = "cluster:" + p.Name + "@" + visitorAddress(r)
	x.conns.put(&innerConn{conn, caller{Caller: who, token: true}})
}

// serveFederation has the leader answer another member of a federation.
func serveFederation(as *handler, p *cluster.PeerCluster, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
	var q api.FederationCall
	if err == nil {
		err = api.Read(body, &q)
	}
	if err != nil {
		http.Error(w, "the call cannot be read", http.StatusBadRequest)
		return
	}
	if !strings.EqualFold(q.From, p.Name) {
		http.Error(w, "the call names another cluster than its token is of", http.StatusForbidden)
		return
	}
	own := api.Caller{Identity: cluster.Identity{System: true}}
	status, reply, err := as.callAs(r.Context(), own, api.CallFederation.Method, api.CallFederation.Path, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(reply)
}

// admitPeer has the leader write down what a peer has told.
func admitPeer(ctx context.Context, as *handler, put cluster.PeerPut, from string) error {
	body, err := wire.Marshal(put)
	if err != nil {
		return err
	}
	own := api.Caller{Identity: cluster.Identity{System: true, Origin: from, Login: "cluster " + put.Peer.Name}}
	status, reply, err := as.callAs(ctx, own, api.AdmitPeer.Method, api.AdmitPeer.Path, body)
	if err != nil || status == http.StatusOK {
		return err
	}
	var e api.Error
	if wire.Unmarshal(reply, &e) != nil {
		return fmt.Errorf("status %d", status)
	}
	return &e
}

// carryTunnel leads a tunnel that this process does not serve to a server.
func (c *call) carryTunnel() {
	vouch, err := c.gateway.vouchFor(c)
	if err != nil {
		c.fail(c.w, c.r, err)
		return
	}
	far, err := c.gateway.fleet.client.ForwardTunnel(c.ctx, c.r.URL.Path, c.r.Header.Get("Upgrade"), vouch, c.body)
	if err != nil {
		c.fail(c.w, c.r, err)
		return
	}
	conn, err := upgrade(c.w, c.r.Header.Get("Upgrade"))
	if err != nil {
		far.Close()
		c.fail(c.w, c.r, err)
		return
	}
	api.Splice(c.ctx, conn, far)
}
