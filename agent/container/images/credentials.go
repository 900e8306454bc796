package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dev.muster/wire"
	"github.com/google/go-containerregistry/pkg/authn"
	"golang.org/x/sys/unix"
)

// maxCredentials bounds a file of credentials.
const maxCredentials = 1 << 20

// credentials are what a user has for registries; each of its files is read with the user's rights.
type credentials struct {
	home, enroot, docker string
	user                 string // of the image: only this one's
}

// Resolve implements authn.Keychain.
func (c *credentials) Resolve(of authn.Resource) (authn.Authenticator, error) {
	registry := of.RegistryStr()
	a, err := c.netrc(registry)
	if a == nil && err == nil {
		a, err = c.config(registry)
	}
	switch {
	case err != nil:
		return nil, err
	case a != nil:
		return authn.FromConfig(*a), nil
	case c.user != "":
		return nil, fmt.Errorf("you have no password of %s for %s in ~/.config/enroot/.credentials", c.user, registry)
	}
	return authn.Anonymous, nil
}

// machines are the names under which a registry's credentials may stand.
func machines(registry string) []string {
	if registry == dockerHub {
		return []string{"auth.docker.io", "docker.io", dockerHub, "registry-1.docker.io", "https://index.docker.io/v1/"}
	}
	host, _, _ := strings.Cut(registry, ":")
	return []string{registry, host, "https://" + registry}
}

// netrc looks in enroot's file, which has the form of .netrc.
func (c *credentials) netrc(registry string) (*authn.AuthConfig, error) {
	dir := c.enroot
	if dir == "" && c.home != "" {
		dir = filepath.Join(c.home, ".config", "enroot")
	}
	text, err := readSmall(dir, ".credentials")
	if text == "" {
		return nil, err
	}
	for _, name := range machines(registry) {
		if a := inNetrc(text, name, c.user); a != nil {
			return a, nil
		}
	}
	return nil, nil
}

func inNetrc(text, machine, user string) *authn.AuthConfig {
	var a *authn.AuthConfig
	mine := false
	fits := func() bool { return a != nil && mine && a.Password != "" && (user == "" || a.Username == user) }
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for w := strings.Fields(line); len(w) > 1; w = w[2:] {
			switch w[0] {
			case "machine":
				if fits() {
					return a
				}
				a, mine = &authn.AuthConfig{}, w[1] == machine
			case "login":
				if a != nil {
					a.Username = w[1]
				}
			case "password":
				if a != nil {
					a.Password = w[1]
				}
			}
		}
	}
	if fits() {
		return a
	}
	return nil
}

// config looks in docker's file. Its helpers are programs, and are not run.
func (c *credentials) config(registry string) (*authn.AuthConfig, error) {
	dir := c.docker
	if dir == "" && c.home != "" {
		dir = filepath.Join(c.home, ".docker")
	}
	text, err := readSmall(dir, "config.json")
	if text == "" {
		return nil, err
	}
	var file struct {
		Auths map[string]struct {
			Auth     string `json:"auth"`
			Username string `json:"username"`
			Password string `json:"password"`
		} `json:"auths"`
	}
	if err := wire.Unmarshal([]byte(text), &file); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, "config.json"), err)
	}
	for _, name := range machines(registry) {
		a, ok := file.Auths[name]
		if !ok || c.user != "" && a.Username != "" && a.Username != c.user {
			continue
		}
		out := &authn.AuthConfig{Username: a.Username, Password: a.Password}
		if a.Auth != "" {
			out = decodeAuth(a.Auth)
		}
		if out != nil && (c.user == "" || out.Username == c.user) {
			return out, nil
		}
	}
	return nil, nil
}

// readSmall reads a file; one that is not there is empty.
func readSmall(dir, name string) (string, error) {
	if dir == "" {
		return "", nil
	}
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxCredentials))
	return string(text), err
}
