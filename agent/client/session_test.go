package client

import (
	"testing"

	"dev.muster/cluster"
)

// A job takes sessions in as soon as this client has confirmed it: users see that it runs before this client is told so.
func TestNewest(t *testing.T) {
	job := func(id cluster.JobID, phase cluster.Phase, confirmed bool) *jobHere {
		h := here(phase, self)
		h.job.ID, h.job.Started, h.confirmed = id, now, confirmed
		h.job.Spec.User = "ann"
		return h
	}
	for _, c := range []struct {
		name    string
		jobs    []*jobHere
		want    cluster.JobID
		several bool
	}{
		{"none", nil, 0, false},
		{"not yet begun", []*jobHere{job(1, cluster.Starting, false)}, 0, false},
		{"confirmed, the servers have not answered yet", []*jobHere{job(1, cluster.Starting, true)}, 1, false},
		{"running", []*jobHere{job(1, cluster.Running, true)}, 1, false},
		{"suspended", []*jobHere{job(1, cluster.Suspended, true)}, 1, false},
		{"ending", []*jobHere{job(1, cluster.Ending, true)}, 0, false},
		{"several", []*jobHere{job(1, cluster.Running, true), job(2, cluster.Starting, true), job(3, cluster.Ending, true)}, 2, true},
	} {
		n := &node{jobs: map[cluster.JobID]*jobHere{}}
		for _, h := range c.jobs {
			n.jobs[h.job.ID] = h
		}
		client := &Client{order: []cluster.NodeName{self}, nodes: map[cluster.NodeName]*node{self: n}}
		h, several := client.newest("ann")
		var got cluster.JobID
		if h != nil {
			got = h.job.ID
		}
		if got != c.want || several != c.several {
			t.Errorf("%s: job %d, several %t; want %d, %t", c.name, got, several, c.want, c.several)
		}
	}
}
