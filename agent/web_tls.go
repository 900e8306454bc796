package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/origin"
	"dev.muster/agent/server"
	"dev.muster/agent/trust"
	"dev.muster/agent/webpage"
	"dev.muster/cluster"
)

// The page's port takes TLS and plain HTTP alike: the first byte tells. Where muster.conf names a certificate, whoever
// comes without TLS is sent on; the setting counts at once, without a restart.

// authorityPath gives out the certificate of the cluster's authority, for browsers to trust.
const authorityPath = "/authority.pem"

// certificateAge is how often the files are looked at.
const certificateAge = 10 * time.Second

// webTLS knows the certificate of the page.
type webTLS struct {
	settings  func() webpage.Settings
	authority func() *cluster.CA // nil: the cluster is this process alone
	hosts     func() []string    // by which this server may be called
	log       *slog.Logger

	mu     sync.Mutex
	own    *cluster.CA // of a process without an authority
	cert   *tls.Certificate
	of     string    // what cert was made of
	looked time.Time // at the files
}

// newWebTLS asks a server for what its configuration says.
func newWebTLS(s *server.Server, n *network, log *slog.Logger) *webTLS {
	return &webTLS{log: log,
		settings:  func() webpage.Settings { return webpage.Read(s.Snapshot().Config().Keys) },
		authority: func() *cluster.CA { return s.Snapshot().CA() },
		hosts:     func() []string { return webHosts(n) }}
}

// webHosts are the names and addresses of this machine.
func webHosts(n *network) []string {
	list := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil {
		list = append(list, name)
	}
	if n != nil {
		if at, _, err := net.SplitHostPort(n.addr); err == nil {
			list = append(list, at)
		}
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, ok := a.(*net.IPNet); ok && p.IP.IsGlobalUnicast() {
			list = append(list, p.IP.String())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ca is the cluster's authority, or one that lives as long as this process.
func (x *webTLS) ca() (*cluster.CA, error) {
	if ca := x.authority(); ca != nil {
		return ca, nil
	}
	if x.own == nil {
		ca, err := trust.NewCA(time.Now())
		if err != nil {
			return nil, err
		}
		x.own = ca
	}
	return x.own, nil
}

// certificate is what TLS asks for at a handshake.
func (x *webTLS) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s := x.settings()
	if !s.TLS() {
		return nil, errors.New("this port speaks plain HTTP: muster.conf names no PageCertificate")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	if s.Certificate == webpage.ByCluster {
		return x.byCluster(&s, now)
	}
	of := s.Certificate + "\n" + s.Key
	if of == x.of && now.Sub(x.looked) < certificateAge {
		return x.cert, nil
	}
	cert, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
	switch {
	case err == nil:
		x.cert, x.of = &cert, of
	case of != x.of:
		x.log.Error("the page's certificate cannot be read, so nobody reaches the page", "err", err)
		return nil, err
	default: // as while it is replaced
		x.log.Warn("the page's new certificate cannot be read; the one of before is used", "err", err)
	}
	x.looked = now
	return x.cert, nil
}

// byCluster makes a certificate again when names have changed or it has grown old.
func (x *webTLS) byCluster(s *webpage.Settings, now time.Time) (*tls.Certificate, error) {
	ca, err := x.ca()
	if err != nil {
		return nil, err
	}
	hosts := x.hosts()
	if u, ok := strings.CutPrefix(s.URL, "https://"); ok {
		host, _, _ := strings.Cut(u, "/")
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		hosts = append(hosts, host)
	}
	of := ca.ClusterID + "\n" + strings.Join(hosts, "\n")
	if of == x.of && now.Sub(x.looked) < trust.LeafLife {
		return x.cert, nil
	}
	cert, err := trust.ForPage(ca, hosts, now)
	if err != nil {
		return nil, err
	}
	x.cert, x.of, x.looked = cert, of, now
	return cert, nil
}

// authorityText is the certificate that signs those of the page; "": none does.
func (x *webTLS) authorityText() string {
	if s := x.settings(); s.Certificate != webpage.ByCluster {
		return ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	ca, err := x.ca()
	if err != nil {
		return ""
	}
	return ca.Cert
}

// listen makes connections of a listener TLS where they begin so.
func (x *webTLS) listen(ctx context.Context, ln net.Listener) net.Listener {
	out := &tlsListener{Listener: ln, conns: make(chan net.Conn), done: ctx.Done(), failed: make(chan error, 1),
		silent: newCrowd(maxVisitors)}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: x.certificate}
	go out.sort(ctx, x, cfg)
	return out
}

// tlsListener hands on connections once it is known what they speak.
type tlsListener struct {
	net.Listener
	conns  chan net.Conn
	failed chan error
	done   <-chan struct{}
	silent *crowd // those that have not said yet what they speak
}

// sort looks at each connection without keeping the others waiting.
func (l *tlsListener) sort(ctx context.Context, x *webTLS, cfg *tls.Config) {
	for {
		raw, err := acceptNext(ctx, l.Listener, x.log)
		if err != nil {
			l.failed <- err
			return
		}
		l.silent.note(raw, http.StateNew)
		go func() {
			defer l.silent.note(raw, http.StateClosed)
			conn := raw
			if s := x.settings(); s.TLS() {
				c, secure, err := sniff(raw)
				if err != nil {
					raw.Close()
					return
				}
				if conn = c; secure {
					conn = tls.Server(c, cfg)
				}
			}
			select {
			case l.conns <- conn:
			case <-l.done:
				conn.Close()
			}
		}()
	}
}

// Accept is for net/http.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case err := <-l.failed:
		return nil, err
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// plainPaths are answered without TLS too: load balancers have no certificate, and who is to trust the authority
// cannot yet.
var plainPaths = []string{"/livez", "/readyz", "/healthz", authorityPath}

// secured sends who comes without TLS to where there is. Programs that have sent a token are told, not sent on: it has
// travelled for all to read.
func (x *webTLS) secured(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == authorityPath {
			x.giveAuthority(w)
			return
		}
		s := x.settings()
		r = origin.Marked(r, s.Proxies)
		if !s.TLS() || origin.Of(r).Secure || slices.Contains(plainPaths, r.URL.Path) {
			pages.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		to := "https://" + r.Host + r.URL.RequestURI()
		token := r.Header.Get("X-SLURM-USER-TOKEN") != "" || r.Header.Get("Authorization") != ""
		if token || r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "this port speaks TLS: ask "+to+
				" (what was just sent went over the network for all to read; make a new token)", http.StatusForbidden)
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
}

func (x *webTLS) giveAuthority(w http.ResponseWriter) {
	text := x.authorityText()
	if text == "" {
		http.Error(w, "the page's certificate is not of the cluster's own authority", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/x-pem-file")
	_, _ = w.Write([]byte(text))
}
