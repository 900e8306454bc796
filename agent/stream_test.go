package agent

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

var errEnough = errors.New("enough")

// watch reads events until enough says so.
func (b *bubble) watch(q api.EventQuery, enough func(*api.Event) bool) (list []api.Event) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := api.Follow(ctx, b.api, api.WatchEvents, q, func(e *api.Event) error {
		list = append(list, *e)
		if enough(e) {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		b.t.Fatalf("after %d events: %v", len(list), err)
	}
	return list
}

// TestEvents: the life of a job is told in order; whoever begins again at any index hears the rest, once.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "1x8c16g", time.Second)
		defer b.api.Close()
		time.Sleep(time.Second)
		got := make(chan []api.Event)
		ended := func(e *api.Event) bool { return e.Job != nil && e.Job.State == "completed" }
		go func() { got <- b.watch(api.EventQuery{}, ended) }()
		synctest.Wait()
		b.submit(cluster.JobSpec{Layout: &cluster.Layout{}})
		all := <-got
		if all[0].Kind != api.EventBegin {
			t.Fatalf("the stream begins with %+v", all[0])
		}
		var states []string
		for _, e := range all {
			if e.Job != nil {
				states = append(states, e.Job.State)
			}
		}
		if s := strings.Join(slices.Compact(states), " "); s != "pending starting running ending completed" && s != "pending starting running completed" {
			t.Errorf("states: %s", s)
		}
		for i, e := range all {
			if e.More {
				continue
			}
			if len(all[i+1:]) == 0 {
				break
			}
			rest := b.watch(api.EventQuery{Since: &e.Index}, ended)[1:]
			if len(rest) != len(all[i+1:]) || rest[0].Index != all[i+1].Index {
				t.Errorf("since %d: %d events, want %d", e.Index, len(rest), len(all[i+1:]))
			}
		}
		job := b.watch(api.EventQuery{
			Since: &all[0].Index, Full: true, Jobs: &api.JobQuery{Phases: []cluster.Phase{cluster.Ended}},
		}, ended)
		if len(job) != 2 || job[1].Record == nil || job[1].Record.Outcome != cluster.Completed {
			t.Errorf("only ended jobs: %+v", job)
		}
		never := all[len(all)-1].Index + 1000
		began := time.Now()
		if e := b.watch(api.EventQuery{Since: &never}, func(*api.Event) bool { return true })[0]; e.Kind != api.EventStartOver || e.Code != 410 || time.Since(began) > 11*time.Second {
			t.Errorf("an index that never was: %+v after %v", e, time.Since(began))
		}
		if e := b.watch(api.EventQuery{}, func(e *api.Event) bool { return e.Kind == api.EventBeat }); len(e) < 2 {
			t.Errorf("a quiet stream says %+v", e)
		}
	})
}

// TestEventsSlow: who does not read is cut off.
func TestEventsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "1x8c16g", time.Second)
		defer b.api.Close()
		conn, err := b.api.Dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * stallTime)
		if text, err := io.ReadAll(conn); err != nil && !errors.Is(err, io.ErrClosedPipe) || strings.Contains(string(text), "beat") {
			t.Errorf("after %v of silence: %v, %q", 2*stallTime, err, text)
		}
	})
}

// TestRequestOf: parameters of a GET are the fields of its request.
func TestRequestOf(t *testing.T) {
	for query, want := range map[string]string{"q=%7B%22x%22%3A1%7D": `{"x":1}`, "since=12": `{"since":12}`, "full=true&since=0": `{"full":true,"since":0}`, "name=a%22b": `{"name":"a\"b"}`} {
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := requestOf(v); err != nil || string(body) != want {
			t.Errorf("%s: %s, %v", query, body, err)
		}
	}
}
