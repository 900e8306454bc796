package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
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

// callUser sends an event to a job's URL.
func (r *Runner) callUser(term context.Context, e *cluster.Hook, cfg *cluster.Config) error {
	return r.call(term, e, cfg, cluster.ParseNotify(e.Job.Spec.Notify), cfg.NotifyLocal)
}

// notifyChannel sends news to a channel of the site, which may be on a server.
func (r *Runner) notifyChannel(term context.Context, e *cluster.Hook, cfg *cluster.Config) error {
	i := slices.IndexFunc(cfg.Channels, func(ch cluster.Channel) bool { return ch.Name == e.News.Channel })
	if i < 0 {
		return errors.New("the channel is not configured any more")
	}
	to, err := readChannel(cfg.Channels[i].File)
	if err != nil {
		return fmt.Errorf("the address of the channel (File= in muster.conf): %w", err)
	}
	return r.call(term, e, cfg, to, true)
}

// maxChannelFile bounds the file with a channel's address, in bytes.
const maxChannelFile = 8 << 10

// readChannel reads the file with a channel's address.
func readChannel(path string) (cluster.NotifyAddress, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return cluster.NotifyAddress{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxChannelFile))
	if err != nil {
		return cluster.NotifyAddress{}, err
	}
	to, err := cluster.ParseChannelFile(string(text))
	if err != nil {
		return to, fmt.Errorf("%s: %w", path, err)
	}
	return to, nil
}

// call sends an event to an address, again and again if need be; local: it may be an address of a server.
func (r *Runner) call(
	term context.Context, e *cluster.Hook, cfg *cluster.Config, to cluster.NotifyAddress, local bool,
) error {
	body, err := wire.Marshal(r.Dialect.HookMessage(e, cfg, to))
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: callLimit,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
			DialContext: (&net.Dialer{Timeout: callLimit, Control: r.reachable(local)}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for try := 0; ; try++ {
		again, err := callOnce(term, client, to.URL, body)
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

// callOnce tries once, and reports whether trying again may help. Errors name the host alone: the path of a chat
// service's address is a secret.
func callOnce(ctx context.Context, client *http.Client, address string, body []byte) (again bool, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the URL cannot be parsed")
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "muster")
	resp, err := client.Do(q)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = fmt.Errorf("call %s: %w", q.URL.Host, wrapped.Err)
	}
	if err != nil {
		return !errors.As(err, &errOwnAddress{}), err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<16)
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return false, nil
	}
	again = code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
	return again, fmt.Errorf("%s answered %s", q.URL.Host, resp.Status)
}

// errOwnAddress refuses a call.
type errOwnAddress struct{ ip netip.Addr }

func (e errOwnAddress) Error() string {
	return fmt.Sprintf("%s is an address of a server of the cluster, or one that only machines may call; "+
		"CommunicationParameters=notify_local allows calls there", e.ip)
}

// reachable refuses addresses that users must not have a server call: those of servers, of no network but the machine's
// own, and those at which clouds tell machines their secrets.
func (r *Runner) reachable(local bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || local {
			return err
		}
		ip := at.Addr().Unmap()
		if !ip.IsGlobalUnicast() || ip.IsLoopback() || isMetadata(ip) || ownAddress(ip) || r.serverAddress(ip) {
			return errOwnAddress{ip}
		}
		return nil
	}
}

// isMetadata reports whether an address is that of a cloud's metadata service. Those of most clouds are link-local.
func isMetadata(ip netip.Addr) bool {
	switch ip.String() {
	case "fd00:ec2::254", "fd00:ec2::23", // AWS
		"fd20:ce::254",    // Google
		"168.63.129.16",   // Azure
		"100.100.100.200", // Alibaba
		"192.0.0.192":     // Oracle
		return true
	}
	return false
}

// ownAddress reports whether this machine has an address.
func ownAddress(ip netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true // what is not known is not called
	}
	return slices.ContainsFunc(list, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == ip
	})
}

// serverAddress reports whether a server of the cluster listens at an address.
func (r *Runner) serverAddress(ip netip.Addr) bool {
	for _, addr := range r.Server.Addresses() {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			continue
		}
		addrs, _ := net.LookupHost(host) // an address is its own
		is := func(a string) bool {
			at, err := netip.ParseAddr(a)
			return err == nil && at.Unmap() == ip
		}
		if slices.ContainsFunc(addrs, is) {
			return true
		}
	}
	return false
}
