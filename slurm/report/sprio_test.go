package report

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/slurmtest"
)

func TestHetPriorities(t *testing.T) {
	var o prioOptions
	if err := setPrioJobs(&o, "42+1,7"); err != nil || fmt.Sprint(o.jobs) != "[43 7]" {
		t.Errorf("sprio asks for %v: %v", o.jobs, err)
	}
	for _, bad := range []string{"42+x", "42.1", "42_1", "0"} {
		if setPrioJobs(&o, bad) == nil {
			t.Errorf("sprio takes %s", bad)
		}
	}
}

// TestSprioRounding has the figures of Slurm 22.05 (sprio -o): each factor is rounded, a half to the even number;
// the sum of them all is cut, and so is what %y shows, to 14 places, of the sum with its fraction.
func TestSprioRounding(t *testing.T) {
	weights := cluster.PriorityWeights{Age: 123457, Assoc: 555, FairShare: 1001, Size: 1003, Partition: 777, QOS: 333}
	for _, c := range []struct {
		id      cluster.JobID
		user    string
		factors cluster.Factors
		want    string
	}{
		{94, "alice", cluster.Factors{Assoc: .375, FairShare: .2, Size: .53125, Partition: .5, QOS: 1},
			"94|0|0.0000000|208|0.3750000|200|0.2000000|533|0.5312500|388|0.5000000|333|1.0000000|0|train|alice|1662|0.00000038712024||"},
		{95, "bob", cluster.Factors{Assoc: 1, FairShare: 1, Size: .53125, Partition: .5, QOS: 1},
			"95|0|0.0000000|555|1.0000000|1001|1.0000000|533|0.5312500|388|0.5000000|333|1.0000000|0|train|bob|2810|0.00000065433414||"},
	} {
		weighed := c.factors.Weigh(&weights)
		row := prioRow{w: &weights, weighed: weighed,
			JobPriority: &api.JobPriority{Job: &cluster.Job{ID: c.id, Spec: &cluster.JobSpec{User: c.user}},
				Partition: "train", Factors: c.factors, Sum: weighed.Priority()}}
		f, bad := format.Parse(prioColumns(), "%i|%A|%a|%B|%b|%F|%f|%J|%j|%P|%p|%Q|%q|%N|%r|%u|%Y|%y|%T|%t", "")
		if got := string(f.Row(nil, &row)); len(bad) > 0 || got != c.want {
			t.Errorf("%v\ngot  %s\nwant %s", bad, got, c.want)
		}
	}
}

// prioMux answers with three jobs, as the 22.05 did that printed testdata/sprio.txt: PriorityWeightJobSize=1000,
// -Partition=10, the resources below, eight nodes of 16 CPUs and 8 GPUs, partitions train and big with
// PriorityJobFactor 1 and 4.
func prioMux() *api.Mux {
	m := api.NewMux()
	api.Handle(m, api.ListPriorities, func(context.Context, api.Caller, api.AfterQuery) (out api.PrioritiesResponse, _ error) {
		out.Priority.Multifactor, out.TRESWeights = true, "CPU=5000,GRES/gpu=7000,Mem=3000"
		out.Priority.Weights = cluster.PriorityWeights{
			Size: 1000, Partition: 10,
			TRES: []cluster.Amount{{TRES: "cpu", N: 5000}, {TRES: "gres/gpu", N: 7000}, {TRES: "mem", N: 3000}},
		}
		add := func(id cluster.JobID, uid uint32, user, part string, nice int, f cluster.Factors) {
			f.Nice = nice
			j := &cluster.Job{ID: id, Spec: &cluster.JobSpec{User: user, UID: uid, Layout: &cluster.Layout{}}}
			out.Jobs = append(out.Jobs, api.JobPriority{
				Job: j, Partition: part, Factors: f, Sum: f.Weigh(&out.Priority.Weights).Priority(),
			})
		}
		tres := func(cpu, gpu, mem float64) []cluster.Amount {
			return []cluster.Amount{{TRES: "cpu", N: cpu}, {TRES: "gres/gpu", N: gpu}, {TRES: "mem", N: mem}}
		}
		add(71, 0, "root", "train", 0, cluster.Factors{Size: .09375, Partition: .25, TRES: tres(8./128, 0, 16./512)})
		add(72, 1, "daemon", "train", 7, cluster.Factors{
			Size: .0664062, Partition: .25, TRES: tres(1./128, 4./64, 2./512),
		})
		add(72, 1, "daemon", "big", 7, cluster.Factors{Size: .0664062, Partition: 1, TRES: tres(1./128, 4./64, 2./512)})
		add(73, 2, "bin", "big", 0, cluster.Factors{Size: .1875, Partition: 1, TRES: tres(32./128, 0, 128./512)})
		return out, nil
	})
	return m
}

// TestSprioGolden prints each line of testdata/sprio.txt, which a Slurm 22.05 printed of the same jobs (other
// numbers and users).
func TestSprioGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/sprio.txt")
	if err != nil {
		t.Fatal(err)
	}
	f := &slurmtest.Server{Own: prioMux()}
	dial := f.Dial(t)
	for _, part := range strings.Split(string(text), "$ sprio")[1:] {
		line, want, _ := strings.Cut(part, "\n")
		var both bytes.Buffer
		sys := &front.Sys{Prog: "sprio", Stdin: strings.NewReader(""), Stdout: &both, Stderr: &both, Dial: dial}
		if code := Sprio(sys, strings.Fields(line)); code != 0 {
			fmt.Fprintln(&both, "rc", code)
		}
		if got := both.String(); got != want {
			t.Errorf("sprio %s\n%swant\n%s", line, got, want)
		}
	}
}

// TestSprioPartitionsOfNone: an empty list of partitions lets no job through, as in Slurm 22.05.
func TestSprioPartitionsOfNone(t *testing.T) {
	dial := (&slurmtest.Server{Own: prioMux()}).Dial(t)
	for parts, some := range map[string]bool{"": false, "main,train,debug,wide": true} {
		var text bytes.Buffer
		sys := &front.Sys{Prog: "sprio", Stdin: strings.NewReader(""), Stdout: &text, Stderr: &text, Dial: dial}
		if code := Sprio(sys, []string{"-h", "-p", parts}); code != 0 || (text.Len() > 0) != some {
			t.Errorf("-p %q: %d %q", parts, code, text.String())
		}
	}
}
