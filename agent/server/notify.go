package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Calls to the URLs of jobs' --notify. The URL is a user's, the caller is a server: it reaches no address of the server
// itself or of its link alone (where clouds keep their metadata), unless the site allows that, and follows no
// redirection.
const (
	callLimit  = 10 * time.Second // one try
	callGiveUp = 15 * time.Minute // after the event
)

// callPauses are those between the tries; the last repeats.
var callPauses = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute}

// call sends an event to a job's URL, again and again if need be.
func (s *Server) call(term context.Context, e *cluster.Hook, cfg *cluster.Config) error {
	body, err := wire.Marshal(s.cfg.Dialect.HookMessage(e, cfg))
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: callLimit,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
			DialContext: (&net.Dialer{Timeout: callLimit, Control: s.reachable(cfg.NotifyLocal)}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for try := 0; ; try++ {
		again, err := callOnce(term, client, e.Job.Spec.Notify, body)
		if err == nil || !again || time.Since(e.At) > callGiveUp {
			return err
		}
		select {
		case <-term.Done():
			return term.Err()
		case <-time.After(callPauses[min(try, len(callPauses)-1)]):
		}
	}
}

// callOnce tries once, and reports whether trying again may help.
func callOnce(ctx context.Context, client *http.Client, url string, body []byte) (again bool, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "muster")
	resp, err := client.Do(q)
	if err != nil {
		return !errors.As(err, &errOwnAddress{}), err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<16)
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return false, nil
	default:
		return code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout, fmt.Errorf("%s answered %s", url, resp.Status)
	}
}

// errOwnAddress refuses a call.
type errOwnAddress struct{ ip netip.Addr }

func (e errOwnAddress) Error() string {
	return fmt.Sprintf("%s is an address of a server of the cluster; CommunicationParameters=notify_local allows calls there",
		e.ip)
}

// reachable refuses addresses that users must not have a server call: those of servers, and of no network but the
// machine's own.
func (s *Server) reachable(local bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || local {
			return err
		}
		ip := at.Addr().Unmap()
		if !ip.IsGlobalUnicast() || ip.IsLoopback() || ownAddress(ip) || s.serverAddress(ip) {
			return errOwnAddress{ip}
		}
		return nil
	}
}

// ownAddress reports whether this machine has an address.
func ownAddress(ip netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true // what is not known is not called
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == ip {
			return true
		}
	}
	return false
}

// serverAddress reports whether a server of the cluster listens at an address.
func (s *Server) serverAddress(ip netip.Addr) bool {
	for _, member := range s.servers() {
		host, _, err := net.SplitHostPort(member.Addr)
		if err != nil {
			continue
		}
		addrs, _ := net.LookupHost(host) // an address is its own
		for _, a := range addrs {
			if at, err := netip.ParseAddr(a); err == nil && at.Unmap() == ip {
				return true
			}
		}
	}
	return false
}
