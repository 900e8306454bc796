package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// loaded reads a slurm.conf and a topology.conf of eight nodes.
func loaded(t *testing.T, slurm, topology string) (*cluster.Config, string) {
	t.Helper()
	dir := t.TempDir()
	slurm += "\nNodeName=n[1-8] CPUs=16\nPartitionName=p Nodes=ALL\n"
	for name, text := range map[string]string{"slurm.conf": slurm, "topology.conf": topology} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, notes, err := Load(filepath.Join(dir, "slurm.conf"))
	if err != nil {
		t.Fatal(err)
	}
	return cfg, strings.ReplaceAll(strings.Join(notes, "\n"), dir+"/", "")
}

// inOrder sorts lines: paths differ.
func inOrder(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestTopology(t *testing.T) {
	const tree, block = "TopologyPlugin=topology/tree", "TopologyPlugin=topology/block"
	const leaves = "SwitchName=leaf1 Nodes=n[1-4]\nSwitchName=leaf2 Nodes=n[5-8]\n"
	both := "spine{leaf1 leaf2} leaf1[n1 n2 n3 n4] leaf2[n5 n6 n7 n8]"
	for _, c := range []struct{ name, slurm, topology, want, notes string }{
		{"a list", tree, "SwitchName=spine Switches=leaf1,leaf2\n" + leaves, both, ""},
		{
			"a range, children first", tree, leaves + "SwitchName=spine Switches=leaf[1-2] LinkSpeed=100\n",
			"leaf1[n1 n2 n3 n4] leaf2[n5 n6 n7 n8] spine{leaf1 leaf2}", "",
		},
		{
			"a colon", tree, "SwitchName=spine Switches=leaf1:leaf2\n" + leaves, both,
			"topology.conf:1: Switches=leaf1:leaf2: a colon stands between switches, read as a comma",
		},
		{
			"not active", "", leaves, "",
			"topology.conf: its switches are not active: slurm.conf says TopologyPlugin=, not topology/tree",
		},
		{"flat", "TopologyPlugin=topology/flat", "", "", ""},
		{
			"no such plugin", "TopologyPlugin=topology/ring", "", "",
			"slurm.conf: TopologyPlugin=topology/ring is not known: want topology/tree, topology/block or " +
				"topology/flat; nodes are taken as flat",
		},
		{"what does not fit", tree,
			"SwitchName=a Nodes=n[1-4] Speed=1\nSwitchName=a Nodes=n5\nSwitchName=b Nodes=n[4-6,9]\n" +
				"SwitchName=top Switches=a,b,c\nSwitchName=two Switches=a\nFoo=1\n",
			"a[n1 n2 n3 n4] b[n4 n5 n6 n9] top{a b} two{}",
			"topology.conf: SwitchName=b: node n4 is on a already; it stays there\n" +
				"topology.conf: SwitchName=top: there is no switch c; ignored\n" +
				"topology.conf: SwitchName=two: switch a is under top already; ignored\n" +
				"topology.conf: no switch has n[7-8]: jobs of several nodes do not mix them with others\n" +
				"topology.conf: slurm.conf has no node n9\n" +
				"topology.conf:1: speed on a switch is not known; ignored\n" +
				"topology.conf:2: SwitchName=a: there is a line of that name already; ignored\n" +
				"topology.conf:6: foo=1: not a SwitchName, BlockName or BlockSizes line; ignored"},
		{"a ring", tree, "SwitchName=l Nodes=n[1-8]\nSwitchName=x Switches=y,l\nSwitchName=y Switches=x\n",
			"l[n1 n2 n3 n4 n5 n6 n7 n8] x{y l} y{}",
			"topology.conf: SwitchName=y: switch x is above it: that is a ring; ignored"},
		{
			"blocks", block, "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n",
			"b1(n1 n2 n3 n4) b2(n5 n6 n7 n8) sizes [4 8]", "",
		},
		{
			"blocks without sizes", block, "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\n",
			"b1(n1 n2 n3 n4) b2(n5 n6 n7 n8) sizes [4]", "",
		},
		{"odd sizes", block, "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,12,x\n",
			"b1(n1 n2 n3 n4) b2(n5 n6 n7 n8) sizes [4]",
			"topology.conf: BlockSizes=12 is not 4 times a power of two; ignored\n" +
				"topology.conf:3: BlockSizes=4,12,x: \"x\" is not a number of nodes; ignored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, notes := loaded(t, c.slurm, c.topology)
			var got []string
			for _, s := range cfg.Topology {
				if s.Nodes != nil {
					got = append(got, fmt.Sprint(s.Name, s.Nodes))
				} else {
					got = append(got, s.Name+"{"+strings.Join(s.Switches, " ")+"}")
				}
			}
			for _, b := range cfg.Blocks {
				got = append(got, b.Name+strings.NewReplacer("[", "(", "]", ")").Replace(fmt.Sprint(b.Nodes)))
			}
			if cfg.BlockSizes != nil {
				got = append(got, fmt.Sprint("sizes ", cfg.BlockSizes))
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("read %s\nwant %s", got, c.want)
			}
			if notes, want := inOrder(notes), inOrder(c.notes); notes != want {
				t.Errorf("notes:\n%s\nwant:\n%s", notes, want)
			}
		})
	}
}

