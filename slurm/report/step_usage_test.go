package report

import (
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// measuredStep is a step of three tasks on two nodes, with what a real Slurm measured of one.
func measuredStep() *cluster.Step {
	return &cluster.Step{Tasks: 3, Shares: []cluster.Share{{Node: "n1"}, {Node: "n2"}},
		Ended: time.Unix(1, 0),
		Usage: cluster.Usage{
			UserCPU: 26435 * time.Millisecond, SystemCPU: 241 * time.Millisecond, MaxRSS: 107737088,
			In: []cluster.Measure{
				{TRES: "cpu", Tot: 26676, Max: 12001, MaxTask: 1, Min: 4500},
				{TRES: "cpufreq", Tot: 6900000, Max: 2300000, Min: 2300000},
				{TRES: "fs/disk", Tot: 20630355, Max: 6876785, MaxTask: 1, Min: 6876785, MinTask: 1},
				{TRES: "mem", Tot: 163045376, Max: 107737088, MaxTask: 1, MinNode: 1, MinTask: 2},
				{TRES: "pages", Tot: 5, Max: 4, MaxTask: 1, MinNode: 1, MinTask: 2},
				{TRES: "vmem", Tot: 175763456, Max: 117444608, MaxTask: 1, MinNode: 1, MinTask: 2}},
			Out: []cluster.Measure{
				{TRES: "fs/disk", Tot: 18000003, Max: 9000001, MaxNode: 1, MaxTask: 2, Min: 3000001},
			}}}
}

// TestUsageFields: the fields, as Slurm 22.05 prints them of the same figures.
func TestUsageFields(t *testing.T) {
	gpus := measuredStep()
	gpus.Usage.In = []cluster.Measure{{TRES: "energy", Tot: 192890, Max: 192890},
		{TRES: "gres/gpumem", Tot: 3 << 30, Max: 2 << 30, MaxNode: 1},
		{TRES: "gres/gpuutil", Tot: 14250, Max: 9996, MaxTask: 2}}
	old := &cluster.Step{
		Tasks: 2, Shares: []cluster.Share{{Node: "n1"}},
		Usage: cluster.Usage{UserCPU: 5 * time.Second, MaxRSS: 2048},
	}
	for _, c := range []struct {
		u           stepUse
		field, want string
	}{
		{stepUse{Step: measuredStep()}, "AveCPU", "00:00:08"},
		{stepUse{Step: measuredStep()}, "AveCPUFreq", "2.30M"},
		{stepUse{Step: old}, "AveCPUFreq", "0"},
		{stepUse{Step: measuredStep()}, "MinCPU", "00:00:04"},
		{stepUse{Step: measuredStep()}, "MinCPUTask", "0"},
		{stepUse{Step: measuredStep()}, "AveRSS", "54348458"},
		{stepUse{Step: measuredStep()}, "MaxRSS", "105212K"},
		{stepUse{Step: measuredStep(), raw: true}, "MaxRSS", "107737088"},
		{stepUse{Step: measuredStep(), unit: 'G'}, "MaxRSS", "0.10G"},
		{stepUse{Step: measuredStep()}, "MaxRSSTask", "1"},
		{stepUse{Step: measuredStep()}, "AveVMSize", "58587818"},
		{stepUse{Step: measuredStep()}, "AvePages", "1"},
		{stepUse{Step: measuredStep()}, "MaxPages", "4"},
		{stepUse{Step: measuredStep()}, "AveDiskRead", "6.56M"},
		{stepUse{Step: measuredStep(), live: true}, "AveDiskRead", "6876785"},
		{stepUse{Step: measuredStep()}, "MaxDiskWrite", "8.58M"},
		{stepUse{Step: measuredStep()}, "MaxDiskWriteNode", "n2"},
		{stepUse{Step: measuredStep()}, "ConsumedEnergy", "0"},
		{
			stepUse{Step: measuredStep()}, "TRESUsageInAve",
			"cpu=00:00:08,energy=0,fs/disk=6876785,mem=54348458,pages=1,vmem=58587818",
		},
		{
			stepUse{Step: measuredStep()}, "TRESUsageInMax",
			"cpu=00:00:12,energy=0,fs/disk=6876785,mem=105212K,pages=4,vmem=114692K",
		},
		{stepUse{Step: measuredStep()}, "TRESUsageInMinNode", "cpu=n1,energy=n1,fs/disk=n1,mem=n2,pages=n2,vmem=n2"},
		{stepUse{Step: measuredStep()}, "TRESUsageInMinTask", "cpu=0,fs/disk=1,mem=2,pages=2,vmem=2"},
		{
			stepUse{Step: measuredStep()}, "TRESUsageInTot",
			"cpu=00:00:26,energy=0,fs/disk=20630355,mem=159224K,pages=5,vmem=171644K",
		},
		{stepUse{Step: measuredStep()}, "TRESUsageOutAve", "energy=0,fs/disk=6000001"},
		{stepUse{Step: measuredStep()}, "TRESUsageOutMaxNode", "energy=n1,fs/disk=n2"},
		{stepUse{Step: measuredStep()}, "TRESUsageOutMaxTask", "fs/disk=2"},
		{
			stepUse{Step: &cluster.Step{Tasks: 1, Shares: old.Shares}}, "TRESUsageInTot",
			"cpu=00:00:00,energy=0,fs/disk=0,mem=0,pages=0,vmem=0",
		},
		{stepUse{Step: &cluster.Step{Tasks: 1}}, "MaxRSSNode", ""},
		{stepUse{Step: gpus}, "ConsumedEnergy", "192.89K"},
		{stepUse{Step: gpus}, "ConsumedEnergyRaw", "192890"},
		{
			stepUse{Step: gpus}, "TRESUsageInMax",
			"cpu=00:00:00,energy=192890,fs/disk=0,gres/gpumem=2G,gres/gpuutil=100,mem=0,pages=0,vmem=0",
		},
		{
			stepUse{Step: gpus}, "TRESUsageInTot",
			"cpu=00:00:00,energy=192890,fs/disk=0,gres/gpumem=3G,gres/gpuutil=143,mem=0,pages=0,vmem=0",
		},
		{stepUse{Step: old}, "AveCPU", "00:00:02"},
		{stepUse{Step: old}, "MaxRSS", "2K"},
		{stepUse{Step: old}, "TRESUsageInTot", "cpu=00:00:05,energy=0,fs/disk=0,mem=4K,pages=0,vmem=0"},
	} {
		if got := usageField(c.field)(&c.u); got != c.want {
			t.Errorf("%s (raw %v, unit %q, live %v): %q, want %q", c.field, c.u.raw, c.u.unit, c.u.live, got, c.want)
		}
	}
}

// TestUsageData: the same figures as lists of amounts.
func TestUsageData(t *testing.T) {
	past := cluster.Step{ID: cluster.StepID{Job: 1}, Tasks: 3}
	past.Usage, past.Shares, past.Ended = measuredStep().Usage, measuredStep().Shares, time.Unix(1, 0)
	r := acctRow{JobRow: show.JobRow{Job: &cluster.Job{ID: 1, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}},
		View: &show.View{Books: &show.Books{}, Conf: &api.ClusterResponse{}}}, step: &past}
	text := string(pastStepTable.Append(nil, data.Load(data.Newest), &r))
	for _, want := range []string{
		`"consumed":{"max":[{"type":"energy","name":"","id":3,"count":0},{"type":"fs","name":"disk","id":6,"count":9000001}],`,
		`"min":[{"type":"energy","name":"","id":3,"count":0},{"type":"fs","name":"disk","id":6,"count":3000001}],`,
		`"average":[{"type":"energy","name":"","id":3,"count":0},{"type":"fs","name":"disk","id":6,"count":6000001}],`,
		`"total":[{"type":"energy","name":"","id":3,"count":0},{"type":"fs","name":"disk","id":6,"count":18000003}]}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

// TestStatJobs: what -j takes, and Slurm's words about what it does not.
func TestStatJobs(t *testing.T) {
	for word, want := range map[string]string{
		"7": "7", "7.3": "7.3", "7.batch": "7.batch", "7.extern": "7.extern", "7.0.1": "7.0", "7+1.2": "7.2", ",": "",
		"abc": "Bad job/step specified: abc", ".7": "Bad job/step specified: .7",
		"7.": "Bad step specified: 7", "7.x": "Bad step specified: 7", "7.batch.x": "Bad step specified: 7",
	} {
		var o statOptions
		got := ""
		if err := setStatJobs(&o, word); err != nil {
			got = err.Error()[len("sstat: fatal: "):]
		} else if len(o.targets) == 1 {
			got = front.UintText(uint32(o.targets[0].ref.Job))
			if n := o.targets[0].step; n != nil {
				got += "." + show.StepName(*n)
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
