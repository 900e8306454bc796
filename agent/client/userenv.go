package client

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"dev.muster/cluster"
)

// How a login environment is had, and how long it is believed.
const (
	loginTime = 30 * time.Second // a login shell may read files over the network
	loginAge  = time.Minute
	maxLogins = 256 // users remembered
)

type login struct {
	env cluster.BlobText
	at  time.Time
}

// loginEnv is the environment that the user's login shell would start with, NUL-separated. It is
// asked of su, as the job's own environment lays on top of it.
func (c *Client) loginEnv(ctx context.Context, user string) (cluster.BlobText, error) {
	c.mu.Lock()
	l, ok := c.logins[user]
	c.mu.Unlock()
	if ok && time.Since(l.at) < loginAge {
		return l.env, nil
	}
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	const mark = "muster-env-begins"
	script := "printf '%s\\0' " + mark + "; exec env -0"
	cmd := exec.CommandContext(ctx, "su", "-", user, "-c", script)
	if os.Getuid() != 0 {
		cmd = exec.CommandContext(ctx, "sh", "-l", "-c", script)
	}
	cmd.Env = []string{"HOME=/", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if os.Getuid() != 0 {
		cmd.Env = append(cmd.Env, "HOME="+os.Getenv("HOME"), "USER="+user, "LOGNAME="+user)
	}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask for the login environment of %s: %w", user, err)
	}
	_, env, _ := bytes.Cut(out, []byte(mark+"\x00")) // what login files print comes before
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.logins) >= maxLogins {
		clear(c.logins)
	}
	c.logins[user] = login{env, time.Now()}
	return env, nil
}
