package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/slurm/front"
)

// reachTime is how long a server may take to answer; one of several costs a part of that.
const reachTime = 10 * time.Second

// Reach leads the socket that is this process's file 3 to the first server of a list of URLs that answers, for the
// token of the environment. The first line there says what has come of it.
func Reach(words []string) int {
	file := os.NewFile(3, "tunnel")
	near, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return 1
	}
	far, err := reachAny(strings.Split(words[0], ","))
	if err != nil {
		_, _ = fmt.Fprintln(near, strings.ReplaceAll(err.Error(), "\n", " "))
		near.Close()
		return 1
	}
	api.Splice(context.Background(), near, far)
	return 0
}

func reachAny(urls []string) (conn io.ReadWriteCloser, err error) {
	for _, at := range urls {
		ctx, cancel := context.WithTimeout(context.Background(), reachTime/time.Duration(len(urls)))
		conn, err = reachOne(ctx, strings.TrimSpace(at))
		cancel()
		if err == nil || strings.HasPrefix(err.Error(), front.TokenRefused) {
			break
		}
	}
	return conn, err
}

// reachOne opens the tunnel at a server.
func reachOne(ctx context.Context, at string) (io.ReadWriteCloser, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is no URL of a server: MUSTER_URL=http://HOST:7480", at)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, err
	}
	if u.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: u.Hostname()})
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	r, err := askTunnel(conn, u)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &readAhead{conn, r}, nil
}

// readAhead is a connection of which some was read.
type readAhead struct {
	net.Conn
	r *bufio.Reader
}

func (c *readAhead) Read(b []byte) (int, error) { return c.r.Read(b) }

func askTunnel(conn net.Conn, u *url.URL) (*bufio.Reader, error) {
	q, err := http.NewRequest(http.MethodPost, u.JoinPath(api.TokenCallPath).String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Connection", "Upgrade")
	q.Header.Set("Upgrade", api.TokenProtocol)
	q.Header.Set("X-SLURM-USER-TOKEN", os.Getenv("SLURM_JWT"))
	if err := q.Write(conn); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, q)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return r, nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	why := strings.TrimSpace(string(text))
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, errors.New(front.TokenRefused + why)
	}
	return nil, fmt.Errorf("%s: %s %s", u, resp.Status, why)
}
