package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"dev.muster/agent/users"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Clusters become peers by one exchange of tokens. One makes an invitation, which is a token; the other's server
// shows it, with a token of its own for the way back. Both are kept in the state, that which is accepted as a hash.

// Paths by which peers reach each other, on the port of the page.
const (
	PeerHelloPath = "/muster/peer/hello"
	PeerCallPath  = "/muster/peer/call"
	// PeerUserHeader names the user in whose name a peer calls.
	PeerUserHeader = "X-Muster-User"
	// PeerNameHeader names the cluster that calls.
	PeerNameHeader = "X-Muster-Cluster"
	// PeerTime is how long a peer may take to answer a connection: one that is away costs no more.
	PeerTime = 3 * time.Second

	maxPeerHello = 64 << 10
	maxPeerError = 1 << 10
)

// peerHello is what a cluster that was invited tells.
type peerHello struct {
	Cluster string `json:"cluster"`
	URLs    string `json:"urls"`
	Token   string `json:"token"`
}

// peerers makes and removes peers for a server.
type peerers struct{ *Server }

func (k peerers) routes(m *api.Mux) {
	handle(k.Server, m, api.InvitePeer, k.invite)
	handle(k.Server, m, api.AddPeer, k.add)
	handle(k.Server, m, api.ListPeers, k.list)
	handle(k.Server, m, api.NameSlurm, k.nameSlurm)
	write(m, k.Server, api.RemovePeer)
	federationRoutes(k.Server, m)
	write(m, k.Server, api.AdmitPeer)
}

func peerSecret() (text, verifier string) {
	text = "peer." + rand.Text()
	return text, verifierOf(text)
}

func verifierOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// invite makes the token by which another cluster becomes a peer.
func (k peerers) invite(ctx context.Context, who api.Caller, q api.PeerInvitation) (none api.PeerInvited, _ error) {
	if err := operator(who, "invite other clusters"); err != nil {
		return none, err
	}
	text, verifier := peerSecret()
	p := cluster.PeerCluster{Name: q.Name, Accept: verifier, Root: q.Root}
	_, index, err := k.propose(ctx, who.Identity, &cluster.PeerPut{Peer: p})
	return api.PeerInvited{Token: text, Index: index}, err
}

// add shows an invitation, and keeps what comes of it.
func (k peerers) add(ctx context.Context, who api.Caller, q api.PeerRequest) (none api.PeerAdded, _ error) {
	if err := operator(who, "make other clusters peers"); err != nil {
		return none, err
	}
	if err := checkPeer(&cluster.PeerCluster{URLs: q.URLs, Send: q.Token}); err != nil {
		return none, err
	}
	own := k.Snapshot().Config().ClusterName
	back, verifier := peerSecret()
	urls := q.Own
	if page := k.credentials.page.Load(); urls == "" && page != nil {
		urls = strings.TrimSuffix(*page, "/")
	}
	var name string
	err := errors.New("no address was given")
	for url := range strings.SplitSeq(q.URLs, ",") {
		if name, err = sayHello(ctx, url, q.Token, peerHello{Cluster: own, URLs: urls, Token: back}); err == nil {
			break
		}
	}
	if err != nil {
		return none, cluster.Errorf(cluster.Unavailable, "", "the other cluster did not take the token: %v", err)
	}
	if err := checkNewPeer(k.Snapshot(), name, q.URLs); err != nil {
		return none, err
	}
	p := cluster.PeerCluster{Name: name, URLs: q.URLs, Send: q.Token, Accept: verifier, Root: q.Root}
	_, index, err := k.propose(ctx, who.Identity, &cluster.PeerPut{Peer: p})
	return api.PeerAdded{Name: name, Index: index}, err
}

// nameSlurm makes a running Slurm a peer.
func (k peerers) nameSlurm(ctx context.Context, who api.Caller, q api.SlurmPeerRequest) (
	none api.WriteResponse, _ error,
) {
	if err := operator(who, "make other clusters peers"); err != nil {
		return none, err
	}
	p := cluster.PeerCluster{Name: q.Name, Slurm: &q.SlurmPeer}
	values, index, err := k.proposeOf(ctx, who.Identity, &cluster.PeerPut{Peer: p})
	if err != nil {
		return none, err
	}
	return written(values, index), nil
}

// askPeer makes a call to the first server of a peer that answers.
func askPeer(ctx context.Context, p *cluster.PeerCluster, own, path string, q, out any) error {
	body, err := wire.Marshal(q)
	if err != nil {
		return err
	}
	err = errors.New("it is not known where it is asked")
	for url := range strings.SplitSeq(p.URLs, ",") {
		if url != "" {
			if err = askPeerAt(ctx, strings.TrimSuffix(url, "/")+path, p.Send, own, body, out); err == nil {
				return nil
			}
		}
	}
	return err
}

