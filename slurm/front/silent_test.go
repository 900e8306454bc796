package front

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/api"
)

// TestSilentCluster: another cluster that takes a call and does not answer is one that cannot be reached.
func TestSilentCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Sys{remote: true, refusal: new(string), Stderr: io.Discard}
		s.Dial = func(context.Context) (api.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }() // ends with near
			return near, nil
		}
		began := time.Now()
		_, err := Call(s, api.Ping, api.Empty{})
		if text, no := ErrorText(err); text != contactText || no != 1800 {
			t.Errorf("%q %d", text, no)
		}
		if took := time.Since(began); took < peerTime || took > peerTime+time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
