package cluster

import (
	"reflect"
	"testing"
	"time"

	"dev.muster/wire"
)

// TestSumUsage: sums, extremes and where they are; what nobody used is left out, what GPUs did is not.
func TestSumUsage(t *testing.T) {
	tasks := []RankUsage{
		{
			Node: 0, Rank: 0,
			TaskUsage: TaskUsage{
				UserCPU: 3 * time.Second, SystemCPU: time.Second, MaxRSS: 100, MaxVM: 1000, Written: 7,
			},
		},
		{Node: 0, Rank: 2, TaskUsage: TaskUsage{UserCPU: time.Second, MaxRSS: 300, MaxVM: 900}},
		{
			Node: 1, Rank: 1,
			TaskUsage: TaskUsage{UserCPU: 9 * time.Second, MaxRSS: 200, MaxVM: 950, GPU: &GPUUsage{MaxUtil: 0}},
		},
	}
	u := SumUsage(tasks)
	want := Usage{UserCPU: 13 * time.Second, SystemCPU: time.Second, MaxRSS: 300,
		In: []Measure{
			{TRES: "cpu", Tot: 14000, Max: 9000, MaxNode: 1, MaxTask: 1, Min: 1000, MinNode: 0, MinTask: 2},
			{TRES: "energy", MaxNode: 1, MaxTask: 1, MinNode: 1, MinTask: 1},
			{TRES: "gres/gpumem", MaxNode: 1, MaxTask: 1, MinNode: 1, MinTask: 1},
			{TRES: "gres/gpuutil", MaxNode: 1, MaxTask: 1, MinNode: 1, MinTask: 1},
			{TRES: "mem", Tot: 600, Max: 300, MaxNode: 0, MaxTask: 2, Min: 100},
			{TRES: "vmem", Tot: 2850, Max: 1000, Min: 900, MinTask: 2},
		},
		Out: []Measure{{TRES: "fs/disk", Tot: 7, Max: 7, MinNode: 0, MinTask: 2}}}
	if !reflect.DeepEqual(u, want) {
		t.Errorf("got  %+v\nwant %+v", u, want)
	}
	if u := SumUsage([]RankUsage{{TaskUsage: TaskUsage{GPU: &GPUUsage{NoUtil: true, Mem: 5, MaxMem: 6}}}}); len(u.In) != 2 || u.In[1] != (Measure{TRES: "gres/gpumem", Tot: 5, Max: 6, Min: 5}) {
		t.Errorf("of a slice: %+v", u.In)
	}
	text, err := wire.Marshal(&Step{Usage: u})
	if err != nil {
		t.Fatal(err)
	}
	var back Step
	if err := wire.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back.Usage, u) {
		t.Errorf("read back: %v, %+v", err, back.Usage)
	}
	if text, err := wire.Marshal(&Usage{UserCPU: 1}); err != nil || string(text) != `{"user_cpu":1}` {
		t.Errorf("what was known of old is written as of old: %s, %v", text, err)
	}
	if m, ok := u.Measured("fs/disk", false); ok || m.Tot != 0 || m.TRES != "fs/disk" {
		t.Errorf("nothing was read: %+v, %v", m, ok)
	}
}

// TestUsageJoin: of two looks at a task the greater counts; the two kinds of CPU time stay together.
func TestUsageJoin(t *testing.T) {
	a := TaskUsage{UserCPU: 5, SystemCPU: 1, MaxRSS: 10, Read: 4}
	a.Join(&TaskUsage{UserCPU: 4, SystemCPU: 3, MaxRSS: 9, MaxVM: 20, Pages: 2, Written: 8, GPU: &GPUUsage{Util: 50}})
	if want := (TaskUsage{UserCPU: 4, SystemCPU: 3, MaxRSS: 10, MaxVM: 20, Pages: 2, Read: 4, Written: 8, GPU: &GPUUsage{Util: 50}}); !reflect.DeepEqual(a, want) {
		t.Errorf("%+v", a)
	}
	a.Join(&TaskUsage{UserCPU: 1})
	if a.UserCPU != 4 || a.GPU == nil {
		t.Errorf("less was taken over: %+v", a)
	}
}

func TestSampling(t *testing.T) {
	for _, c := range []struct {
		conf, job string
		want      time.Duration
	}{
		{"", "", DefaultSampling}, {"10", "", 10 * time.Second}, {"task=15,energy=5", "", 15 * time.Second},
		{"0", "", Unlimited},
		{"0", "task=2", 2 * time.Second}, {"10", "0", Unlimited}, {"10", "energy=3", 10 * time.Second},
		{"energy=3", "", DefaultSampling},
	} {
		every, ok := ParseSampling(c.conf)
		cfg := Config{JobDefaults: JobDefaults{SampleEvery: every}}
		if got := cfg.Sampling(c.job); !ok || got != c.want {
			t.Errorf("JobAcctGatherFrequency=%s, --acctg-freq=%s: %v, want %v", c.conf, c.job, got, c.want)
		}
	}
	for _, bad := range []string{"x", "task=", "cpu=3", "-1", "task=1.5"} {
		if _, ok := ParseSampling(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}
