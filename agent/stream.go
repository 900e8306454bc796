package agent

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// stallTime is how long the caller of a stream may take for one write; then it is cut off.
const stallTime = 15 * time.Second

// requestOf reads the request of a GET call: the JSON of parameter q, or, for people with curl, each parameter is a
// field.
func requestOf(params url.Values) ([]byte, error) {
	if q := params.Get("q"); q != "" {
		return []byte(q), nil
	}
	fields := map[string]any{}
	for name, values := range params {
		v := values[len(values)-1]
		_, err := strconv.ParseUint(v, 10, 64)
		switch {
		case err == nil || v == "true" || v == "false":
			fields[name] = wire.RawMessage(v)
		default:
			fields[name] = v
		}
	}
	body, err := wire.Marshal(fields)
	if err != nil {
		return nil, cluster.Errorf(cluster.Invalid, "", "parameters: %v", err)
	}
	return body, nil
}

// lineWriter sends batches of lines to a caller who must keep up. The connection is the stream's to its end.
type lineWriter struct {
	w     http.ResponseWriter
	begun bool
}

func (l *lineWriter) send(lines []byte) error {
	rc := http.NewResponseController(l.w)
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", "application/x-ndjson")
		l.w.Header().Set("Transfer-Encoding", "identity") // not in chunks: our client reads to the end of the connection
	}
	if err := rc.SetWriteDeadline(time.Now().Add(stallTime)); err != nil {
		return err
	}
	if _, err := l.w.Write(lines); err != nil {
		return err
	}
	return rc.Flush()
}

// stream answers with lines, this process's or those of a server that it asks.
func (c *call) stream() {
	out := &lineWriter{w: c.w}
	var err error
	if c.known {
		ctx, done := c.counting()
		defer done()
		err = c.route.Stream(ctx, c.who, c.body, out.send)
	} else {
		err = c.passStream(out)
	}
	switch {
	case out.begun:
		c.log.Debug("stream ended", "call", c.name(), "err", err)
	case err != nil && c.r.Context().Err() == nil:
		c.fail(c.w, c.r, err)
	}
}

// passStream carries lines from a server as they come.
func (c *call) passStream(out *lineWriter) error {
	vouch, err := c.gateway.vouchFor(c)
	if err != nil {
		return err
	}
	ctx := c.r.Context()
	far, err := c.gateway.fleet.client.OpenStream(ctx, c.r.URL.Path, vouch, c.body)
	if err != nil {
		c.gateway.fleet.next()
		return err
	}
	defer far.Close()
	stop := context.AfterFunc(ctx, func() { far.Close() })
	defer stop()
	for lines := bufio.NewReader(far); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			c.gateway.fleet.next()
			return err
		}
		for n := lines.Buffered(); n > 0; n = lines.Buffered() { // what has come with it goes with it
			more, _ := lines.Peek(n)
			cut := bytes.LastIndexByte(more, '\n') + 1
			if cut == 0 {
				break
			}
			line = append(line, more[:cut]...)
			_, _ = lines.Discard(cut)
		}
		if err := out.send(line); err != nil {
			return err
		}
	}
}
