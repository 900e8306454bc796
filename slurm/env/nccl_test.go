package env

import (
	"strings"
	"testing"

	"dev.muster/cluster"
)

// rails is a node of four GPUs and four ports, one for each GPU, and a slower one for storage beside the first.
func rails() *cluster.Inventory {
	inv := &cluster.Inventory{Interface: "eth0"}
	for i := range 4 {
		inv.GPUs = append(inv.GPUs, cluster.GPU{Index: i, Minor: i, Number: i + 1})
		half := cluster.RangeIDSet(i/2*2, i/2*2+1).Minus(cluster.NewIDSet(i))
		inv.NICs = append(inv.NICs, cluster.NIC{Device: "mlx5_" + string(rune('0'+i)), Port: 1,
			State: cluster.PortActive, Rate: "400 Gb/sec (4X NDR)", Link: "InfiniBand",
			Near: []cluster.NearGPUs{
				{Distance: cluster.DistancePIX, GPUs: cluster.NewIDSet(i)},
				{Distance: cluster.DistanceNODE, GPUs: half},
			}})
	}
	inv.NICs = append(inv.NICs, cluster.NIC{Device: "mlx5_bond", Port: 1, State: cluster.PortActive,
		Rate: "100 Gb/sec (4X EDR)", Link: "Ethernet",
		Near: []cluster.NearGPUs{{Distance: cluster.DistancePIX, GPUs: cluster.NewIDSet(0)}}})
	return inv
}

// TestNCCL: a task is told the active ports nearest to its GPUs; NCCL is if asked, and what the user set stays.
func TestNCCL(t *testing.T) {
	down := rails()
	down.NICs[1].State = "DOWN"
	unknown := rails()
	for i := range unknown.NICs {
		unknown.NICs[i].Near = nil
	}
	const first = "MUSTER_NCCL_IB_HCA==mlx5_0:1 MUSTER_NCCL_NET_GDR_LEVEL=PIX MUSTER_NCCL_SOCKET_IFNAME==eth0"
	const filled = "MUSTER_NCCL_IB_HCA==mlx5_0:1 NCCL_IB_HCA==mlx5_0:1 MUSTER_NCCL_NET_GDR_LEVEL=PIX MUSTER_NCCL_SOCKET_IFNAME==eth0 NCCL_SOCKET_IFNAME==eth0"
	for _, c := range []struct {
		name           string
		inv            *cluster.Inventory
		gpus           cluster.IDSet
		job, step, all bool
		own            string
		want           string
	}{
		{name: "one GPU", inv: rails(), gpus: cluster.NewIDSet(0), want: first},
		{
			name: "two", inv: rails(), gpus: cluster.NewIDSet(1, 3),
			want: "MUSTER_NCCL_IB_HCA==mlx5_1:1,mlx5_3:1 MUSTER_NCCL_NET_GDR_LEVEL=PIX MUSTER_NCCL_SOCKET_IFNAME==eth0",
		},
		{
			name: "its port is down", inv: down, gpus: cluster.NewIDSet(1),
			want: "MUSTER_NCCL_IB_HCA==mlx5_0:1 MUSTER_NCCL_NET_GDR_LEVEL=NODE MUSTER_NCCL_SOCKET_IFNAME==eth0",
		},
		{name: "no GPU", inv: rails()},
		{name: "places not known", inv: unknown, gpus: cluster.NewIDSet(0), want: "MUSTER_NCCL_SOCKET_IFNAME==eth0"},
		{name: "asked by the job", inv: rails(), gpus: cluster.NewIDSet(0), job: true, want: filled},
		{name: "asked by the step", inv: rails(), gpus: cluster.NewIDSet(0), step: true, want: filled},
		{name: "by the configuration", inv: rails(), gpus: cluster.NewIDSet(0), all: true, want: filled},
		{
			name: "the user's wins", inv: rails(), gpus: cluster.NewIDSet(0), job: true,
			own: "NCCL_IB_HCA=mlx5_2\x00NCCL_SOCKET_IFNAME=ib0", want: first,
		},
		{name: "the script's is narrowed", inv: rails(), gpus: cluster.NewIDSet(0), job: true,
			own:  "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\x00MUSTER_NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\x00NCCL_SOCKET_IFNAME=ib0",
			want: strings.TrimSuffix(filled, " NCCL_SOCKET_IFNAME==eth0")},
	} {
		l := &cluster.Launch{
			Job: &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}, Spec: &cluster.StepSpec{},
			Config: &cluster.Config{JobDefaults: cluster.JobDefaults{NCCLEnv: c.all}}, Inventory: c.inv,
			GPUs: cluster.GPUBinding{GPUs: c.gpus}, Own: cluster.BlobText(c.own),
		}
		l.Job.Spec.NCCLEnv, l.Spec.NCCLEnv = c.job, c.step
		var e list
		e.nccl(l)
		if got := strings.Join(e, " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestRASAddr: the tasks of a job with GPUs get an address for NCCL's RAS, another one than those of the next job; what
// the user has chosen stays, and what came from another job's script does not.
func TestRASAddr(t *testing.T) {
	for _, c := range []struct {
		name string
		id   cluster.JobID
		gpus cluster.IDSet
		own  string
		want string
	}{
		{"none", 7, cluster.IDSet{}, "", ""},
		{"own port", 7, cluster.NewIDSet(0), "", "NCCL_RAS_ADDR=127.0.0.1:28107"},
		{"next job", 8, cluster.NewIDSet(0), "", "NCCL_RAS_ADDR=127.0.0.1:28108"},
		{"chosen", 7, cluster.NewIDSet(0), "NCCL_RAS_ADDR=localhost:9999", ""},
		{"of another job", 7, cluster.NewIDSet(0), "NCCL_RAS_ADDR=127.0.0.1:28200", "NCCL_RAS_ADDR=127.0.0.1:28107"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e list
			e.rasAddr(&cluster.Launch{
				Job: &cluster.Job{ID: c.id}, GPUs: cluster.GPUBinding{GPUs: c.gpus}, Own: cluster.BlobText(c.own),
			})
			if got := strings.Join(e, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
