package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"dev.muster/agent/container/layers"
	"dev.muster/api"
	"dev.muster/wire"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// An image travels once: what is named by its digest comes from another node where one has it, and is kept for
// others in any case. The registry has said before that the user may have it, and it is asked for all that
// no node has.

const (
	// daemonTime is how long the node's daemon and the nodes that it asks may take to begin.
	daemonTime = 10 * time.Second
	// redirects of one request, as net/http has it.
	redirects = 10
	// again is how often a registry is asked to go on with a layer that broke off.
	again = 3
)

// sharing is the transport of one image.
type sharing struct {
	ctx    context.Context
	web    http.RoundTripper
	layers layers.Folder
	source string
	// ask gets a layer from the cluster; nil: there is nobody to ask.
	ask askFunc
	// on: the registry has said that the user may have the image.
	on atomic.Bool
	// helped: other nodes, or other processes of this one, had something.
	helped atomic.Bool
}

// askFunc gets a layer from the cluster, head and bytes, as far as that has it.
type askFunc func(context.Context, api.LayerRequest) (io.ReadCloser, error)

// daemonOf asks the node's daemon by its socket for layers.
func daemonOf(socket string) askFunc {
	if socket == "" {
		return nil
	}
	c := &api.Client{Dial: func(ctx context.Context) (api.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	return func(ctx context.Context, q api.LayerRequest) (io.ReadCloser, error) {
		return api.Tunnel(ctx, c, api.FetchLayer, "muster-layer", q)
	}
}

// digestOf is the digest that a request names of this image's repository, "" if it names none.
func (s *sharing) digestOf(q *http.Request) string {
	_, repository, _ := strings.Cut(s.source, "/")
	dir, last := path.Split(q.URL.Path)
	what := strings.TrimPrefix(dir, "/v2/"+repository+"/")
	if q.Method != http.MethodGet || what != "blobs/" && what != "manifests/" {
		return ""
	}
	h, err := v1.NewHash(last)
	if err != nil || h.Algorithm != "sha256" {
		return ""
	}
	return last
}

// RoundTrip implements http.RoundTripper.
func (s *sharing) RoundTrip(q *http.Request) (*http.Response, error) {
	digest := s.digestOf(q)
	if digest == "" || !s.on.Load() {
		return s.web.RoundTrip(q)
	}
	key := layers.KeyOf(s.source, digest)
	w, err := s.layers.Create(key, digest)
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, layers.ErrBusy):
		s.helped.Store(true)
		return s.reply(q, key, nil)
	case err != nil:
		return nil, fmt.Errorf("the node's store of images: %w", err)
	}
	l := &loading{sharing: s, q: q, w: w, key: key, over: make(chan struct{})}
	refused, err := l.begin()
	if err != nil || refused != nil {
		return refused, errors.Join(err, w.Abandon())
	}
	go l.load() // ends with the layer, or with the process
	return s.reply(q, key, l)
}

// reply is the answer to a request from the file of what it asks for. It may still grow: l is who writes it,
// nil if that is another process.
func (s *sharing) reply(q *http.Request, key string, l *loading) (*http.Response, error) {
	file, err := s.layers.Open(s.ctx, key, 0)
	if err != nil {
		return nil, err
	}
	r := &growing{file, l}
	size, err := r.Size()
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	out := &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Length": {strconv.FormatInt(size, 10)}}, ContentLength: size, Request: q, Body: r}
	if !strings.Contains(q.URL.Path, "/manifests/") {
		return out, nil
	}
	text, err := io.ReadAll(io.LimitReader(r, maxManifest))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	out.Header.Set("Content-Type", mediaType(text))
	out.Body = io.NopCloser(bytes.NewReader(text))
	return out, nil
}

const maxManifest = 16 << 20

// mediaType is what a manifest says that it is.
func mediaType(manifest []byte) string {
	var is struct {
		MediaType string     `json:"mediaType"`
		Manifests []struct{} `json:"manifests"`
	}
	_ = wire.Unmarshal(manifest, &is) // whoever reads it says what is wrong
	switch {
	case is.MediaType != "":
		return is.MediaType
	case is.Manifests != nil:
		return string(types.OCIImageIndex)
	}
	return string(types.OCIManifestSchema1)
}

// loading is one layer on its way to the node.
type loading struct {
	*sharing
	q    *http.Request
	w    *layers.Writer
	key  string
	from io.ReadCloser
	web  bool // it comes from the registry
	over chan struct{}
	err  error // why it did not come; to be read when it is over
}

