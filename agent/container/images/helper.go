package images

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"

	"dev.muster/agent/container"
	"dev.muster/agent/container/archive"
	"dev.muster/agent/container/credhelper"
	"dev.muster/agent/container/progress"
	"dev.muster/agent/userfile"
	"dev.muster/wire"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/sys/unix"
)

// HelperMain is muster internal image: it reads a Request, does it, and writes a Reply. It is a
// process of its own so that neither the daemon nor the supervisor holds what registries send, and
// so that it can be killed with its step. With words it does what muster image is asked to.
func HelperMain(words []string) int {
	if len(words) == 2 && words[0] == unzstdWord {
		return unzstd(words[1])
	}
	prefetches := len(words) == prefetchWords && words[0] == container.Prefetch
	if prefetches || len(words) == 0 {
		if err := confine(); err != nil {
			fmt.Fprintln(os.Stderr, "muster internal image: give up powers:", err)
			return 1
		}
	}
	if prefetches {
		rep := prefetch(words[1], words[2])
		fmt.Fprint(os.Stderr, rep.Error)
		return min(len(rep.Error), 1)
	}
	if len(words) > 0 {
		if err := command(words); err != nil {
			fmt.Fprintln(os.Stderr, "muster image:", err)
			return 1
		}
		return 0
	}
	rep := answer(os.Stdin)
	text, err := wire.Marshal(&rep)
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "muster internal image:", err)
		return 1
	}
	return 0
}

// prefetchWords are those of a request for an image that is wanted later.
const prefetchWords = 3

// prefetch obtains an image, unless it is one that is mounted as it is.
func prefetch(dir, request string) container.Reply {
	var q container.Request
	if err := wire.Unmarshal([]byte(request), &q); err != nil {
		return container.Reply{Error: "the request cannot be read: " + err.Error()}
	}
	if file, ok := container.FileOf(q.Image, dir); ok {
		err := userfile.Apart(identity(&q), func() error { file.Look(); return nil })
		if err != nil || !file.Packed {
			return reply(container.Image{}, err)
		}
		q.File = &file
	}
	return fulfil(&q)
}

func answer(in io.Reader) container.Reply {
	var q container.Request
	text, err := io.ReadAll(in)
	if err == nil {
		err = wire.Unmarshal(text, &q)
	}
	if err != nil {
		return container.Reply{Error: "the request cannot be read: " + err.Error()}
	}
	return fulfil(&q)
}

// fulfil does what a request asks for.
func fulfil(q *container.Request) container.Reply {
	if err := lower(unix.RLIMIT_FSIZE, uint64(limitsOf(q.Most).Bytes)); err != nil {
		return container.Reply{Error: err.Error()}
	}
	s := Store{Dir: q.Store, Limits: limitsOf(q.Most), Limit: q.Limit, As: identity(q),
		Ask: daemonOf(q.Daemon)}
	if q.Meter > 0 {
		s.Meter = progress.On(q.Meter)
	}
	if q.File != nil {
		return reply(ofFile(&s, q))
	}
	var how []name.Option
	if q.HTTP {
		how = append(how, name.Insecure)
	}
	image, err := ParseRemote(q.Image, how...)
	if err != nil {
		return container.Reply{Error: err.Error()}
	}
	keys := &asUser{q: q, keys: &credentials{home: q.Home, enroot: q.Enroot, docker: q.Docker, user: image.User,
		ask: asker(q)}}
	return reply(s.Obtain(context.Background(), image, keys))
}

func reply(got container.Image, err error) container.Reply {
	if err != nil {
		return container.Reply{Error: err.Error()}
	}
	return container.Reply{Root: got.Root, Config: got.Config}
}

// asker runs the programs that keep the user's credentials, as the user.
func asker(q *container.Request) *credhelper.Asker {
	a := &credhelper.Asker{Home: q.Home}
	if q.Docker != "" {
		a.Env = append(a.Env, "DOCKER_CONFIG="+q.Docker)
	}
	if os.Geteuid() == 0 {
		a.As = &syscall.Credential{Uid: q.UID, Gid: q.GID, Groups: q.Groups}
	}
	return a
}

// identity is the user whose rights count for a request.
func identity(q *container.Request) userfile.Identity {
	return userfile.Identity{UID: q.UID, GID: q.GID, Groups: q.Groups}
}

// asUser looks for credentials with the user's rights on files: links in a user's home may lead
// anywhere.
type asUser struct {
	q    *container.Request
	keys *credentials
}

// Resolve implements authn.Keychain.
func (a *asUser) Resolve(of authn.Resource) (got authn.Authenticator, err error) {
	err = userfile.Apart(identity(a.q), func() error {
		got, err = a.keys.Resolve(of)
		return err
	})
	return got, err
}

// ofFile is the answer to a request for an image in files.
func ofFile(s *Store, q *container.Request) (got container.Image, err error) {
	var a *archive.Image
	err = userfile.Apart(identity(q), func() error {
		a, err = archive.Open(q.File.Path, q.File.Tag)
		return err
	})
	if err != nil {
		return got, err
	}
	defer a.Close()
	return s.ObtainFile(context.Background(), a, q.Image)
}
