package sched

import "testing"

// TestGPUsPerSocketAndJob: what each socket is to have is what there is; --gpus beside it adds nothing. So a Slurm
// 22.05 gives.
func TestGPUsPerSocketAndJob(t *testing.T) {
	for line, want := range map[string]int{
		"-n1 --gpus=3 --gpus-per-socket=2 --sockets-per-node=1":     2,
		"-N1 --gpus=3 --gpus-per-socket=2 --sockets-per-node=1":     2,
		"-N1 -n1 --gpus=4 --gpus-per-socket=2 --sockets-per-node=2": 4,
		"-N2 --gpus=3 --gpus-per-socket=2 --sockets-per-node=1":     4,
		"-N2-4 --gpus=6 --gpus-per-socket=2 --sockets-per-node=1":   4,
		"--gpus=4 --gpus-per-socket=2 --sockets-per-node=1":         4,
		"-n4 --gpus=6 --gpus-per-socket=2 --sockets-per-node=1":     6,
	} {
		b := namedBed(t, nil, machine(), machine(), machine(), machine())
		id := b.Submit(ask(t, line))
		b.ScheduleAll()
		j, _ := b.S.Job(id)
		got := 0
		if j.Alloc != nil {
			for _, sh := range j.Alloc.Shares {
				got += sh.GPUs.Len()
			}
		}
		if got != want {
			t.Errorf("%s: %d GPUs (%s), want %d", line, got, b.Got(id), want)
		}
	}
}