// TestChoiceKeys reads what else concerns the choice of nodes.
func TestChoiceKeys(t *testing.T) {
	cfg, notes := loaded(t,
		"SelectTypeParameters=CR_Core_Memory,CR_LLN,CR_FOO\n"+
			"SchedulerParameters=pack_serial_at_end,max_switch_wait=60,max_switch_wait=x",
		"")
	if !cfg.LLN || !cfg.SerialAtEnd || cfg.MaxSwitchWait.Seconds() != 60 || cfg.DistBlock || !cfg.CoreAlloc || !cfg.MemAlloc {
		t.Errorf("read %+v", cfg)
	}
	if want := "slurm.conf:1: SelectTypeParameters=CR_FOO is not known; ignored\n" +
		"slurm.conf:2: SchedulerParameters: max_switch_wait=x is not a number of seconds; ignored"; notes != want {
		t.Errorf("notes:\n%s\nwant:\n%s", notes, want)
	}
}

// TestSelectTypeParameters reads what is given to jobs at once.
func TestSelectTypeParameters(t *testing.T) {
	type units struct{ core, socket, mem, pack, one bool }
	for value, want := range map[string]units{"CR_Socket": {core: true, socket: true},
		"cr_socket_memory,CR_Pack_Nodes": {true, true, true, true, false},
		"CR_CPU":                         {}, "CR_CPU_Memory": {mem: true}, "CR_Memory": {mem: true},
		"CR_Core,CR_ONE_TASK_PER_CORE": {core: true, one: true}, "CR_LLN": {core: true, mem: true}} {
		cfg, notes := loaded(t, "SelectTypeParameters="+value, "")
		if got := (units{cfg.CoreAlloc, cfg.SocketAlloc, cfg.MemAlloc, cfg.PackNodes, cfg.OneTaskPerCore}); got != want || notes != "" {
			t.Errorf("%s: %+v, %q, want %+v", value, got, notes, want)
		}
	}
}

// TestSchedulerParameters: each word has its effect, or is told of, the same kind in one note.
func TestSchedulerParameters(t *testing.T) {
	cfg, notes := loaded(t,
		"SchedulerParameters=bf_interval=30,bf_continue,assoc_limit_stop,bf_min_prio_reserve=100,bf_min_age_reserve=60,colour=blue,bf_min_age_reserve=x,best_fit,disable_best_fit,fgd,plan_whole_nodes,shortest_first,strict_order",
		"")
	if !cfg.ShortestFirst || !cfg.BestFit || !cfg.NoBestFit || !cfg.Gradient || !cfg.PlanWhole || !cfg.StrictOrder || !cfg.LimitStop || cfg.ReservePriority != 100 || cfg.ReserveAge == nil || cfg.ReserveAge.Seconds() != 60 {
		t.Errorf("read %+v", cfg)
	}
	want := "slurm.conf:1: SchedulerParameters: bf_min_age_reserve=x is not a number of seconds; ignored\n" +
		"slurm.conf:1: SchedulerParameters: not needed, as each event is followed by a cycle over all jobs: " +
		"bf_interval, bf_continue\n" +
		"slurm.conf:1: SchedulerParameters=colour=blue is not known; ignored"
	if notes != want {
		t.Errorf("notes:\n%s\nwant:\n%s", notes, want)
	}
}

