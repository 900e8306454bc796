package server

import (
	"fmt"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// fullSamples are as many samples of 1,000 nodes as are held.
func fullSamples() (*samples, []api.NodeSample) {
	h := newSamples()
	data := working(telemetry.OfNode, 8, 2).Pack()
	var minute []api.NodeSample
	for i := range 1000 {
		node := cluster.NodeName(fmt.Sprintf("n%05d", i))
		minute = append(minute, api.NodeSample{Node: node, Span: 60, Data: data, Jobs: []api.JobSample{{Job: cluster.JobID(i + 1), Data: data}}})
	}
	for h.told == uint64(len(h.ring)) {
		h.tell(minute)
	}
	return h, minute
}

// tell takes the next minute in, as if what came before were written.
func (h *samples) tell(minute []api.NodeSample) {
	for i := range minute {
		minute[i].At += 60
	}
	h.take(minute)
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
	if bytes != h.bytes || bytes > samplesHeld || bytes < samplesHeld-weight(&h.ring[0]) || cap(h.ring) > 4*len(h.ring) {
		t.Errorf("%d bytes in %d samples (room for %d), counted %d", bytes, len(h.ring), cap(h.ring), h.bytes)
	}
	told := h.told
	h.tell(minute[:3])
	out := h.after(api.CopyRequest{Boot: h.boot, After: told})
	if len(out.Samples) != 3 || out.More || out.After != told+3 || out.Samples[2].Node != "n00002" || out.Samples[2].At != minute[2].At {
		t.Errorf("after %d: %d samples up to %d, more: %v", told, len(out.Samples), out.After, out.More)
	}
	first := h.after(api.CopyRequest{Boot: h.boot})
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
