package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"dev.muster/agent/client"
	"dev.muster/agent/server"
	"dev.muster/agent/trust"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus"
	"dev.muster/durable"
	"dev.muster/wire"
	"github.com/hashicorp/raft"
)

// DefaultPort is where members listen.
const DefaultPort = "7440"

// Times of membership.
const (
	joinTime   = 30 * time.Second
	renewCheck = time.Minute
	learnEvery = 30 * time.Second
)

// network is this process among the others; nil for a cluster of one process.
type network struct {
	cfg     Config
	addr    string // advertised
	ring    *keyring
	fleet   *fleet
	nodes   *peers // clients of other nodes
	port    *port
	gateway *gateway
	// authority is that of a cluster which this first server makes.
	authority *cluster.CA
	fresh     bool // joined or made just now
}

// Folder and files of membership, below the data folder.
const (
	trustDir      = "trust"
	authorityFile = "authority.json" // of a new cluster, until the log holds it
	serversFile   = "servers"
	begunFile     = "log-begun" // this member has a log, without which it is not itself
)

// openNetwork joins or makes a cluster if this machine is of none yet, and opens the port.
func openNetwork(ctx context.Context, cfg Config, name string) (*network, error) {
	n := &network{cfg: cfg}
	var err error
	if n.addr, err = advertise(cfg); err != nil {
		return nil, err
	}
	dir := filepath.Join(cfg.Dir, trustDir)
	creds, err := trust.Load(dir)
	switch {
	case errors.Is(err, trust.ErrNone) && len(cfg.Join) > 0:
		if creds, err = n.join(ctx, dir, name); err == nil {
			n.fresh = true
		}
	case errors.Is(err, trust.ErrNone) && cfg.Server:
		creds, err = n.found(dir, name)
	case errors.Is(err, trust.ErrNone):
		err = errors.New("this machine has not joined a cluster: give --join ADDRESS and --token TOKEN (muster token create, on a server, makes one)")
	}
	if err != nil {
		return nil, err
	}
	if cfg.Server && creds.Role != cluster.RoleServer || !cfg.Server && creds.Role == cluster.RoleServer {
		return nil, fmt.Errorf("this machine joined as a %s; its credentials are in %s", creds.Role, dir)
	}
	n.ring = newKeyring(creds)
	if n.authority == nil {
		n.authority = readAuthority(dir)
	}
	n.gateway = &gateway{ring: n.ring, log: cfg.Log, remote: api.NewMux()}
	servers := n.gateway.revoked.clientTLS(n.ring, trust.ProtoAPI, cluster.RoleServer)
	if n.fleet, err = openFleet(filepath.Join(dir, serversFile), servers, cfg.Join); err != nil {
		return nil, fmt.Errorf("read the list of servers: %w", err)
	}
	n.gateway.fleet, n.gateway.peers = n.fleet, newPeers(servers)
	n.gateway.check.Member = func(string) (*cluster.Member, bool) { return nil, false }
	if !cfg.Server {
		new(server.Server).Routes(n.gateway.remote)
		peerRoutes(n.gateway.remote, nil)
		tokenRoutes(n.gateway.remote, nil, nil)
	}
	if !cfg.Client {
		new(client.Client).Routes(n.gateway.remote)
	}
	n.nodes = newPeers(n.gateway.revoked.clientTLS(n.ring, trust.ProtoAPI, cluster.RoleNode, cluster.RoleServer))
	n.gateway.relay = &relay{
		local: func(cluster.JobID) bool { return false }, near: nearby(cfg.Socket), self: n.addr,
		nodes: n.nodes, known: map[lead]place{},
	}
	n.port, err = openPort(cfg.Bind, n.addr, cfg.Plain != nil, n.ring, n.admit, cfg.Log)
	return n, err
}

