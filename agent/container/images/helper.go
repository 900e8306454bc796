package images

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"dev.muster/agent/container"
	"dev.muster/wire"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/sys/unix"
)

// HelperMain is muster internal image: it reads a Request, does it, and writes a Reply. It is a
// process of its own so that neither the daemon nor the supervisor holds what registries send, and
// so that it can be killed with its step. With words it does what muster image is asked to.
func HelperMain(words []string) int {
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

func answer(in io.Reader) container.Reply {
	var q container.Request
	text, err := io.ReadAll(in)
	if err == nil {
		err = wire.Unmarshal(text, &q)
	}
	if err != nil {
		return container.Reply{Error: "the request can not be read: " + err.Error()}
	}
	var how []name.Option
	if q.HTTP {
		how = append(how, name.Insecure)
	}
	image, err := ParseRemote(q.Image, how...)
	if err != nil {
		return container.Reply{Error: err.Error()}
	}
	s := Store{Dir: q.Store, Limits: DefaultLimits, Limit: q.Limit, Ask: daemonOf(q.Daemon)}
	keys := &asUser{q: &q, keys: &credentials{home: q.Home, enroot: q.Enroot, docker: q.Docker, user: image.User}}
	got, err := s.Obtain(context.Background(), image, keys)
	if err != nil {
		return container.Reply{Error: err.Error()}
	}
	return container.Reply{Root: got.Root, Config: got.Config}
}

// asUser looks for credentials with the user's rights on files: links in a user's home may lead
// anywhere.
type asUser struct {
	q    *container.Request
	keys authn.Keychain
}

// Resolve implements authn.Keychain.
func (a *asUser) Resolve(of authn.Resource) (got authn.Authenticator, err error) {
	if os.Geteuid() != 0 {
		return a.keys.Resolve(of)
	}
	done := make(chan struct{})
	go func() { // on a thread that ends with it: nothing has to be undone
		runtime.LockOSThread()
		defer close(done)
		if err = a.become(); err == nil {
			got, err = a.keys.Resolve(of)
		}
	}()
	<-done
	return got, err
}

// become takes on the user's rights on files, on this thread alone.
func (a *asUser) become() error {
	if err := container.TakeGroups(a.q.Groups); err != nil {
		return err
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(a.q.GID), 0, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(a.q.UID), 0, 0)
	return nil
}
