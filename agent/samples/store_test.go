package samples

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/agent/agenttest"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// fullSamples are as many samples of 1,000 nodes as are held.
func fullSamples() (*Store, []api.NodeSample) {
	h := New()
	data := agenttest.Working(telemetry.OfNode, 8, 2).Pack()
	var minute []api.NodeSample
	for i := range 1000 {
		node := cluster.NodeName(fmt.Sprintf("n%05d", i))
		minute = append(minute, api.NodeSample{
			Node: node, Span: 60, Data: data,
			Jobs: []api.JobSample{{Job: cluster.JobID(i + 1), Data: data}},
		})
	}
	for h.told == uint64(len(h.ring)) {
		h.tell(minute)
	}
	return h, minute
}

// tell takes the next minute in, as if what came before were written.
func (h *Store) tell(minute []api.NodeSample) {
	for i := range minute {
		minute[i].At += 60
	}
	h.Take(minute)
	h.unkept = h.unkept[:0]
}

// TestSamplesHeld: the latest samples are held for other servers, within bounds, and those that are gone take no
// memory.
func TestSamplesHeld(t *testing.T) {
	h, minute := fullSamples()
	for range 100 {
		h.tell(minute)
	}
	bytes := 0
	for i := range h.ring {
		bytes += weight(&h.ring[i])
	}
	if bytes != h.bytes || bytes > held || bytes < held-weight(&h.ring[0]) || cap(h.ring) > 4*len(h.ring) {
		t.Errorf("%d bytes in %d samples (room for %d), counted %d", bytes, len(h.ring), cap(h.ring), h.bytes)
	}
	told := h.told
	h.tell(minute[:3])
	out := h.After(api.CopyRequest{Boot: h.Boot, After: told})
	if len(out.Samples) != 3 || out.More || out.After != told+3 || out.Samples[2].Node != "n00002" || out.Samples[2].At != minute[2].At {
		t.Errorf("after %d: %d samples up to %d, more: %v", told, len(out.Samples), out.After, out.More)
	}
	first := h.After(api.CopyRequest{Boot: h.Boot})
	if !first.More || first.Samples[0].At != h.ring[0].At || first.Samples[0].Node != h.ring[0].Node {
		t.Errorf("the first: %d samples, more: %v", len(first.Samples), first.More)
	}
}

// BenchmarkSamplesTake takes a minute of 1,000 nodes with eight GPUs and a job each while all room is used.
func BenchmarkSamplesTake(b *testing.B) {
	h, minute := fullSamples()
	for b.Loop() {
		h.tell(minute)
	}
}

// TestSamplesTaken: a sample counts once, what is told late is no news, and another server fetches all of
// them in parts, once more from one that has started again.
func TestSamplesTaken(t *testing.T) {
	h := New()
	one := func(node cluster.NodeName, at int64) api.NodeSample {
		return api.NodeSample{Node: node, At: at, Span: 60, Data: agenttest.Working(telemetry.OfNode, 8, -1).Pack(),
			Jobs: []api.JobSample{{Job: 7, Data: agenttest.Working(telemetry.OfJob, 8, -1).Pack()}}}
	}
	now := time.Unix(36000, 0)
	h.Take([]api.NodeSample{
		one("a", 36000), one("b", 36000), one("a", 36000), one("a", 35940), {Node: "c", Data: []byte{9}},
	})
	if l := h.latest["a"]; !l.At.Equal(now.Add(time.Minute)) || l.Jobs[7] == nil || h.latest["c"] != nil && h.latest["c"].Own != nil {
		t.Errorf("%+v", l)
	}
	list, hours := h.Unwritten(now)
	if len(list) != 6 || len(hours) != 0 {
		t.Errorf("%d rows, hours %v", len(list), hours)
	}
	if _, hours = h.Unwritten(now.Add(2 * time.Hour)); len(hours) != 2 {
		t.Errorf("hours %v", hours)
	}
	other := New()
	r := h.After(api.CopyRequest{})
	other.Take(r.Samples)
	if len(r.Samples) != 3 || r.More || other.told != 3 {
		t.Errorf("%d fetched, %d taken", len(r.Samples), other.told)
	}
	h.Take([]api.NodeSample{one("b", 36060)})
	if r = h.After(api.CopyRequest{Boot: r.Boot, After: r.After}); len(r.Samples) != 1 || r.Samples[0].Node != "b" {
		t.Errorf("%+v", r)
	}
	if again := h.After(api.CopyRequest{Boot: "of before", After: 99}); len(again.Samples) != 4 {
		t.Errorf("%d fetched anew", len(again.Samples))
	}
	if none := h.After(api.CopyRequest{Boot: r.Boot, After: r.After}); len(none.Samples) != 0 {
		t.Errorf("%d more", len(none.Samples))
	}
}

// TestRoom: a node tells what it has kept for an hour at once, and then no more than a multiple of what it measures.
func TestRoom(t *testing.T) {
	var l Latest
	now := time.Unix(1e9, 0)
	told := 0
	for range 100 {
		if l.takes(nodeRoom/10, now) {
			told++
		}
	}
	if told != 10 {
		t.Errorf("%d tenths of the room are taken at once", told)
	}
	if now = now.Add(time.Minute); !l.takes(60*nodeRate, now) || l.takes(60*nodeRate, now) {
		t.Error("after a minute it may tell other than a minute's part")
	}
}
