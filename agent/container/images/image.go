// Package images fetches container images from registries and keeps them unpacked. It is all of a
// process of its own, muster internal image: neither the daemon nor the supervisor holds what
// registries send, and no front-end pays for the library that speaks with them. Begin with
// helper.go, then store.go.
package images

import (
	"fmt"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// dockerScheme may stand before an image of a registry, as enroot writes it.
const dockerScheme = "docker://"

// Remote is an image of a registry.
type Remote struct {
	User string // whose credentials: "" for whatever the user has for the registry
	Ref  name.Reference
}

// ParseRemote reads [docker://][USER@][REGISTRY#]IMAGE[:TAG|@DIGEST]. Without a # the registry may
// be the first part of the image, as docker writes it: nobody's name on Docker Hub has a dot or a
// colon.
func ParseRemote(text string, how ...name.Option) (Remote, error) {
	bad := func(why string) (Remote, error) {
		return Remote{}, fmt.Errorf("image %q: %s; it reads [USER@][REGISTRY#]IMAGE[:TAG], "+
			"or a path that begins with / or ./", text, why)
	}
	rest := strings.TrimPrefix(text, dockerScheme)
	if strings.Contains(rest, "://") {
		return bad("only docker:// may stand before it")
	}
	var r Remote
	if at := strings.Index(rest, "@"); at >= 0 && !isDigest(rest[at+1:]) {
		r.User, rest = rest[:at], rest[at+1:]
		if r.User == "" {
			return bad("there is no name before the @")
		}
	}
	registry, image, named := strings.Cut(rest, "#")
	if !named {
		registry, image = "", rest
	}
	switch {
	case named && (registry == "" || strings.ContainsAny(registry, "/@")):
		return bad("what stands before the # is no registry")
	case image == "":
		return bad("it has no name")
	case path.Clean("/"+image) != "/"+image:
		return bad("could not parse reference")
	}
	if named {
		image = registry + "/" + image
	}
	ref, err := name.ParseReference(image, append(how, name.WithDefaultRegistry(dockerHub))...)
	if err != nil {
		return bad(err.Error())
	}
	r.Ref = ref
	return r, nil
}

// dockerHub is the registry of images that name none.
const dockerHub = "index.docker.io"

func isDigest(text string) bool { return strings.HasPrefix(text, "sha256:") }

// source names the place that an image came from: its registry and repository.
func (r Remote) source() string { return r.Ref.Context().Name() }
