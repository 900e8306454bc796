package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// flaky is another client's daemon that dies in the middle of calls: it answers no call of a path as often as said.
type flaky struct {
	deaf   map[string]int
	refuse bool // it refuses all calls
	alone  int  // calls in which no server leads
	calls  []string
}

func (f *flaky) client() *api.Client {
	return &api.Client{Dial: func(context.Context) (api.Conn, error) {
		near, far := net.Pipe()
		go func() { // ends with the connection
			defer far.Close()
			for r := bufio.NewReader(far); ; {
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				body, err := io.ReadAll(req.Body)
				if err != nil {
					return
				}
				path := strings.TrimPrefix(req.URL.Path, "/v1/parts/")
				if strings.Contains(string(body), `"hold":true`) {
					path += " and hold"
				}
				f.calls = append(f.calls, path)
				if f.deaf[path]--; f.deaf[path] >= 0 {
					return
				}
				status, text := "200 OK", "{}"
				if f.refuse || path == "begin" && len(f.calls) > 2 { // it was restarted and holds nothing
					status, text = "409 Conflict", `{"code":"conflict","kind":"finished","message":"step 1.0 is not ready here"}`
				}
				if f.alone--; f.alone >= 0 {
					status, text = "503 Service Unavailable", `{"code":"unavailable","kind":"no_leader","message":"no server leads"}`
				}
				fmt.Fprintf(far, "HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(text), text)
			}
		}()
		return near, nil
	}}
}

// TestSisterDies: a step begins although a sister's daemon is restarted in the middle of a call.
func TestSisterDies(t *testing.T) {
	for _, c := range []struct {
		name, dies, want string
		killed           bool
	}{
		{"not at all", "", "start and hold, begin", false},
		{"while it gets ready", "start and hold", "start and hold, start and hold, begin, start", false},
		{"while it begins", "begin", "start and hold, begin, begin, start", false},
		{"and the step was killed meanwhile", "begin", "start and hold, begin, begin", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &flaky{deaf: map[string]int{c.dies: 1}}
			cl := newClient(t, Config{Peer: func(string) *api.Client { return f.client() }})
			cl.sisters.Learn(api.NodePeer{Node: "n2", Member: "n2", Addr: "n2:1"})
			id := step.ID{Job: 1, Attempt: 1, Node: "n2"}
			ls := &liveStep{
				ids: []step.ID{id},
				record: cluster.Step{
					ID: cluster.StepID{Job: 1}, Attempt: 1, Shares: []cluster.Share{{Node: "n2", Tasks: 1}},
				},
			}
			if c.killed {
				cl.steps.signalStepNow(ls, syscall.SIGKILL)
			}
			if err := cl.steps.launchStep(t.Context(), ls, nil); (err != nil) != c.killed {
				t.Errorf("it began with error %v", err)
			}
			if got := strings.Join(f.calls, ", "); got != c.want {
				t.Errorf("calls %s; want %s", got, c.want)
			}
		})
	}
}
