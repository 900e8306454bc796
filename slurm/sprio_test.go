package slurm

import (
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
)

// TestSprioRounding has the figures of Slurm 22.05 (sprio -o): each factor is rounded, a half to the even number; the sum of
// them all is cut, and so is what %y shows, to 14 places, of the sum with its fraction.
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
		row := prioRow{w: &weights, weighed: weighed, JobPriority: &api.JobPriority{Job: &cluster.Job{ID: c.id, Spec: &cluster.JobSpec{User: c.user}},
			Partition: "train", Factors: c.factors, Sum: weighed.Priority()}}
		f, bad := format.Parse(prioColumns(), "%i|%A|%a|%B|%b|%F|%f|%J|%j|%P|%p|%Q|%q|%N|%r|%u|%Y|%y|%T|%t", "")
		if got := string(f.Row(nil, &row)); len(bad) > 0 || got != c.want {
			t.Errorf("%v\ngot  %s\nwant %s", bad, got, c.want)
		}
	}
}