// admit decides of callers with valid certificates.
func (n *network) admit(p trust.Peer, proto string) error {
	if s := n.gateway.server; s != nil {
		return s.Admit(p, proto)
	}
	if err := n.gateway.revoked.check(p); err != nil {
		return err
	}
	if proto != trust.ProtoAPI && proto != trust.ProtoGossip {
		return fmt.Errorf("%s: no server runs here", proto)
	}
	return nil
}

// advertise finds the address that others should use: the one given, else the bound one, else that of
// the interface which leads outside.
func advertise(cfg Config) (string, error) {
	host, portName, err := net.SplitHostPort(cfg.Bind)
	if err != nil {
		return "", fmt.Errorf("--bind %s: want ADDRESS:PORT or :PORT", cfg.Bind)
	}
	if cfg.Advertise != "" {
		if _, _, err := net.SplitHostPort(cfg.Advertise); err == nil {
			return cfg.Advertise, nil
		}
		return net.JoinHostPort(cfg.Advertise, portName), nil
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		return net.JoinHostPort(host, portName), nil
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("look for this machine's address: %w", err)
	}
	best := "127.0.0.1"
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && (best == "127.0.0.1" || ip.IP.To4() != nil && net.ParseIP(best).To4() == nil) {
			best = ip.IP.String()
		}
	}
	return net.JoinHostPort(best, portName), nil
}

// found makes a new cluster whose first server this is. The authority stays in a file until the log
// holds it, so that a crash in between loses nothing.
func (n *network) found(dir, name string) (*trust.Credentials, error) {
	ca := readAuthority(dir)
	if ca == nil {
		var err error
		if ca, err = trust.NewCA(time.Now()); err != nil {
			return nil, err
		}
		text, err := wire.Marshal(ca)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		if err := durable.WriteFile(filepath.Join(dir, authorityFile), text, 0o600); err != nil {
			return nil, fmt.Errorf("keep the new cluster's authority: %w", err)
		}
	}
	n.authority, n.fresh = ca, true
	return trust.SelfSigned(dir, ca, name, time.Now())
}

func readAuthority(dir string) *cluster.CA {
	var ca cluster.CA
	text, err := os.ReadFile(filepath.Join(dir, authorityFile))
	if err != nil || wire.Unmarshal(text, &ca) != nil {
		return nil
	}
	return &ca
}