// growing reads a layer. If that does not come, it tells why.
type growing struct {
	*layers.Reader
	l *loading
}

// Read implements io.Reader.
func (g *growing) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if g.l != nil && errors.Is(err, layers.ErrBroken) {
		<-g.l.over
		return n, g.l.err
	}
	return n, err
}

// begin finds somebody who sends the layer. An answer is the registry's that is not to be kept.
func (l *loading) begin() (*http.Response, error) {
	if l.ask != nil && l.cluster() {
		l.helped.Store(true)
		return nil, nil
	}
	got, err := l.registry()
	if err != nil || got.StatusCode/100 != 2 {
		return got, err
	}
	if l.w.At > 0 {
		return nil, nil
	}
	if got.ContentLength < 0 { // it does not say how much that is
		return got, nil
	}
	return nil, l.w.Begin(got.ContentLength)
}

// cluster has other nodes send the layer, and reports whether they do.
func (l *loading) cluster() bool {
	ctx, cancel := context.WithTimeout(l.ctx, daemonTime)
	defer cancel()
	from, err := l.ask(ctx, api.LayerRequest{Key: l.key, From: l.w.At, End: l.w.End})
	if err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { from.Close() })
	defer stop()
	missing := max(layers.HeadSize-l.w.At, 1)
	if _, err := io.CopyN(l.w, from, missing); err != nil || l.w.At < layers.HeadSize {
		from.Close()
		return false
	}
	l.from = from
	return true
}

// registry asks for what is missing; one that cannot send a part is asked for all.
func (l *loading) registry() (*http.Response, error) {
	have := max(l.w.At-layers.HeadSize, 0)
	got, err := l.fetch(have)
	if err == nil && have > 0 && got.StatusCode/100 != 2 {
		got.Body.Close()
		got, err = l.fetch(0)
	}
	if err != nil || got.StatusCode/100 != 2 {
		return got, err
	}
	l.from, l.web = got.Body, true
	if got.StatusCode == http.StatusOK {
		_, err = io.CopyN(io.Discard, got.Body, have)
	}
	return got, err
}

// fetch asks for a layer from a byte on. It follows where the registry sends it, but not from outside into
// this network.
func (l *loading) fetch(from int64) (*http.Response, error) {
	q := l.q.Clone(l.ctx)
	q.Header.Set("Accept-Encoding", "identity") // the digest is that of what is sent
	if from > 0 {
		q.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	client := &http.Client{Transport: l.sharing.web, CheckRedirect: mayRedirect}
	return client.Do(q)
}

// mayRedirect refuses a public registry's hint at an address inside.
func mayRedirect(q *http.Request, via []*http.Request) error {
	from, to := via[0].URL.Hostname(), q.URL.Hostname()
	if len(via) > redirects {
		return errors.New("the registry sends from one address to the next")
	}
	ip := net.ParseIP(to)
	if from == to || ip == nil || !isInside(ip) {
		return nil
	}
	return fmt.Errorf("%s sends to %s, which is inside this network", from, to)
}

// isInside reports whether an address is one of this machine or of its network.
func isInside(ip net.IP) bool {
	return ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast()
}

// load gets the layer as a whole. Whoever waits for it sees its file grow, or nobody write to it any more.
func (l *loading) load() {
	defer close(l.over)
	for try := 0; l.err == nil && !l.w.Whole(); {
		l.err = l.carry()
		switch {
		case l.w.Whole() || errors.Is(l.err, layers.ErrDigest) || l.web && try >= again:
		default:
			try++
			l.err = l.more()
		}
	}
	if l.w.Whole() {
		l.err = l.w.Finish()
		return
	}
	l.err = errors.Join(l.err, l.w.Abandon())
}

// carry writes what comes, until nothing comes for long.
func (l *loading) carry() error {
	defer l.from.Close()
	idle := time.AfterFunc(stallTime, func() { l.from.Close() })
	defer idle.Stop()
	_, err := io.Copy(l.w, &noted{l.from, idle})
	if err == nil && !l.w.Whole() {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// more has the registry go on.
func (l *loading) more() error {
	got, err := l.registry()
	if err == nil && got.StatusCode/100 != 2 {
		err = errors.Join(fmt.Errorf("the registry goes on with %s", got.Status), got.Body.Close())
	}
	return err
}

// noted puts off what happens when nothing comes.
type noted struct {
	r    io.Reader
	idle *time.Timer
}

func (n *noted) Read(p []byte) (int, error) {
	k, err := n.r.Read(p)
	n.idle.Reset(stallTime)
	return k, err
}
