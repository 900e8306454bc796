package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"dev.muster/agent/container/credhelper"
	"dev.muster/agent/userfile"
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
	ask                  *credhelper.Asker
	missed               string // why a program was not asked
}

// lacks says which credentials could not be asked for, in brackets.
func lacks(keys authn.Keychain) string {
	if a, ok := keys.(*asUser); ok && a.keys.missed != "" {
		return " (" + a.keys.missed + ")"
	}
	return ""
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

// in is a folder of the user's: the one that is named, or the usual one; "" if there is none.
func (c *credentials) in(named, usual string) string {
	if named != "" || c.home == "" {
		return named
	}
	return filepath.Join(c.home, usual)
}

// netrc looks in enroot's file, which has the form of .netrc.
func (c *credentials) netrc(registry string) (*authn.AuthConfig, error) {
	dir := c.in(c.enroot, ".config/enroot")
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

// dockerFile is docker's config.json, as far as it is about credentials.
type dockerFile struct {
	Auths map[string]struct {
		Auth     string `json:"auth"`
		Username string `json:"username"`
		Password string `json:"password"`
	} `json:"auths"`
	Helpers map[string]string `json:"credHelpers"` // programs by registry
	Store   string            `json:"credsStore"`  // the program for all others
}

// config looks in docker's file: the registry's own program comes first, then what the file itself has, then the
// program for all registries.
func (c *credentials) config(registry string) (*authn.AuthConfig, error) {
	dir := c.in(c.docker, ".docker")
	text, err := readSmall(dir, "config.json")
	if text == "" {
		return nil, err
	}
	var file dockerFile
	if err := wire.Unmarshal([]byte(text), &file); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, "config.json"), err)
	}
	for _, name := range machines(registry) {
		if helper := file.Helpers[name]; helper != "" {
			return c.helped(helper, name)
		}
	}
	if a := c.plain(&file, registry); a != nil || file.Store == "" {
		return a, nil
	}
	a, err := c.helped(file.Store, server(registry))
	if errors.Is(err, credhelper.ErrNone) { // of another machine: images for everybody need none
		c.missed, err = err.Error(), nil
	}
	return a, err
}

// server is what docker calls a registry to its programs.
func server(registry string) string {
	if registry == dockerHub {
		return "https://index.docker.io/v1/"
	}
	return registry
}

// plain is what the file itself has.
func (c *credentials) plain(file *dockerFile, registry string) *authn.AuthConfig {
	for _, name := range machines(registry) {
		a, ok := file.Auths[name]
		if !ok || c.user != "" && a.Username != "" && a.Username != c.user {
			continue
		}
		out := &authn.AuthConfig{Username: a.Username, Password: a.Password}
		if a.Auth != "" {
			out = decodeAuth(a.Auth)
		}
		if out != nil && out.Username != "" && (c.user == "" || out.Username == c.user) {
			return out
		}
	}
	return nil
}

// tokenUser is the user of a secret that is a token.
const tokenUser = "<token>"

// helped asks a program of docker's.
func (c *credentials) helped(helper, registry string) (*authn.AuthConfig, error) {
	user, secret, err := c.ask.Get(helper, registry)
	switch {
	case err != nil:
		return nil, fmt.Errorf("docker's config.json: %w", err)
	case user == tokenUser:
		return &authn.AuthConfig{IdentityToken: secret}, nil
	case user == "" || c.user != "" && c.user != user:
		return nil, nil
	}
	return &authn.AuthConfig{Username: user, Password: secret}, nil
}

// readSmall reads a file; one that is not there is empty.
func readSmall(dir, name string) (string, error) {
	if dir == "" {
		return "", nil
	}
	path := filepath.Join(dir, name)
	f, err := userfile.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR) ||
		errors.Is(err, userfile.ErrNotRegular) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCredentials))
	return string(text), err
}
