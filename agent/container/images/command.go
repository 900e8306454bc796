package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/user"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"dev.muster/agent/container"
	"dev.muster/agent/container/credhelper"
	"dev.muster/agent/container/progress"
	"dev.muster/agent/userfile"
	"golang.org/x/sys/unix"
)

// Actions of muster image on this node's store.

// socketEnv is the variable with the socket of the node's daemon.
const socketEnv = "MUSTER_SOCKET"

// verb is one of muster image's: it gets the store and the words behind its name.
type verb func(s *Store, out io.Writer, words []string) error

var verbs = map[string]verb{
	"ls":    list,
	"rm":    eachImage((*Store).Remove),
	"pin":   eachImage(func(s *Store, e Entry) error { return s.Pin(e, true) }),
	"unpin": eachImage(func(s *Store, e Entry) error { return s.Pin(e, false) }),
	"prune": prune,
	"pull":  pull,
	// Of global containers, which users name.
	"containers": containers,
	"drop":       drop,
}

// command is muster internal image VERB STORE LIMIT MOST WORDS: bytes of all images, and of one.
func command(words []string) error {
	const usual = 4 // words before those of the verb
	if len(words) < usual {
		return errors.New("VERB STORE LIMIT MOST WORDS are missing")
	}
	do := verbs[words[0]]
	if do == nil {
		return fmt.Errorf("%s: nothing is called so", words[0])
	}
	limit, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return err
	}
	most, err := strconv.ParseInt(words[3], 10, 64)
	if err != nil {
		return err
	}
	s := &Store{Dir: words[1], Limits: limitsOf(most), Limit: limit,
		As:  userfile.Identity{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())},
		Ask: daemonOf(os.Getenv(socketEnv))}
	return do(s, os.Stdout, words[usual:])
}

func list(s *Store, out io.Writer, _ []string) error {
	all, err := s.List()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DIGEST\tSIZE\tFILES\tUSED\tSTATE\tIMAGE")
	var total int64
	for _, e := range all {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", e.short(), sizeText(e.Bytes), e.Files,
			e.Used.Local().Format("2006-01-02 15:04"), e.state(), strings.Join(e.Refs, ","))
		total += e.Bytes
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d images, %s of %s\n", len(all), sizeText(total), sizeText(s.limit()))
	return err
}

// shownDigits are enough to tell the images of a node apart.
const shownDigits = 12

func (e *Entry) short() string {
	_, hex, _ := strings.Cut(e.Name, "-")
	return hex[:min(shownDigits, len(hex))]
}

func (e *Entry) state() string {
	var is []string
	if e.Pinned {
		is = append(is, "pinned")
	}
	if e.InUse {
		is = append(is, "in use")
	}
	if len(is) == 0 {
		return "-"
	}
	return strings.Join(is, ", ")
}

// sizeText is a number of bytes in the unit that suits it.
func sizeText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f := float64(n)
	for ; f >= 1024 && len(units) > 1; units = units[1:] {
		f /= 1024
	}
	return fmt.Sprintf("%.3g %s", f, units[0])
}

// eachImage does something to each image that is named. One that fails does not keep the others from it.
func eachImage(do func(*Store, Entry) error) verb {
	return func(s *Store, _ io.Writer, words []string) error {
		if len(words) == 0 {
			return errors.New("name an image: what it was asked for as, or the beginning of its digest")
		}
		var failed []error
		for _, w := range words {
			e, err := s.Find(w)
			if err == nil {
				err = do(s, e)
			}
			failed = append(failed, err)
		}
		return errors.Join(failed...)
	}
}

// prune makes the store keep to its bound now.
func prune(s *Store, out io.Writer, _ []string) error {
	if err := s.ready(); err != nil {
		return err
	}
	removed, err := s.Prune(s.limit(), keepFree)
	for _, e := range removed {
		fmt.Fprintf(out, "removed %s %s %s\n", e.short(), sizeText(e.Bytes), strings.Join(e.Refs, ","))
	}
	return errors.Join(err, s.sweep(math.MaxInt))
}

// userOf is how a user is called.
func userOf(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// containers lists those that users keep by name.
func containers(s *Store, out io.Writer, _ []string) error {
	all, err := container.Owns(s.Dir)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CONTAINER\tNODE\tMADE\tIMAGE")
	for _, o := range all {
		fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\n", userOf(o.UID), o.Name, o.Node,
			o.Since.Local().Format("2006-01-02 15:04"), container.PlainRef(o.Image))
	}
	return errors.Join(err, w.Flush())
}

// drop removes such containers.
func drop(s *Store, out io.Writer, words []string) error {
	all, err := container.Owns(s.Dir)
	if len(words) == 0 {
		return errors.New("name a container as muster image containers does: USER/NAME")
	}
	for _, word := range words {
		found := false
		for _, o := range all {
			if word == userOf(o.UID)+"/"+o.Name {
				found = true
				err = errors.Join(err, o.Drop())
				fmt.Fprintf(out, "removed %s of %s\n", word, o.Node)
			}
		}
		if !found {
			err = errors.Join(err, fmt.Errorf("%s: no such container: muster image containers lists them", word))
		}
	}
	return err
}

func onTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// pull fetches images before a job wants them, with the credentials of whoever runs it.
func pull(s *Store, out io.Writer, words []string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	for _, w := range words {
		image, err := ParseRemote(w)
		if err != nil {
			return err
		}
		keys := &credentials{home: home, enroot: os.Getenv("ENROOT_CONFIG_PATH"),
			docker: os.Getenv("DOCKER_CONFIG"), user: image.User,
			ask: &credhelper.Asker{Home: home, Env: os.Environ()}}
		began := time.Now()
		s.Meter = progress.New()
		stop := s.Meter.Show(os.Stderr, onTerminal(os.Stderr), w)
		got, err := s.Obtain(context.Background(), image, keys)
		stop()
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
		e, err := s.entry(container.NameOf(got))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s  %s  %s, %s\n", e.short(), w, sizeText(e.Bytes), time.Since(began).Round(time.Millisecond))
	}
	return nil
}
