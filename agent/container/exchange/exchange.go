// Package exchange carries layers of images from node to node. Package layers keeps them, and
// the servers know where each is. Start with Exchange.
package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"dev.muster/agent/container/layers"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Layers of images go from node to node. The process that fetches an image asks this daemon first, which asks the
// servers who has the layer, gets it from there and hands it on; the process keeps it, and from its file, while
// it still grows, this daemon sends it to the next.

const (
	layerTries   = 3                // nodes that are asked in turn
	layerFind    = 2 * time.Second  // a server's answer
	layerSilence = 20 * time.Second // a node that sends nothing is given up
	layerBuffer  = 256 << 10
)

// Exchange is a node's part.
type Exchange struct {
	Images string // the folder of unpacked images; "": there is none
	Addr   string // where other nodes find this one
	Server *api.Client
	Peer   func(addr string) *api.Client // nil where there is no network
	Log    *slog.Logger
}

// Routes registers what is answered about layers.
func (e *Exchange) Routes(m *api.Mux) {
	own := func(who api.Caller, req []byte) error {
		if who.Member != "" || who.UID != uint32(os.Geteuid()) {
			return cluster.Errorf(cluster.Denied, cluster.ErrAccess,
				"layers of images are for the node's own processes")
		}
		return checkLayer(req)
	}
	other := func(_ api.Caller, req []byte) error { return checkLayer(req) }
	api.HandleTunnel(m, api.FetchLayer, api.User, own, e.fetch)
	api.HandleTunnel(m, api.SendLayer, api.Node, other, e.send)
}

func readLayer(req []byte) (q api.LayerRequest, err error) {
	if err := wire.Unmarshal(req, &q); err != nil {
		return q, cluster.Errorf(cluster.Invalid, "", "bad request for a layer: %v", err)
	}
	if !layers.IsKey(q.Key) || q.From < 0 || q.From > 0 && q.End < q.From {
		return q, cluster.Errorf(cluster.Invalid, "", "%q from byte %d is no layer", q.Key, q.From)
	}
	return q, nil
}

func checkLayer(req []byte) error {
	_, err := readLayer(req)
	return err
}

// send sends another node a layer as it is here or becomes.
func (e *Exchange) send(ctx context.Context, _ api.Caller, req []byte, conn api.Conn) error {
	q, err := readLayer(req)
	if err != nil {
		return err
	}
	if e.Images == "" {
		return layers.ErrNone
	}
	r, err := layers.In(e.Images).Open(ctx, q.Key, q.From)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{r}, make([]byte, layerBuffer))
	return err
}

// fetch carries a layer from other nodes to a process here. Where none has it, or all break off, it ends the
// connection: what is missing then is in the registry.
func (e *Exchange) fetch(ctx context.Context, _ api.Caller, req []byte, conn api.Conn) error {
	q, err := readLayer(req)
	if err != nil || e.Peer == nil || e.Addr == "" {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the connection: the process says nothing more
		_, _ = io.Copy(io.Discard, conn)
		cancel()
	}()
	ask := api.LayerQuery{Key: q.Key, Addr: e.Addr}
	for range layerTries {
		addr := e.place(ctx, ask)
		if addr == "" || addr == ask.Addr {
			return nil
		}
		err := e.carry(ctx, addr, &q, conn)
		if err == nil || errors.Is(err, errProcess) {
			return nil
		}
		e.Log.Debug("a node does not send a layer", "addr", addr, "to", q.From, "err", err)
		ask.Failed = append(ask.Failed, addr)
	}
	return nil
}

// place asks the servers who has a layer; "" for nobody.
func (e *Exchange) place(ctx context.Context, q api.LayerQuery) string {
	ctx, cancel := context.WithTimeout(ctx, layerFind)
	defer cancel()
	place, err := api.Call(ctx, e.Server, api.FindLayer, q)
	if err != nil {
		e.Log.Debug("no server knows who has a layer", "err", err)
	}
	return place.Addr
}

// errProcess says that the process that wanted a layer has gone.
var errProcess = errors.New("the process that wanted the layer has gone")

// carry carries bytes of a layer from a node to a process here, and has the request begin behind them. It fails if
// they do not come to the layer's end.
func (e *Exchange) carry(ctx context.Context, addr string, q *api.LayerRequest, to io.Writer) error {
	dctx, cancel := context.WithTimeout(ctx, layerSilence)
	defer cancel()
	from, err := api.Tunnel(dctx, e.Peer(addr), api.SendLayer, "muster-layer", *q)
	if err != nil {
		return err
	}
	defer from.Close()
	stop := context.AfterFunc(ctx, func() { from.Close() })
	defer stop()
	meter := layers.Meter{At: q.From, End: q.End}
	for buf := make([]byte, layerBuffer); !meter.Whole(); {
		_ = from.SetDeadline(time.Now().Add(layerSilence))
		n, err := from.Read(buf)
		if _, err := meter.Note(buf[:n]); err != nil {
			return err
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return fmt.Errorf("%w: %w", errProcess, err)
		}
		q.From, q.End = meter.At, meter.End
		if err != nil && !meter.Whole() {
			return err
		}
	}
	return nil
}
