package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// received are the messages that came to a channel.
type received struct {
	mu   sync.Mutex
	list []string
}

// serveChannel begins a web server that keeps what it is sent.
func serveChannel(t *testing.T) (*received, string) {
	t.Helper()
	got := &received{}
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		got.mu.Lock()
		defer got.mu.Unlock()
		got.list = append(got.list, strings.ReplaceAll(string(body), `\u0026`, "&"))
	}))
	t.Cleanup(web.Close)
	return got, web.URL
}

// count returns how many messages contain all of some texts.
func (r *received) count(texts ...string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.list {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(m, text)
		}
		if all {
			n++
		}
	}
	return n
}

// TestChannels: a site is notified in the form of its chat service of a node that is drained, and of a leader that is
// lost, by the next one.
func TestChannels(t *testing.T) {
	t.Parallel()
	got, url := serveChannel(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"slurm.conf":  "ClusterName=lab\nPartitionName=main Nodes=ALL Default=YES\n",
		"muster.conf": fmt.Sprintf("Channel=ops File=%s/ops\nChannel=pager File=%s/pager Events=node_drained,node_resumed\n", dir, dir),
		"ops":         "slack+" + url + "/secret\n",
		"pager":       "pagerduty+" + url + "/enqueue KEY\n",
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := fullGroup(t, 1, "--conf", dir+"/slurm.conf")
	leader := g.awaitLeader("s1")
	node, _, _ := strings.Cut(g.must(leader, "sinfo", "-h", "-N", "-o", "%N"), "\n")
	g.must(leader, "scontrol", "update", "nodename="+node, "state=drain", "reason=<bad disk>")
	g.wait("the drained node in both forms", func() bool {
		return got.count("lab: 1 node drained: "+node, "Reason: &lt;bad disk&gt;") == 1 &&
			got.count(`"routing_key":"KEY"`, `"event_action":"trigger"`) == 1
	})
	g.must(leader, "scontrol", "update", "nodename="+node, "state=resume")
	g.wait("the end of the incident", func() bool {
		return got.count(`"event_action":"resolve"`, `"dedup_key":"lab/node_drained/`+node+`"`) == 1
	})
	if list := g.must(leader, "strigger", "--get"); strings.Contains(list, "drained") {
		t.Errorf("strigger shows the triggers of channels:\n%s", list)
	}
	g.at[leader].kill()
	g.wait("the new leader", func() bool { return got.count("lab: Another server leads: ") == 1 })
	g.wait("the lost server", func() bool { return got.count("lab: A server does not answer: "+leader) == 1 })
	g.start(leader)
	g.wait("its return", func() bool { return got.count("lab: A server answers again: "+leader) == 1 })
}
