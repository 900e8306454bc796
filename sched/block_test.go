package sched

import (
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestBlocks places jobs on six base blocks of four nodes, of which two and four make larger ones.
// A letter of busy is a node in use; those behind the six are in no block.
func TestBlocks(t *testing.T) {
	config := func(cfg *cluster.Config) {
		cfg.BlockSizes = []int{4, 8, 16}
		for k := range 6 {
			cfg.Blocks = append(cfg.Blocks, cluster.Block{Name: "b" + string(rune('1'+k)), Nodes: names(4*k+1, 4*k+4)})
		}
	}
	for _, c := range []struct{ name, busy, ask, want string }{
		{"the block with the fewest free nodes that suffice", ".... xx.. .x.. .... .... ....", "-N2", "n7 n8"},
		{"the first of equals", ".... x... .x.. .... .... ....", "-N3", "n6 n7 n8"},
		{"no block has so many: it waits rather than straddle", "xx.. xx.. xx.. xx.. xx.. xx..", "-N3", ""},
		{"larger blocks are aligned", "xxxx .... .... xxxx xxxx xxxx", "-N8", ""},
		{
			"inside, few base blocks, the fullest that suffice", ".... .... .xx. .... xxxx xxxx", "-N6",
			"n9 n12 n13 n14 n15 n16",
		},
		{"the lowest of a block", ".... .... .... .... .... ....", "-N5", "n1 n2 n3 n4 n5"},
		{"part of a base block before an untouched one", ".... .xxx .... .... xxxx xxxx", "-N5", "n1 n2 n3 n4 n5"},
		{
			"beyond the largest size, all of it", "xxxx .... .... .... .... ....", "-N20",
			"n5 n6 n7 n8 n9 n10 n11 n12 n13 n14 n15 n16 n17 n18 n19 n20 n21 n22 n23 n24",
		},
		{
			"segments lie apart from each other", "..xx .xxx ..xx xxxx ..xx xxxx", "-N6 --segment=2",
			"n1 n2 n9 n10 n17 n18",
		},
		{"a segment is whole", ".xxx .xxx .xxx .xxx .xxx ....", "-N6 --segment=2", ""},
		{
			"together in one higher block", "..xx ..xx xxxx xxxx .... ....",
			"-N4 --segment=2 --consolidate-segments", "n17 n18 n19 n20",
		},
		{"together, and there is none", "..xx xxxx ..xx xxxx ..xx xxxx", "-N4 --segment=2 --consolidate-segments", ""},
		{
			"in no base block two", ".... .... .... xxxx xxxx xxxx", "-N6 --segment=2 --spread-segments",
			"n1 n2 n5 n6 n9 n10",
		},
		{"a segment larger than the job is none", ".... .... .... .... .... ....", "-N2 --segment=4", "n1 n2"},
		{"tasks without nodes go up a level", ".... .... .... .... .... ....", "-n80", "n1 n2 n3 n4 n5"},
		{
			"more nodes than asked for at least, in the larger block that they need",
			"...x x... .... .... .... ....", "-N4-5 -wn1", "n1 n2 n6 n7 n8",
		},
		{"a node by name says which block", ".... .... .... .... .... ....", "-N3 -wn10", "n9 n10 n11"},
		{"a node that no block has", "xxxx xxxx xxxx xxxx xxxx xxxx ...", "-N1", "n25"},
		{"blocks before nodes that none has", "xxxx xxxx xxxx xxxx x.xx xxxx ...", "-N1", "n18"},
		{"all of them in no block", "xxxx xxx. xxxx xxxx x.xx xxxx ...", "-N3", "n25 n26 n27"},
		{"in no block by name", ".... .... .... .... .... .... ...", "-N2 -wn25,n27", "n25 n27"},
		{"by name in a block and in none", ".... .... .... .... .... .... ...", "-N2 -wn1,n27", ""},
		{"blocks are not filled up with others", "xxxx xxx. xxxx xxxx x.xx xxxx ..x", "-N3", ""},
		{"no block has segments", "xxxx xxxx xxxx xxxx xxxx xxxx ...", "-N4 --segment=2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var nodes []cluster.Inventory
			marks := strings.ReplaceAll(c.busy, " ", "")
			for range marks {
				nodes = append(nodes, machine())
			}
			b := namedBed(t, config, nodes...)
			for i, mark := range marks {
				if mark == 'x' {
					b.Submit(ask(t, "-N1 --exclusive -w"+string(numbered(i+1))))
				}
			}
			b.ScheduleAll()
			spec := &cluster.JobSpec{
				Layout: &cluster.Layout{}, Name: "j", UID: 1, User: "u", Limit: time.Hour,
				Partitions: []string{"main"},
			}
			ask(t, c.ask)(spec)
			if err := new(Judge).Feasible(b.S.Snapshot(), spec, b.Now); err != nil && c.want != "" {
				t.Errorf("%s is refused: %v", c.ask, err)
			}
			id := b.Submit(ask(t, c.ask))
			b.ScheduleAll()
			j, _ := b.S.Job(id)
			var got []string
			for _, n := range j.AllocNodes() {
				got = append(got, string(n))
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("%s got %q, want %q", c.ask, got, c.want)
			}
		})
	}
}

// TestApart: a job that never starts for how the nodes lie is told so.
func TestApart(t *testing.T) {
	for want, config := range map[string]func(*cluster.Config){
		"4 of 4 nodes can take 64 tasks, but not in the layout that topology/block requires": func(cfg *cluster.Config) {
			cfg.Blocks = []cluster.Block{{Name: "b1", Nodes: names(1, 3)}}
		},
		"4 of 4 nodes can take 64 tasks, but not in the layout that topology/tree requires": func(cfg *cluster.Config) {
			cfg.Topology = []cluster.Switch{{Name: "s1", Nodes: names(1, 3)}}
		},
	} {
		b := namedBed(t, config, machine(), machine(), machine(), machine())
		spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Partitions: []string{"main"}}
		ask(t, "-N4")(spec)
		if err := new(Judge).Feasible(b.S.Snapshot(), spec, b.Now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