// TestCgroupConf: jobs are held to their share where the file does not say otherwise.
func TestCgroupConf(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"slurm.conf": "NodeName=n CPUs=1\nPartitionName=p Nodes=ALL\n",
		"cgroup.conf": "CgroupAutomount=yes\nConstrainCores=no\nConstrainRAMSpace=yes\nAllowedSwapSpace=10\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, notes, err := Load(filepath.Join(dir, "slurm.conf"))
	if want := (cluster.Constrain{NoCores: true}); err != nil || cfg.Constrain != want {
		t.Errorf("read %+v, %v", cfg, err)
	}
	if want := dir + "/cgroup.conf:4: AllowedSwapSpace=10 has no effect: a job has the memory that it was " +
		"given, and no swap beside it"; strings.Join(notes, "\n") != want {
		t.Errorf("notes %q", notes)
	}
}

// TestTopologyYAML: topology.yaml is read like the lines of topology.conf that say the same, one topology of it;
// what is not understood is told by its line.
func TestTopologyYAML(t *testing.T) {
	nodes := "NodeName=n[1-8]\n"
	tree := "---\n# racks\n- topology: t1\n  cluster_default: true\n  tree:\n    switches:\n" +
		"      - switch: spine\n        children: leaf[1-2]\n" +
		"      - switch: leaf1\n        nodes: \"n[1-4]\"\n      - switch: leaf2   # the other\n        nodes: n[5-8]\n"
	block := "- topology: t2\n  block:\n    block_sizes:\n      - 4\n      - 8\n    blocks:\n      - block: b1\n" +
		"        nodes: n[1-4]\n      - block: b2\n        nodes: n[5-8]\n"
	for name, c := range map[string]struct{ yaml, conf, plugin, notes string }{
		"tree": {
			tree,
			"SwitchName=spine Switches=leaf[1-2]\nSwitchName=leaf1 Nodes=n[1-4]\nSwitchName=leaf2 Nodes=n[5-8]\n",
			"tree", "",
		},
		"block": {
			block, "BlockSizes=4,8\nBlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\n", "block", "",
		},
		"sizes in a line": {
			strings.Replace(block, "\n      - 4\n      - 8", " [4, 8]", 1),
			"BlockSizes=4,8\nBlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\n", "block", "",
		},
		"the default": {
			block + tree,
			"SwitchName=spine Switches=leaf[1-2]\nSwitchName=leaf1 Nodes=n[1-4]\nSwitchName=leaf2 Nodes=n[5-8]\n",
			"tree", "1: topology t2 is ignored: a cluster has one here, t1 (cluster_default)",
		},
		"flat": {"- topology: f\n  flat: true\n", "", "flat", ""},
		"none": {"# nothing\n", "", "", "1: there is no topology in it; ignored"},
		"an unknown key": {
			"- topology: f\n  flat: true\n  speed: 4\n", "", "flat",
			"3: speed is not known in a topology; ignored",
		},
		"no pair":          {"- topology: f\n  flat: true\n  - x\n", "", "flat", `3: "- x" is not key: value; ignored`},
		"before the first": {"tree:\n- topology: f\n  flat: true\n", "", "flat", `1: "tree:" comes before the first topology; ignored`},
	} {
		file := putDir(t, map[string]string{"slurm.conf": nodes, "topology.yaml": c.yaml})
		got, notes, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(notes, "; "); !strings.HasSuffix(text, c.notes) || (c.notes == "") != (text == "") {
			t.Errorf("%s: notes %q, want %q", name, text, c.notes)
		}
		plugin := ""
		if c.plugin != "" {
			plugin = "TopologyPlugin=topology/" + c.plugin + "\n"
		}
		if want := put(t, map[string]string{"slurm.conf": nodes + plugin, "topology.conf": c.conf}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v\nwant\n%+v", name, got, want)
		}
	}
	_, notes, err := Load(putDir(t, map[string]string{"slurm.conf": nodes + "TopologyPlugin=topology/tree\n",
		"topology.conf": "SwitchName=x Nodes=n[1-8]\n", "topology.yaml": tree,
		"plugstack.conf": "# ours\nrequired /usr/lib/x.so a=1\n"}))
	if text := strings.Join(notes, "; "); err != nil || !strings.Contains(text, "topology.yaml:3: it takes the "+
		"place of topology.conf, which is ignored") ||
		!strings.Contains(text, "plugstack.conf:2: SPANK plugin /usr/lib/x.so cannot be loaded") {
		t.Errorf("%v, %s", err, text)
	}
}
