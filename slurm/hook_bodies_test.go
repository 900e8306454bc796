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
			text, err := wire.Marshal(Dialect{}.HookMessage(e, &cfg))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(string(text), `\u0026`, "&")
			if _, address := cluster.NotifyAddress(c.url); address != c.address {
				t.Errorf("address %q", address)
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