// peerWeb asks peers, and goes nowhere that they send it: they are not to reach what this server reaches.
var peerWeb = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// peerError is why a peer does not answer, in its words as far as they are short.
func peerError(resp *http.Response, text []byte) error {
	if to := resp.Header.Get("Location"); to != "" {
		return errors.New("it is at another address, which has to be given instead: " + to[:min(len(to), maxPeerError)])
	}
	return errors.New(strings.TrimSpace(strings.ToValidUTF8(string(text[:min(len(text), maxPeerError)]), "")))
}

func askPeerAt(ctx context.Context, at, token, own string, body []byte, out any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set(PeerNameHeader, own)
	resp, err := peerWeb.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, api.MaxBody))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		var e api.Error
		if wire.Unmarshal(text, &e) == nil && e.Message != "" {
			return &e
		}
		return peerError(resp, text)
	}
	return api.Read(text, out)
}

// sayHello shows a token to another cluster, which tells its name.
func sayHello(ctx context.Context, url, token string, hello peerHello) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*PeerTime)
	defer cancel()
	body, err := wire.Marshal(hello)
	if err != nil {
		return "", err
	}
	at := strings.TrimSuffix(url, "/") + PeerHelloPath
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := peerWeb.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPeerHello))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", peerError(resp, text)
	}
	var told peerHello
	err = wire.Unmarshal(text, &told)
	return told.Cluster, err
}

// list tells of the peers; tokens are not told.
func (k peerers) list(context.Context, api.Caller, api.Empty) (out api.PeersResponse, _ error) {
	out.Own = k.Snapshot().Config().ClusterName
	for p := range k.Snapshot().PeerClusters() {
		out.Peers = append(out.Peers, api.PeerInfo{Name: p.Name, URLs: p.URLs, Asks: p.Accept != "",
			Asked: p.Send != "", Root: p.Root, Made: p.Made, Slurm: p.Slurm})
	}
	return out, nil
}

// ServePeerHello answers a cluster that shows an invitation. admit has the leader write down what it tells.
func ServePeerHello(s *Server, w http.ResponseWriter, r *http.Request,
	admit func(context.Context, cluster.PeerPut) error,
) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPeerHello))
	var hello peerHello
	if err == nil {
		err = wire.Unmarshal(body, &hello)
	}
	if err != nil {
		http.Error(w, "the greeting cannot be read", http.StatusBadRequest)
		return
	}
	p, err := PeerOfToken(s, hello.Cluster, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	next, changed, err := greeted(p, &hello)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if changed {
		if err := admit(r.Context(), cluster.PeerPut{Peer: next}); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	text, _ := wire.Marshal(peerHello{Cluster: s.Snapshot().Config().ClusterName})
	_, _ = w.Write(text)
}

// PeerOfToken finds the peer of a name whose token a request shows.
func PeerOfToken(s *Server, name string, r *http.Request) (*cluster.PeerCluster, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	p, known := s.Snapshot().PeerCluster(name)
	if !ok || !known || p.Accept == "" || subtle.ConstantTimeCompare([]byte(verifierOf(token)), []byte(p.Accept)) == 0 {
		s.credentials.refused.Say(s.slog.Info, "peer refused", "cluster", name, "from", r.RemoteAddr)
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"%q is no peer here, or its token is another one: muster peer invite makes one for that name", name)
	}
	return p, nil
}

// PeerCaller says as whom a peer's user acts here: as the user of that name, who must be here. Root, the user who
// runs the daemons, and those whom the books name as operators, only of a peer that was given that right.
func PeerCaller(s *Server, p *cluster.PeerCluster, name string) (api.Caller, error) {
	who, err := users.Caller(name)
	if err != nil {
		return who, err
	}
	if !p.Root && (who.Operator() || s.privilege(who) != "") {
		return api.Caller{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"%s of cluster %s has no rights here: the peer was not added with --root", name, p.Name)
	}
	return who, nil
}

// PeerTarget is where a peer is asked, and the user in whose name a caller asks.
func PeerTarget(s *Server, who api.Caller, name string) (p *cluster.PeerCluster, as string, err error) {
	p, ok := s.Snapshot().PeerCluster(name)
	if !ok || p.Send == "" || p.URLs == "" {
		return nil, "", cluster.Errorf(cluster.NotFound, "",
			"there is no cluster %s that could be asked; muster peer ls shows them", name)
	}
	as, _, _, err = users.Lookup(who.UID)
	if err != nil || as == "" {
		return nil, "", cluster.Errorf(cluster.Denied, cluster.ErrUser,
			"user %d has no name, by which the other cluster knows users", who.UID)
	}
	return p, as, nil
}
