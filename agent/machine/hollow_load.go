package machine

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"time"

	"dev.muster/cluster"
	"dev.muster/gpu"
)

// The load of hollow GPUs is simulated, so that charts, the list of idle GPUs and reports can be tried without
// hardware. It depends only on the node's name, the GPU's index and the time.

// Parts of the pattern.
const (
	idleOf     = 6   // one in so many GPUs of jobs does nothing
	restWatts  = 70  // of a GPU that does nothing
	restClock  = 345 // MHz
	fullClock  = 1980
	fullWatts  = 650             // of one at 100 %
	hollowMem  = 80 << 10        // MB, of a hollow GPU
	flickerFor = 5 * time.Second // the load keeps its fast part for so long
)

// HollowLoad samples made-up GPUs of hollow nodes (NameGPUs).
type HollowLoad struct {
	Nodes []Node
	Held  func() map[string]bool // GPUs that jobs have, by UUID: all others do nothing
}

// NameGPUs gives the GPUs of hollow nodes UUIDs, by which they are sampled.
func NameGPUs(nodes []Node) {
	for i := range nodes {
		gpus := slices.Clone(nodes[i].Inventory.GPUs) // hollow nodes of one description share them
		for k := range gpus {
			gpus[k].UUID = fmt.Sprintf("GPU-hollow-%s-%d", nodes[i].Name, gpus[k].Index)
		}
		nodes[i].Inventory.GPUs = gpus
	}
}

// Sample returns what all of these GPUs do now.
func (h *HollowLoad) Sample(context.Context) (out []gpu.Load, err error) {
	now, held := time.Now(), h.Held()
	for i := range h.Nodes {
		n := &h.Nodes[i]
		for k := range n.Inventory.GPUs {
			g := &n.Inventory.GPUs[k]
			out = append(out, hollowLoad(n.Name, g, now, held[g.UUID]))
		}
	}
	return out, nil
}

// hollowLoad is what one GPU does at a time: about 60 to 90 % in waves of one to four minutes, or nothing.
func hollowLoad(node cluster.NodeName, g *cluster.GPU, at time.Time, held bool) gpu.Load {
	seed := hashOf(string(node), strconv.Itoa(g.Index))
	out, mean := gpu.Load{UUID: g.UUID}, 0.0
	switch {
	case !held:
	case seed%idleOf == 0:
		out.MemUsedMB = hollowMem / 8 // a notebook, say, that has loaded its model
	default:
		mean = 60 + float64(seed>>8%31)
		period := float64(60 + seed>>16%180)
		wave := 6 * math.Sin(2*math.Pi*float64(at.Unix())/period)
		flicker := hashOf(string(node), strconv.Itoa(g.Index), strconv.FormatInt(at.UnixNano()/int64(flickerFor), 10))
		out.Util = min(int(mean+wave)+int(flicker%5), 100)
		out.MemUsedMB = hollowMem * int64(50+seed>>24%45) / 100
	}
	out.PowerMW = 1000 * watts(float64(out.Util))
	out.TempC = 30 + out.Util*4/10
	out.ClockMHz = restClock
	if out.Util > 0 {
		out.ClockMHz = fullClock - int(seed>>40%60)
	}
	out.EnergyMJ = uint64(at.UnixMilli()) * uint64(watts(mean)) // at its mean load, so that it only rises
	return out
}

// watts is the power at a load in percent.
func watts(util float64) int { return restWatts + int(util*(fullWatts-restWatts)/100) }

// hashOf is a number that depends on words alone.
func hashOf(words ...string) uint64 {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write(append([]byte(w), 0)) // it never fails
	}
	x := h.Sum64() // FNV's low bits follow those of the last byte
	x ^= x >> 32
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}