// join becomes a member by a token.
func (n *network) join(ctx context.Context, dir, name string) (*trust.Credentials, error) {
	tok, err := trust.ParseToken(n.cfg.Token)
	if err != nil {
		return nil, err
	}
	role := cluster.RoleNode
	switch {
	case n.cfg.Server:
		role = cluster.RoleServer
	case n.cfg.Login:
		role = cluster.RoleLogin
	}
	key, err := trust.NewApplicant()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	for {
		for _, addr := range n.cfg.Join {
			r, jerr := n.joinAt(ctx, addr, tok, key, role, name)
			if jerr == nil {
				return trust.Store(dir, r.CA, r.Cert, key.Text)
			}
			err = fmt.Errorf("join by %s: %w", addr, jerr)
			var refused *api.Error
			if errors.As(jerr, &refused) && refused.Code != cluster.Unavailable || errors.Is(jerr, trust.ErrOtherCluster) {
				return nil, err
			}
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (n *network) joinAt(ctx context.Context, addr string, tok trust.JoinToken, key *trust.Applicant,
	role cluster.Role, name string) (api.JoinResponse, error) {
	conn, err := dialTLS(ctx, addr, trust.JoinTLS(tok.Authority))
	if err != nil {
		return api.JoinResponse{}, err
	}
	state := conn.ConnectionState()
	secret, err := trust.Exported(&state)
	if err != nil {
		conn.Close()
		return api.JoinResponse{}, err
	}
	c := &api.Client{Dial: func(context.Context) (api.Conn, error) { return conn, nil }}
	defer c.Close()
	q := api.JoinRequest{Token: tok.ID, Role: role, Name: name, Addr: n.addr, CSR: key.Request, Level: cluster.Newest}
	q.Proof = tok.Proof(secret, trust.JoinText(q.Token, q.Role, q.Name, q.Addr, q.CSR))
	r, err := api.Call(ctx, c, api.Join, q)
	if err != nil {
		return r, err
	}
	var first []string
	for _, s := range r.Servers {
		first = append(first, s.Addr)
	}
	n.cfg.Join = append(first, n.cfg.Join...)
	return r, nil
}

// serverConfig adds the network's part to the configuration of a server.
func (n *network) serverConfig(c *server.Config) raft.Transport {
	c.Log.Addr, c.Log.ID, c.Name = n.addr, n.ring.Credentials().Name, n.ring.Credentials().Name
	c.Log.Bootstrap = n.authority != nil // a server that joined waits to be taken in
	c.Peer, c.Reach = n.gateway.peers.at, reach
	if n.authority != nil {
		cr := n.ring.Credentials()
		c.Authority = n.authority
		c.Self = cluster.Member{Name: cr.Name, Role: cluster.RoleServer, Key: cr.Key, Public: cr.Public(), Addr: n.addr}
	}
	c.Log.Mark = filepath.Join(n.cfg.Dir, trustDir, begunFile)
	conf := n.gateway.revoked.clientTLS(n.ring, trust.ProtoRaft, cluster.RoleServer)
	return consensus.Network(n.port.kinds[trust.ProtoRaft], func(addr string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return dialTLS(ctx, addr, conf)
	}, n.cfg.Log)
}

// attach makes the gateway serve a server of this process.
func (n *network) attach(s *server.Server) {
	n.gateway.server = s
	n.gateway.check.Member = s.Member
}

// way is the gateway, none where there is no network.
func (n *network) way() *gateway {
	if n == nil {
		return nil
	}
	return n.gateway
}

// Membership is whom a data folder makes this machine: its name and role, empty if it is no member.
func Membership(dir string) (string, cluster.Role, error) {
	c, err := trust.Load(filepath.Join(dir, trustDir))
	if errors.Is(err, trust.ErrNone) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	return c.Name, c.Role, nil
}

// Join makes this machine a member by a token, and starts nothing. It reports whether it was none before; a member
// is left as it is.
func Join(ctx context.Context, cfg Config) (fresh bool, err error) {
	dir := filepath.Join(cfg.Dir, trustDir)
	if _, err := trust.Load(dir); !errors.Is(err, trust.ErrNone) {
		return false, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return false, fmt.Errorf("make data folder: %w", err)
	}
	unlock, err := lockDir(cfg.Dir)
	if err != nil {
		return false, err
	}
	defer unlock()
	name, err := cfg.name()
	if err != nil {
		return false, err
	}
	n := &network{cfg: cfg}
	if n.addr, err = advertise(cfg); err != nil {
		return false, err
	}
	if _, err := n.join(ctx, dir, name); err != nil {
		return false, err
	}
	f := &fleet{file: filepath.Join(dir, serversFile)}
	return true, f.add(n.cfg.Join)
}

// Run takes connections and keeps the membership alive until ctx ends.
func (n *network) Run(ctx context.Context) error {
	renew, learn := time.NewTicker(renewCheck), time.NewTicker(learnEvery)
	defer renew.Stop()
	defer learn.Stop()
	done := make(chan error, 1)
	go func() { done <- n.port.Run(ctx) }() // ends with ctx
	var talking sync.WaitGroup
	defer n.port.packets.Close()
	defer talking.Wait()
	if !n.cfg.Mute {
		talking.Go(func() { n.gossip(ctx) })
	}
	if n.cfg.Server {
		n.enrol(ctx)
	}
	n.learn(ctx)
	for {
		var moved <-chan struct{}
		if n.cfg.Server {
			moved = n.gateway.server.TrustMoved()
			n.gateway.revoked.set(n.gateway.server.Revoked())
			n.port.recheck()
		}
		select {
		case err := <-done:
			return err
		case <-moved:
		case <-learn.C:
			n.learn(ctx)
		case <-renew.C:
			if time.Now().After(n.ring.Credentials().RenewAt()) {
				if err := n.renew(ctx); err != nil {
					n.cfg.Log.Warn("the certificate could not be renewed", "expires",
						n.ring.Credentials().Expires(), "err", err)
				}
			}
		}
	}
}

// enrol asks the group to take this server in, and tells it where this server listens.
func (n *network) enrol(ctx context.Context) {
	for ctx.Err() == nil {
		if n.gateway.server.Leads() || n.gateway.server.InGroup(n.addr) {
			_ = os.Remove(filepath.Join(n.cfg.Dir, trustDir, authorityFile)) // the log holds it by now
			if n.authority != nil && n.fresh && n.cfg.Founded != nil {
				n.cfg.Founded(n.addr)
			}
			return
		}
		if n.authority == nil {
			name := n.ring.Credentials().Name
			if _, err := api.Call(ctx, n.fleet.client, api.AddServer, api.ServerRequest{Name: name, Addr: n.addr, Level: cluster.Newest}); err != nil {
				n.cfg.Log.Log(ctx, gravity(err), "asking to be taken into the group failed", "err", err)
				n.fleet.next()
			}
		}
		n.gateway.breathe(ctx)
	}
}

// gravity is how a failed call is logged that is made again and again: what is refused stays so until somebody does
// something.
func gravity(err error) slog.Level {
	var refused *api.Error
	if errors.As(err, &refused) && refused.Code == cluster.Conflict {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// learn asks for the list of servers.
func (n *network) learn(ctx context.Context) {
	if n.cfg.Server {
		if err := n.fleet.learn(n.gateway.server.Servers()); err != nil {
			n.cfg.Log.Warn("the list of servers could not be kept", "err", err)
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	r, err := api.Call(ctx, n.fleet.client, api.PingServer, api.Empty{})
	if err == nil {
		err = n.fleet.learn(r.Servers)
		if n.gateway.revoked.set(r.Revoked) {
			n.port.recheck()
		}
	}
	if err != nil && ctx.Err() == nil {
		n.cfg.Log.Debug("the list of servers could not be learnt", "err", err)
	}
}

// renew gets a new certificate: from the servers, or for a server from its own authority.
func (n *network) renew(ctx context.Context) error {
	cr := n.ring.Credentials()
	csr, err := cr.Request()
	if err != nil {
		return err
	}
	var cert []byte
	if s := n.gateway.server; s != nil && s.Snapshot().CA() != nil {
		if cert, _, err = trust.Issue(s.Snapshot().CA(), csr, cluster.RoleServer, cr.Name, time.Now()); err != nil {
			return err
		}
	} else {
		ctx, cancel := context.WithTimeout(ctx, joinTime)
		defer cancel()
		if cert, err = n.renewBy(ctx, csr, cr.Name); err != nil {
			return err
		}
	}
	fresh, err := cr.Renewed(cert)
	if err == nil {
		n.ring.at.Store(fresh)
		n.cfg.Log.Info("certificate renewed", "expires", fresh.Expires())
	}
	return err
}

func (n *network) renewBy(ctx context.Context, csr []byte, name string) ([]byte, error) {
	var last error
	for _, addr := range n.fleet.list() {
		c := &api.Client{
			Dial: func(ctx context.Context) (api.Conn, error) { return dialTLS(ctx, addr, trust.RenewTLS(n.ring)) },
		}
		r, err := api.Call(ctx, c, api.Renew, api.RenewRequest{Name: name, CSR: csr})
		c.Close()
		if err == nil {
			return r.Cert, nil
		}
		last = err
	}
	return nil, last
}

// nearby is the client of this process's own socket.
func nearby(socket string) *api.Client {
	return &api.Client{
		Dial: func(ctx context.Context) (api.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", socket) },
	}
}
