package front

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// With SLURM_JWT a command acts as the user of the token, wherever it runs: its calls go through a tunnel that a server
// opens for the token. The daemon of this host leads there; without one, or where MUSTER_URL says so, the network.

// Variables of tokens.
const (
	tokenEnv = "SLURM_JWT"
	urlEnv   = "MUSTER_URL"
)

// tokenTime bounds how long a tunnel is waited for.
const tokenTime = 15 * time.Second

// Network reaches servers by their URLs, for a token of this process's environment. The first line is that
// of a tunnel.
type Network func(ctx context.Context, urls string) (api.Conn, error)

// ByToken has all calls go by a token, if there is one. A code of 0 or more ends the command.
func (s *Sys) ByToken(network Network) (code int) {
	token := s.Getenv(tokenEnv)
	switch {
	case token == "", s.Prog == "srun" && s.Getenv("SLURM_JOB_ID") != "": // within a job its node knows who asks
		return -1
	case s.Prog == "srun":
		s.Say("fatal: auth/jwt is not supported for use with srun.")
		return 1
	}
	var known sync.Once
	near, urls := s.Dial, s.Getenv(urlEnv)
	reach := func(ctx context.Context) (api.Conn, error) {
		if urls != "" {
			return network(ctx, urls)
		}
		c := &api.Client{Dial: near}
		return api.Tunnel(ctx, c, api.CallByToken, api.TokenProtocol, api.TokenQuery{Token: token})
	}
	dial := func(ctx context.Context) (api.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, tokenTime)
		defer cancel()
		conn, err := reach(ctx)
		if err != nil {
			return nil, err
		}
		uid, gid, err := reachedAs(conn)
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		known.Do(func() { s.UID, s.GID = uid, gid })
		return conn, nil
	}
	s.token = true
	first, err := dial(context.Background()) // who this is, commands ask before they call
	waiting := make(chan api.Conn, 1)
	if err == nil {
		waiting <- first
	}
	s.Dial = func(ctx context.Context) (api.Conn, error) {
		if e := (*api.Error)(nil); errors.As(err, &e) { // a refusal stays one
			return nil, err
		}
		select {
		case conn := <-waiting:
			return conn, nil
		default:
			return dial(ctx)
		}
	}
	return -1
}

// reachedAs reads as whom a tunnel is served.
func reachedAs(conn api.Conn) (uid, gid uint32, err error) {
	_ = conn.SetDeadline(time.Now().Add(tokenTime))
	line, err := firstLine(conn)
	if err != nil {
		return 0, 0, fmt.Errorf("the tunnel of a token: %w", err)
	}
	uid, gid, ok := api.ReachedAs(line)
	if !ok {
		return 0, 0, refusalOf(line)
	}
	return uid, gid, conn.SetDeadline(time.Time{})
}

// TokenRefused begins the line of a tunnel over the network whose token is not taken.
const TokenRefused = "refused "

func refusalOf(line string) error {
	if len(line) > len(TokenRefused) && line[:len(TokenRefused)] == TokenRefused {
		return cluster.Errorf(cluster.Denied, cluster.ErrToken, "%s", line[len(TokenRefused):])
	}
	return errors.New(line)
}

// whyNoToken says why nobody has answered a call by a token.
func (s *Sys) whyNoToken() string {
	if urls := s.Getenv(urlEnv); urls != "" {
		return "no server answers at " + urls + " (" + urlEnv + "): it names the pages of servers, http://HOST:7480"
	}
	return NoDaemon(s.Getenv) + "; as SLURM_JWT is set, " + urlEnv +
		"=http://SERVER:7480 asks a server over the network"
}
