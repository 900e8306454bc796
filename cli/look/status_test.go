package look

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
	"dev.muster/slurm/slurmtest"
)

// statusOf is the status of the fake cluster with servers, of which some are up.
func statusOf(f *slurmtest.Server, sys *front.Sys, servers ...api.Server) *clusterStatus {
	st := &clusterStatus{Cluster: "oracle", Now: slurmtest.Clock, By: "s1", Servers: servers}
	st.countServers(&api.PingResponse{Servers: servers})
	st.countNodes(f.Nodes)
	st.countJobs(&show.View{Sys: sys, Now: slurmtest.Clock}, f.Jobs)
	return st
}

var threeServers = []api.Server{
	{Name: "s1", Addr: "a:1", Leader: true, Voter: true, Up: true},
	{Name: "s2", Addr: "a:2", Voter: true, Up: true}, {Name: "s3", Addr: "a:3", Voter: true},
}

// TestStatus: one screen tells of servers, nodes by reason, GPUs, the queue and what needs attention.
func TestStatus(t *testing.T) {
	f := slurmtest.New()
	f.AddJobs()
	var out bytes.Buffer
	st := statusOf(f, &front.Sys{}, threeServers...)
	st.print(&out, painter{})
	for _, want := range []string{"servers  2 of 3 up, s1 leads", "nodes    5 of 8 up", "1 down",
		"2 drained", "GPUs     h100 4 of 64 in use, 24 out of service",
		"  server s3 (a:3) does not answer\n", "  gpu-node-007 down: Not responding (by slurm)\n",
		"  gpu-node-008 drained: bad dimm here and more text (by root)\n", "waits longest"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if !st.Quorum {
		t.Error("two of three servers are no quorum")
	}
	if two := statusOf(f, &front.Sys{}, threeServers[0], threeServers[2], threeServers[2]); two.Quorum {
		t.Error("one of three servers is a quorum")
	}
	if leaderless := statusOf(f, &front.Sys{}, threeServers[1], threeServers[1]); leaderless.Quorum {
		t.Error("without a leader there is a quorum")
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("colours where there is no terminal")
	}
	out.Reset()
	st.print(&out, painter{true})
	if !strings.Contains(out.String(), "\x1b[31m2 of 3 up\x1b[0m") {
		t.Errorf("no colours: %q", out.String())
	}
}

// TestWithoutVote: a server that catches up has no vote, and the cluster depends on those that have one.
func TestWithoutVote(t *testing.T) {
	joined := func(voters, others int) (list []api.Server) {
		for i := range voters + others {
			list = append(list, api.Server{Name: fmt.Sprint("s", i+1), Voter: i < voters})
		}
		return list
	}
	const alone = "; the cluster does not survive the loss of "
	for _, c := range []struct {
		voters, others int
		want           string
	}{
		{3, 0, ""},
		{1, 0, ""},
		{1, 1, "s2: catching up, no vote yet"},
		{1, 2, "s2, s3: catching up, no vote yet" + alone + "s1 until then"},
		{2, 1, "s3: catching up, no vote yet" + alone + "s1 or s2 until then"},
		{4, 1, "s5: catching up, no vote yet"},
	} {
		if got := WithoutVote(joined(c.voters, c.others)); got != c.want {
			t.Errorf("%d and %d: %q, want %q", c.voters, c.others, got, c.want)
		}
	}
}

// TestStatusOff: nodes that are switched off can be had, and need no attention; one that could not be switched on does.
func TestStatusOff(t *testing.T) {
	f := slurmtest.New()
	for i := range f.Nodes {
		n := &f.Nodes[i]
		n.Down, n.Drain, n.Lacks, n.Reason = false, false, "", ""
		if n.Up = i < 2; !n.Up {
			n.Registered, n.Power = time.Time{}, &cluster.Power{State: cluster.PowerOff}
		}
	}
	failed := &f.Nodes[7]
	failed.Down, failed.Reason, failed.ReasonBy = true, "ResumeTimeout reached", "slurm"
	var out bytes.Buffer
	statusOf(f, &front.Sys{}, threeServers[:2]...).print(&out, painter{})
	for _, want := range []string{
		"nodes    2 of 8 up, 0 with jobs, 5 off, 1 down\n", " 8 out of service",
		"gpu-node-008 down: ResumeTimeout reached (by slurm)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "silent") {
		t.Errorf("what is off is taken for silent:\n%s", out.String())
	}
}

// TestTopLines: what runs first, by the order that is asked for, and never more than fits.
func TestTopLines(t *testing.T) {
	f := slurmtest.New()
	f.AddJobs()
	s := &topScreen{sys: &front.Sys{}, st: statusOf(f, &front.Sys{}, threeServers...)}
	all := s.lines(0, 0)
	if len(all) < len(f.Jobs)+4 {
		t.Errorf("%d lines for %d jobs", len(all), len(f.Jobs))
	}
	for i := range topOrders {
		s.order = i
		small := s.lines(60, 12)
		if len(small) > 11 {
			t.Errorf("%s: %d lines on a screen of 12", topOrders[i].name, len(small))
		}
		waits := false
		for _, l := range s.lines(0, 0)[5:] {
			if pending := strings.Contains(l, " PD "); pending {
				waits = true
			} else if waits && strings.Contains(l, " R ") {
				t.Errorf("%s: what runs is below what waits:\n%s", topOrders[i].name, strings.Join(all, "\n"))
			}
		}
		for _, l := range small[5:] {
			if len(l) > 60 {
				t.Errorf("%q is longer than 60", l)
			}
		}
	}
}
