package replay

import (
	"flag"
	"fmt"
	"math"
	"testing"
	"time"

	"dev.muster/cluster"
)

var traces = flag.String("traces", "", "folder with the shared traces: their published figures are checked")

// TestPublished compares with the figures that an independent simulator got.
func TestPublished(t *testing.T) {
	if *traces == "" {
		t.Skip("no -traces folder given")
	}
	for _, tc := range []struct{ file, nodes, policy, place, want string }{
		{"synth256.swf", "", "fifo", "first", "1355210 3109104 7870.02 0.6615"},
		{"synth256.swf", "", "greedy", "first", "90828 548364 408.65 0.7989"},
		{"synth256.swf", "", "easy", "first", "86007 577839 337.03 0.7894"},
		{"synth256.swf", "", "sjbf", "first", "74981 397342 255.62 0.7532"},
		{"synth256.swf", "", "conservative", "first", "62970 328028 178.75 0.7724"},
		{"synth256.swf", "", "wfp", "first", "47780 208021 128.54 0.7661"},
		{"synth256.swf", "", "sjf", "first", "46968 113967 119.72 0.6873"},
		{"philly_3w.csv.gz", "philly_nodes.csv", "fifo", "first", "26320 68904 79.44 0.7625"},
		{"philly_3w.csv.gz", "philly_nodes.csv", "fifo", "best", "23548 70054 74.29 0.7637"},
		{"philly_3w.csv.gz", "philly_nodes.csv", "fifo", "worst", "66861 116542 251.86 0.7481"},
		{"philly_3w.csv.gz", "philly_nodes.csv", "easy", "first", "6750 42630 20.03 0.7650"},
		{"philly_3w.csv.gz", "philly_nodes.csv", "easy", "best", "7043 46502 22.20 0.7650"},
		{"philly_3w.csv.gz", "philly_nodes.csv", "easy", "worst", "11012 74088 38.79 0.7581"},
		{"philly_3w.csv.gz", "philly_nodes.csv", "greedy", "best", "6896 45020 24.94 0.7655"},
		{"philly_3w.csv.gz", "philly_nodes.csv", "sjbf", "best", "6212 47014 10.71 0.7655"},
		{"philly_3w.csv.gz", "philly_nodes.csv", "sjf", "best", "2527 12710 1.64 0.7586"},
		{"philly_3w.csv.gz", "philly_nodes.csv", "wfp", "best", "2854 13129 2.17 0.7607"},
		{"helios_venus_2vc.csv", "helios_nodes.csv", "fifo", "best", "10884 21786 191.80 0.9368"},
		{"helios_venus_2vc.csv", "helios_nodes.csv", "easy", "best", "316 5 10.14 0.9570"},
		{"helios_venus_2vc.csv", "helios_nodes.csv", "greedy", "best", "252 4 3.10 0.9570"},
		{"helios_venus_2vc.csv", "helios_nodes.csv", "sjf", "best", "241 5 2.89 0.9570"},
		{"helios_venus_2vc.csv", "helios_nodes.csv", "wfp", "best", "247 5 2.96 0.9570"},
	} {
		t.Run(tc.file+"/"+tc.policy+"/"+tc.place, func(t *testing.T) {
			nodes := ""
			if tc.nodes != "" {
				nodes = *traces + "/" + tc.nodes
			}
			tr, err := Load(*traces+"/"+tc.file, nodes)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			runs := tr.Textbook(Named(tc.policy), Placements[tc.place], nil)
			s := tr.Summarize(runs)
			var want float64 // rounded; two of the figures are half a second off
			if _, err := fmt.Sscan(tc.want, &want); err != nil {
				t.Fatal(err)
			}
			if math.Abs(s.Mean-want) <= 1 {
				s.Mean = want
			}
			got := fmt.Sprintf("%.0f %.0f %.2f %.4f", s.Mean, s.P95, s.Slowdown, s.Utilization)
			if got != tc.want {
				t.Errorf("mean wait, p95, slowdown, utilization: %s, want %s", got, tc.want)
			}
			t.Log(s.Mean, time.Since(began).Round(time.Millisecond))
		})
	}
}

