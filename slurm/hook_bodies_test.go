package slurm

import (
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// TestHookBodies: each chat service gets a message in its form, in which a name that a user has chosen is no mention.
func TestHookBodies(t *testing.T) {
	began := time.Unix(1e9, 0)
	cfg := cluster.DefaultConfig()
	cfg.ClusterName = "lab"
	for _, c := range []struct {
		url, address string
		want, no     []string
	}{
		{"https://example.org/hook", "https://example.org/hook", []string{`"job_id":42`, `"text":"Slurm Job_id=42`}, nil},
		{"slack+https://hooks.example.org/x", "https://hooks.example.org/x",
			[]string{`{"text":"*Slurm Job_id=42 Name=&lt;!channel&gt; @all Failed, `, `\nState: FAILED\n`,
				`\nRun time: 00:01:40\n`}, []string{"<!channel>", "job_id"}},
		{"mattermost+https://chat.example.org/hooks/x", "https://chat.example.org/hooks/x",
			[]string{`{"text":"**Slurm Job\\_id=42`, `- State: FAILED`}, []string{"@all"}},
		{"teams+https://example.org/workflows/x", "https://example.org/workflows/x",
			[]string{`"contentType":"application/vnd.microsoft.card.adaptive"`, `{"title":"Cluster","value":"lab"}`},
			[]string{"@all"}},
		{"irc+https://example.org/", "irc+https://example.org/", []string{`"job_id":42`}, nil},
	} {
		t.Run(c.url, func(t *testing.T) {
			j := &cluster.Job{ID: 42, Phase: cluster.Ended, Outcome: cluster.Failed, Started: began,
				Ended: began.Add(100 * time.Second), Exit: cluster.ExitStatus{Code: 1},
				Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "<!channel> @all", Notify: c.url}}
			e := &cluster.Hook{Kind: cluster.HookCall, Event: cluster.EventFail, Job: j, At: j.Ended}
			text, err := wire.Marshal(Dialect{}.HookMessage(e, &cfg, cluster.ParseNotify(c.url)))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(string(text), `\u0026`, "&")
			if to := cluster.ParseNotify(c.url); to.URL != c.address {
				t.Errorf("address %q", to.URL)
			}
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %s in %s", want, got)
				}
			}
			for _, no := range c.no {
				if strings.Contains(got, no) {
					t.Errorf("%s in %s", no, got)
				}
			}
		})
	}
}

// TestSiteBodies: channels get news of nodes, servers and jobs in the form of their service, and PagerDuty resolves an
// incident under the key under which it was raised.
func TestSiteBodies(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.ClusterName = "lab"
	job := &cluster.Job{ID: 42, Phase: cluster.Running,
		Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "<!channel>", User: "ann"}}
	for _, c := range []struct {
		name, file string
		hook       cluster.Hook
		want       []string
	}{
		{"plain", "https://example.org/x", cluster.Hook{Nodes: []cluster.NodeName{"n1", "n2"},
			News: &cluster.ChannelNews{Event: "node_down", Note: "not responding"}},
			[]string{`"text":"lab: 2 nodes down: n[1-2]","event":"node_down"`, `"nodes":"n[1-2]"`, `"node_count":2`,
				`"note":"not responding"`}},
		{"slack of a job", "slack+https://example.org/x", cluster.Hook{Job: job,
			News: &cluster.ChannelNews{Event: "job_hang", Note: "<@all> rank 3"}},
			[]string{`{"text":"*lab: Hanging job: 42 &lt;!channel&gt; of ann*\nNote: &lt;@all&gt; rank 3"}`}},
		{"teams of a server", "teams+https://example.org/x", cluster.Hook{
			News: &cluster.ChannelNews{Event: "server_lost", Note: "s2"}},
			[]string{`"text":"lab: A server does not answer: s2"`, `{"title":"Server","value":"s2"}`}},
		{"an incident", "pagerduty+https://events.example.org/v2/enqueue K1", cluster.Hook{Nodes: []cluster.NodeName{"n1"},
			News: &cluster.ChannelNews{Event: "node_draining", Note: "XID 79"}},
			[]string{`"routing_key":"K1","event_action":"trigger","dedup_key":"lab/node_drained/n1"`, `"severity":"warning"`,
				`"custom_details":{"Nodes":"n1","Reason":"XID 79"}`, `"source":"lab"`}},
		{"its end", "pagerduty+https://events.example.org/v2/enqueue K1", cluster.Hook{Nodes: []cluster.NodeName{"n1"},
			News: &cluster.ChannelNews{Event: "node_resumed"}},
			[]string{`"event_action":"resolve","dedup_key":"lab/node_drained/n1"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			to, err := cluster.ParseChannelFile(c.file + "\n")
			if err != nil {
				t.Fatal(err)
			}
			c.hook.Kind = cluster.HookChannel
			text, err := wire.Marshal(Dialect{}.HookMessage(&c.hook, &cfg, to))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(string(text), `\u0026`, "&")
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %s in %s", want, got)
				}
			}
		})
	}
}

// TestPagerRows: every event of channels has a row.
func TestPagerRows(t *testing.T) {
	for _, name := range cluster.ChannelEventNames() {
		known := false
		for _, row := range pagerRows {
			known = known || string(row.event) == name
		}
		if !known {
			t.Errorf("PagerDuty has no severity for %s", name)
		}
	}
}

// TestDedupKey: a key of many nodes is short enough, and not that of other nodes.
func TestDedupKey(t *testing.T) {
	a := dedupKey("lab", "node_down", strings.Repeat("n1,", 200))
	b := dedupKey("lab", "node_down", strings.Repeat("n1,", 201))
	if len(a) > 255 || len(b) > 255 || a == b {
		t.Errorf("%q %q", a, b)
	}
}
