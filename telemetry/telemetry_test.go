package telemetry

import (
	"math"
	"testing"
)

// sampleOf is a node with so many GPUs that are at work.
func sampleOf(gpus int, util float64) *Sample {
	s := New(OfNode)
	s.Own[NodeCPU], s.Own[NodeMem], s.Own[NodeMemMax] = 37.5, 412_000, 413_000
	for i := range gpus {
		g := s.GPU(i)
		g.Values[GPUUtil], g.Values[GPUUtilMax], g.Values[GPUMem], g.Values[GPUPower] = util, util+1, 61_000, 655
		g.Values[GPUTemp] = 61
		g.Values[GPUThrottle] = 4
		g.Values[GPULinkIn] = 5_000_000
		g.Values[GPULinkOut] = 5_000_001
	}
	return s
}

// TestPack: a sample comes back as it was, what is not known too, and a node with eight GPUs takes less
// than 250 bytes.
func TestPack(t *testing.T) {
	s := sampleOf(8, 93.2)
	b := s.Pack()
	if len(b) > 250 {
		t.Errorf("%d bytes", len(b))
	}
	back, err := Unpack(b)
	if err != nil {
		t.Fatal(err)
	}
	if back.Own[NodeCPU] != 37.5 || back.Own[NodeLoad] != Unknown || back.Own[NodePortIn] != Unknown || len(back.GPUs) != 8 {
		t.Errorf("%+v", back)
	}
	for i, g := range back.GPUs {
		if g.Index != i || g.Values[GPUUtil] != 93.2 || g.Values[GPULinkOut] != 5_000_001 || g.Values[GPUBusIn] != Unknown {
			t.Errorf("GPU %d: %+v", i, g)
		}
	}
}

// TestJoin: means by time, maxima, all reasons that were there; what is known in one part only counts for
// that part.
func TestJoin(t *testing.T) {
	var j Joiner
	a, b := sampleOf(1, 10), sampleOf(2, 40)
	b.GPUs[0].Values[GPUThrottle], b.GPUs[0].Values[GPUTemp] = 8, Unknown
	j.Add(a, 45)
	j.Add(b, 15)
	s := j.Sample()
	if g := s.GPUs[0].Values; g[GPUUtil] != 17.5 || g[GPUUtilMax] != 41 || g[GPUThrottle] != 12 || g[GPUTemp] != 61 {
		t.Errorf("%v", g)
	}
	if g := s.GPUs[1].Values; len(s.GPUs) != 2 || g[GPUUtil] != 40 {
		t.Errorf("%+v", s.GPUs)
	}
}

// FuzzUnpack: no bytes do harm.
func FuzzUnpack(f *testing.F) {
	f.Add(sampleOf(2, 50).Pack())
	f.Add(New(OfJob).Pack())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Unpack(b)
		if err != nil {
			return
		}
		if len(s.Own) != len(s.Kind.Fields()) {
			t.Errorf("%d values", len(s.Own))
		}
		for _, g := range s.GPUs {
			for _, v := range g.Values {
				if math.IsNaN(v) || len(g.Values) != len(GPUFields) {
					t.Errorf("%v", g)
				}
			}
		}
	})
}