// TestRealIsEasy: on one machine, with one queue in order of submission, the real scheduler is the textbook's EASY.
func TestRealIsEasy(t *testing.T) {
	tr := random(5, 600)
	tr.Nodes = []Node{{Name: "m", CPUs: 24}}
	for i := range tr.Jobs {
		tr.Jobs[i].CPUs, tr.Jobs[i].GPUs = tr.Jobs[i].GPUs, 0
	}
	starts := map[string]int64{}
	for _, r := range tr.Textbook(Named("easy"), Placements["first"], nil) {
		starts[r.Job.ID] = r.Start
	}
	cfg := cluster.DefaultConfig()
	cfg.StrictOrder = true
	runs, err := tr.Replay(&cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if starts[r.Job.ID] != r.Start {
			t.Errorf("job %s starts at %d, by the textbook at %d", r.Job.ID, r.Start, starts[r.Job.ID])
		}
	}
	again, err := tr.Replay(&cfg, nil)
	if err != nil || fmt.Sprint(tr.Summarize(again)) != fmt.Sprint(tr.Summarize(runs)) {
		t.Errorf("not the same a second time: %v", err)
	}
}

// TestShares: jobs of a part of a GPU share it, and of jobs of one node CPUs and memory count.
func TestShares(t *testing.T) {
	tr := &Trace{Nodes: []Node{{Name: "n", CPUs: 8, GPUs: 1, MemMB: 1000}}}
	for i, j := range []struct{ milli, cpus, mem, start int }{
		{500, 2, 100, 0}, {400, 2, 100, 1}, {100, 5, 100, 10}, {50, 1, 900, 11},
	} {
		tr.Jobs = append(tr.Jobs, Job{
			ID: fmt.Sprint(i), Submit: int64(i), Nodes: 1, CPUs: j.cpus, GPUs: 1, GPUMilli: j.milli,
			MemMB: int64(j.mem), Run: 10, Limit: 10, Group: fmt.Sprint(j.start),
		})
	}
	runs, err := tr.Replay(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if fmt.Sprint(r.Start) != r.Job.Group {
			t.Errorf("job %s starts at %d, want %s", r.Job.ID, r.Start, r.Job.Group)
		}
	}
	tr.Jobs = append(tr.Jobs[:1], Job{
		ID: "last", Submit: 10, Nodes: 1, CPUs: 1, GPUs: 1, GPUMilli: 1000, Run: 1, Limit: 1,
	})
	if runs, err = tr.Replay(nil, nil); err != nil || tr.Summarize(runs).Utilization != 0.5 {
		t.Errorf("half of the GPU is used for all of the time: %+v, %v", tr.Summarize(runs), err)
	}
}

// TestBetterThanEasy holds the default order to its aims on the shared traces: short jobs wait less than with EASY, the
// longest waits are little longer, and as much is used. On the generated log, the last jobs of which decide about its
// utilization, less than a point is chance.
func TestBetterThanEasy(t *testing.T) {
	if *traces == "" {
		t.Skip("no -traces folder given")
	}
	for file, nodes := range map[string]string{
		"synth256.swf": "", "helios_venus_2vc.csv": "/helios_nodes.csv",
		"philly_3w.csv.gz": "/philly_nodes.csv",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			if nodes != "" {
				nodes = *traces + nodes
			}
			tr, err := Load(*traces+"/"+file, nodes)
			if err != nil {
				t.Fatal(err)
			}
			easyRuns := tr.Textbook(Named("easy"), Placements["best"], nil)
			easy := tr.Summarize(easyRuns)
			runs, err := tr.Replay(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			own := tr.Summarize(runs)
			t.Logf("of EASY's: slowdown %.2f, p99 wait %.2f, longest wait %.2f; utilization %.4f, with EASY %.4f",
				own.Slowdown/easy.Slowdown, own.P99/easy.P99, own.Worst/easy.Worst, own.Utilization, easy.Utilization)
			least := easy.Utilization - 0.001
			if file == "synth256.swf" {
				least = easy.Utilization - 0.01
			}
			t.Logf("waits by size, of EASY's: %.2f", tr.sizesVersus(easyRuns, runs))
			if own.Slowdown > 0.75*easy.Slowdown || own.P99 > 1.25*easy.P99 || own.Utilization < least {
				t.Errorf("%+v; with EASY %+v", own, easy)
			}
		})
	}
}

// BenchmarkReplay replays a trace of 29,046 jobs on 640 GPUs by the real scheduler.
func BenchmarkReplay(b *testing.B) {
	if *traces == "" {
		b.Skip("no -traces folder given")
	}
	tr, err := Load(*traces+"/philly_3w.csv.gz", *traces+"/philly_nodes.csv")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := tr.Replay(nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
