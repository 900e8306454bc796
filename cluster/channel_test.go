package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// openChannels puts channels into the configuration.
func (w *world) openChannels(list ...Channel) {
	w.t.Helper()
	cfg := *w.s.Config()
	cfg.Channels = list
	w.ok(root, &Configure{Config: &cfg})
}

// wantNews takes the messages to channels, each in words.
func (w *world) wantNews(want ...string) {
	w.t.Helper()
	var got []string
	var ends []HookEnd
	for e := range w.s.Hooks() {
		if e.Kind != HookChannel {
			continue
		}
		job := JobID(0)
		if e.Job != nil {
			job = e.Job.ID
		}
		got = append(got, fmt.Sprintf("%s %s %v %d %s", e.News.Channel, e.News.Event, e.Nodes, job, e.News.Note))
		ends = append(ends, HookEnd{ID: e.ID})
	}
	if ends != nil {
		w.ok(sys, &HooksDone{Ends: ends})
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("news %q, want %q", got, want)
	}
}

func eventsOf(t *testing.T, text string) []ChannelEvent {
	t.Helper()
	list, err := ParseChannelEvents(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestChannelNews: each channel is notified of the events that it asks for: of nodes that change within a moment in one
// message, with their reasons, and as long as it is configured.
func TestChannelNews(t *testing.T) {
	w := newWorld(t, 4)
	w.openChannels(Channel{Name: "ops", File: "/o", Events: eventsOf(t, "node_down,server_lost")},
		Channel{Name: "all", File: "/a", Events: eventsOf(t, "all")})
	w.set(NodeSetDown, "n1")
	w.set(NodeSetDown, "n2")
	w.pass(triggerGather)
	w.due()
	w.wantNews("ops node_down [n1 n2] 0 why", "all node_down [n1 n2] 0 why")
	w.set(NodeResume, "n1")
	w.pass(triggerGather)
	w.due()
	w.wantNews("all node_up [n1] 0 why", "all node_resumed [n1] 0 why")
	w.ok(sys, &TriggerServer{Events: []TriggerEvent{TriggerServerLost}, Server: "s2"})
	w.wantNews("ops server_lost [] 0 s2", "all server_lost [] 0 s2")
	w.ok(sys, &TriggerServer{Events: []TriggerEvent{TriggerLeaderLost, TriggerAnotherLeads}, Server: "s3"})
	w.wantNews("all leader_changed [] 0 s3")

	w.set(NodeSetDown, "n3")
	w.openChannels(Channel{Name: "ops", File: "/new", Events: eventsOf(t, "node_down")})
	w.pass(triggerGather)
	w.due()
	w.wantNews("ops node_down [n3] 0 why") // what had been gathered is not lost by a change of the configuration
	w.refused(root, &TriggerClear{ID: 1}, ErrNoTrigger)
	w.openChannels()
	w.set(NodeResume, "n3")
	w.set(NodeSetDown, "n3")
	w.pass(triggerGather)
	w.due()
	w.wantNews()
	for range w.s.Triggers() {
		t.Fatal("a trigger of a channel is left")
	}
}

// TestChannelRoom: messages are left out where too many wait, and a long reason is cut.
func TestChannelRoom(t *testing.T) {
	w := newWorld(t, 1)
	w.openChannels(Channel{Name: "ops", File: "/o", Events: eventsOf(t, "node_draining,node_drained")})
	why := strings.Repeat("é", maxNote)
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeDrain, Reason: &why})
	w.pass(triggerGather)
	w.due()
	for e := range w.s.Hooks() {
		if len(e.News.Note) > maxNote || !strings.HasPrefix(why, e.News.Note) || e.News.Note == "" {
			t.Errorf("a note of %d bytes", len(e.News.Note))
		}
	}
	tx := &tx{tables: &w.s.tables, at: w.now, by: sys}
	for range maxHooks + 5 {
		sendNews(tx, &ChannelNews{Channel: "ops", Event: "node_drained"}, nil, []NodeName{"n0"})
	}
	if n, full := w.s.HookCount(); n != maxHooks || !full {
		t.Errorf("%d messages wait, full is %v", n, full)
	}
}

// TestChannelTriggersOfUsers: nobody makes a trigger that speaks to a channel.
func TestChannelTriggersOfUsers(t *testing.T) {
	w := newWorld(t, 1)
	w.openChannels(Channel{Name: "ops", File: "/o", Events: eventsOf(t, "node_up")})
	w.trigger(Trigger{Events: []TriggerEvent{TriggerDown}, Program: "/x", News: &ChannelNews{Channel: "ops", Event: "job_hang"}})
	w.set(NodeSetDown, "n0")
	w.pass(triggerGather + time.Second)
	w.due()
	w.wantNews()
	w.wantRan("/x 0[n0]")
}

// TestParseChannelFile: a channel's file has one address in one of the forms, and a key where the service wants one.
func TestParseChannelFile(t *testing.T) {
	for _, c := range []struct {
		text string
		want NotifyAddress
		err  string
	}{
		{"https://a/b\n", NotifyAddress{URL: "https://a/b"}, ""},
		{"slack+https://a/b", NotifyAddress{Form: "slack", URL: "https://a/b"}, ""},
		{"pagerduty+https://a/b\nKEY\n", NotifyAddress{Form: "pagerduty", URL: "https://a/b", Key: "KEY"}, ""},
		{"pagerduty+https://a/b", NotifyAddress{}, "a routing key"},
		{"https://a/b KEY", NotifyAddress{}, "a routing key"},
		{"", NotifyAddress{}, "not 0 words"},
		{"file:///etc/shadow", NotifyAddress{}, "must begin with https://"},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, err := ParseChannelFile(c.text)
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
			case err != nil || got != c.want:
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}
