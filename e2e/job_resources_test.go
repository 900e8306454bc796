package e2e

import (
	"encoding/json"
	"testing"
)

// TestJobResources: what a job was given is in its object, core by core, until it leaves the queue. torchx reads it of
// jobs that have ended.
func TestJobResources(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	held := d.must("sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "true")
	ended := d.must("sbatch", "--parsable", "-n3", "--mem=100", "-o", "/dev/null", "--wrap", "true")
	d.wait("the job to end", func() bool { return d.must("squeue", "-h", "-t", "CD", "-j", ended, "-o", "%t") == "CD" })
	running := d.must("sbatch", "--parsable", "-n3", "--mem=100", "-o", "/dev/null", "--wrap", "sleep 600")
	d.wait("the job to run", func() bool { return d.must("squeue", "-h", "-j", running, "-o", "%t") == "R" })
	for job, want := range map[string]int{held: 0, ended: 3, running: 3} {
		var got struct {
			Jobs []struct {
				Resources *struct {
					Nodes struct {
						Allocation []struct {
							Sockets []struct{ Cores []struct{ Status []string } }
						}
					}
				} `json:"job_resources"`
			}
		}
		if err := json.Unmarshal([]byte(d.must("squeue", "-t", "all", "-j", job, "--json")), &got); err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		if r := got.Jobs[0].Resources; r != nil {
			for _, s := range r.Nodes.Allocation[0].Sockets {
				for _, c := range s.Cores {
					count[c.Status[0]]++
				}
			}
		}
		rest := 8 - want
		if want == 0 {
			rest = 0
		}
		if count["ALLOCATED"] != want || count["UNALLOCATED"] != rest {
			t.Errorf("job %s: %v, want %d", job, count, want)
		}
	}
}
