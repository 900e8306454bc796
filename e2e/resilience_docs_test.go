package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestResilienceDocs runs each script of docs/resilience.md as it stands, with stand-ins for the launchers and the
// programs, and does to the job what the script is for.
func TestResilienceDocs(t *testing.T) {
	t.Parallel()
	scripts := scriptsOf(t, "../docs/resilience.md")
	rows := []struct {
		name string
		of   string // a word of the script
		hit  func(d *dev, id string)
		want []string
	}{
		{"once", "master-port=29500 train.py", nil, []string{"rank 0 of 2, restart 0\n", "rank 1 of 2, restart 0\n"}},
		{"once", "ft_launcher", nil, []string{"rank 0 of 2, restart 0\n", "rank 1 of 2, restart 0\n"}},
		{"plain", "--save-when", func(d *dev, id string) { d.must("scancel", "--batch", "--signal=USR1", id) },
			[]string{"saves\n"}},
		{"lightning", "SIGUSR1@90", func(d *dev, id string) { d.must("scancel", "--signal=USR1", id) },
			[]string{"saves\n", "rank 0 of 2, restart 1\n", "rank 1 of 2, restart 1\n"}},
		{"megatron", "pretrain_gpt.py", func(d *dev, id string) {
			d.waitCheckpoint(id)
			d.must("scontrol", "update", "job", id, "EndTime=now")
		}, []string{"rank 0 of 2, restart 1\n", "rank 1 of 2, restart 1\n"}},
		{"deepspeed", "--deepspeed", func(d *dev, id string) {
			d.waitCheckpoint(id)
			d.must("scontrol", "requeue", id)
		}, []string{"rank 0 of 4, restart 1\n", "rank 3 of 4, restart 1\n"}},
	}
	if len(scripts) != len(rows) {
		t.Fatalf("%d scripts, want %d: add a row", len(scripts), len(rows))
	}
	for i, c := range rows {
		t.Run(c.of, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(scripts[i], c.of) {
				t.Fatalf("script %d is another one:\n%s", i, scripts[i])
			}
			d := startDev(t, "--hollow", "3x4c8g", "--hollow-exec")
			d.stand(t, "train.py", "pretrain_gpt.py")
			d.write("job.sh", scripts[i])
			id := strings.TrimSpace(d.shell("TRAIN=" + c.name + " PATH=$PWD/bin:$PATH sbatch --parsable -o out job.sh"))
			if c.hit != nil {
				d.wait("the ranks", func() bool { return strings.Contains(d.soFar("out"), "rank 0 of ") })
				c.hit(d, id)
			}
			d.wait("the job to be over", func() bool {
				states := strings.Fields(d.must("sacct", "-nXPD", "-j", id, "-o", "state"))
				return len(states) > 0 && states[len(states)-1] == "COMPLETED"
			})
			for _, want := range c.want {
				if !strings.Contains(d.soFar("out"), want) {
					t.Errorf("no %q in:\n%s", want, d.soFar("out"))
				}
			}
		})
	}
}

// scriptsOf lists the scripts of a page.
func scriptsOf(t *testing.T, page string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(text), "```") {
		if body := strings.TrimPrefix(part, "\n"); i%2 == 1 && strings.HasPrefix(body, "#!/bin/bash\n") {
			list = append(list, body)
		}
	}
	return list
}

// stand puts the stand-ins for launchers into the folder bin, and the program under its names into the job's folder.
func (d *dev) stand(t *testing.T, programs ...string) {
	t.Helper()
	if err := os.MkdirAll(d.dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"torchrun", "ft_launcher"} {
		text, err := os.ReadFile("testdata/train/" + name)
		if err != nil {
			t.Fatal(err)
		}
		d.write("bin/"+name, string(text))
		if err := os.Chmod(d.dir+"/bin/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("testdata/train/resumes.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		d.write(name, string(text))
	}
}

// waitCheckpoint waits until the servers know of a checkpoint of a job.
func (d *dev) waitCheckpoint(id string) {
	d.wait("a checkpoint", func() bool { return strings.Contains(d.must("scontrol", "show", "job", id), " Checkpoints=") })
}
