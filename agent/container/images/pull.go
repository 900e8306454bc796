package images

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"dev.muster/agent/container/layers"
	"dev.muster/agent/container/progress"
	"dev.muster/agent/userfile"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

const (
	// answerTime is how long a registry may take to begin an answer.
	answerTime = 30 * time.Second
	// stallTime is how long it may send nothing of a layer.
	stallTime = time.Minute
	dialTime  = 10 * time.Second
	// layersAhead is how many layers arrive at once.
	layersAhead = 3
	tlsTime     = 10 * time.Second
)

// puller talks to the registry of one image as one user.
type puller struct {
	ctx   context.Context
	image Remote
	file  string // names the files that the image comes from; "": it comes from a registry
	keys  authn.Keychain
	web   http.RoundTripper
	share *sharing // is web; nil: the registry alone is asked
	stall time.Duration
	meter *progress.Meter
	// of is the user for whom the registry is believed; "": for all (isShared).
	of   string
	read atomic.Int64 // bytes of layers that came
}

// newPuller returns one that connects as a user.
func newPuller(ctx context.Context, image Remote, keys authn.Keychain, as userfile.Identity) *puller {
	web := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialAs(as),
		TLSHandshakeTimeout: tlsTime, ResponseHeaderTimeout: answerTime, ForceAttemptHTTP2: true}
	return &puller{ctx: ctx, image: image, keys: keys, web: web, stall: stallTime}
}

// source names the place that the image comes from.
func (p *puller) source() string {
	if p.file != "" {
		return p.file
	}
	return p.image.source() + p.of
}

// shared has what the puller gets kept for other nodes, and taken from them.
func (p *puller) shared(kept layers.Folder, ask askFunc) {
	p.share = &sharing{ctx: p.ctx, web: p.web, layers: kept, source: p.source(), ask: ask}
	p.web = p.share
}

// helped reports whether anybody but the registry had a part in what was got.
func (p *puller) helped() bool { return p.share != nil && p.share.helped.Load() }

// sharing reports whether what is got is kept for others.
func (p *puller) sharing() bool { return p.share != nil && p.share.on.Load() }

// known asks the registry, as the user, what the image's name means, without fetching anything:
// Docker Hub counts what is fetched. One that does not answer that is asked again by find.
func (p *puller) known() (v1.Hash, bool) {
	d, err := remote.Head(p.image.Ref, remote.WithContext(p.ctx), remote.WithAuthFromKeychain(p.keys),
		remote.WithTransport(p.web))
	if err != nil {
		return v1.Hash{}, false
	}
	if p.share != nil {
		p.share.on.Store(true)
	}
	return d.Digest, true
}

// find asks the registry, as the user, for the image that fits this machine; known is what known has found,
// if it did. That the registry answers the one or the other is the user's right to it.
func (p *puller) find(known v1.Hash) (img v1.Image, digest, top v1.Hash, err error) {
	ref := p.image.Ref
	if p.sharing() {
		ref = ref.Context().Digest(known.String())
	}
	got, err := remote.Get(ref, remote.WithContext(p.ctx), remote.WithAuthFromKeychain(p.keys),
		remote.WithTransport(p.web), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err == nil {
		img, err = got.Image()
	}
	if err != nil {
		return nil, digest, top, p.explain(err)
	}
	digest, err = img.Digest()
	return img, digest, got.Digest, p.explain(err)
}

// layers gives the layers to each, lowest first, as they arrive; a layer that is not what its
// digest says is an error.
func (p *puller) layers(img v1.Image, each func(io.Reader) error) error {
	list, err := img.Layers()
	if err != nil {
		return p.explain(err)
	}
	p.meter.Of(layersSize(list))
	ahead := 1
	if p.sharing() {
		ahead = layersAhead
	}
	var coming []<-chan opened
	defer func() {
		for _, c := range coming {
			(<-c).close()
		}
	}()
	for i := range list {
		for len(coming) < ahead && i+len(coming) < len(list) {
			coming = append(coming, opening(list[i+len(coming)]))
		}
		l := <-coming[0]
		coming = coming[1:]
		if err := p.layer(l, each); err != nil {
			return fmt.Errorf("layer %d of %d: %w", i+1, len(list), p.explain(err))
		}
	}
	return nil
}

// packed returns a function that tells how many packed bytes of the image there are: those that have come, since a
// registry may name any size, or those of the files, which may be unpacked before they are counted.
func (p *puller) packed(img v1.Image) func() int64 {
	if p.file == "" {
		return p.read.Load
	}
	list, _ := img.Layers() // what is wrong with them is told when they are read
	size := layersSize(list)
	return func() int64 { return size }
}

// layersSize is how many bytes layers have as they are sent.
func layersSize(list []v1.Layer) (n int64) {
	for _, l := range list {
		size, _ := l.Size() // what is wrong with it is told when it is read
		n += size
	}
	return n
}

// opened is a layer that begins to arrive.
type opened struct {
	rc  io.ReadCloser
	err error
}

func (o opened) close() {
	if o.err == nil {
		o.rc.Close()
	}
}

// opening opens a layer beside.
func opening(l v1.Layer) <-chan opened {
	c := make(chan opened, 1)
	go func() { // ends once the registry, or a node, has answered
		rc, err := l.Compressed()
		c <- opened{rc, err}
	}()
	return c
}

func (p *puller) layer(l opened, each func(io.Reader) error) error {
	if l.err != nil {
		return l.err
	}
	defer l.rc.Close()
	w := &watched{r: l.rc, end: time.AfterFunc(p.stall, func() { l.rc.Close() }), every: p.stall,
		meter: p.meter, read: &p.read}
	defer w.end.Stop()
	return each(w)
}

// watched is a download that ends with an error when nothing comes.
type watched struct {
	r     io.Reader
	end   *time.Timer
	every time.Duration
	meter *progress.Meter
	read  *atomic.Int64
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.meter.Add(n)
	w.read.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) && !w.end.Stop() {
		return n, fmt.Errorf("the registry has sent nothing for %s", w.every)
	}
	w.end.Reset(w.every)
	return n, err
}

// explain words what a registry has said.
func (p *puller) explain(err error) error {
	var t *transport.Error
	if !errors.As(err, &t) {
		return err
	}
	ref, why := p.image.Ref, strings.ToLower(http.StatusText(t.StatusCode))
	var said []string
	for _, d := range t.Errors {
		if text := strings.TrimSpace(d.Message); text != "" {
			said = append(said, text)
		}
	}
	at := fmt.Sprintf("%s answers %d (%s)", ref.Context().RegistryStr(), t.StatusCode, why)
	if len(said) > 0 {
		at += ": " + strings.Join(said, "; ")
	}
	switch t.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s: there is no such image, or your credentials do not allow it "+
			"(~/.config/enroot/.credentials, ~/.docker/config.json)%s", at, lacks(p.keys))
	case http.StatusNotFound:
		return fmt.Errorf("%s: there is no image %s", at, ref.Name())
	case http.StatusTooManyRequests:
		return fmt.Errorf("%s: too much was asked of it from here; with credentials of your own it allows more", at)
	}
	return errors.New(at)
}

// decodeAuth reads USER:PASSWORD as docker's file has it.
func decodeAuth(text string) *authn.AuthConfig {
	plain, _ := base64.StdEncoding.DecodeString(text) // of what is none it is nothing with a colon, or a wrong password
	user, password, ok := strings.Cut(string(plain), ":")
	if !ok {
		return nil
	}
	return &authn.AuthConfig{Username: user, Password: strings.TrimRight(password, "\x00")}
}
