package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// gpuProduct is a folder with the product as make build makes it with a C compiler, muster, and the stand-in for
// NVIDIA's library, libnvidia-ml.so.1. Without a compiler there is neither, and why is told.
var gpuProduct = sync.OnceValues(func() (string, error) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(bin, "gpu")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	root, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	run := func(env, name string, args ...string) error {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), env)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %q: %w\n%s", name, args, err, out)
		}
		return nil
	}
	for _, helper := range []string{"gpu", "pmi"} {
		if err := run("CGO_ENABLED=1", "go", "build", "-o", dir+"/"+helper, "../"+helper+"/helper"); err != nil {
			return "", err
		}
	}
	overlay := fmt.Sprintf(`{"Replace": {%q: %q, %q: %q}}`, root+"/gpu/bin/muster-gpu", dir+"/gpu", root+"/pmi/pmix/bin/muster-pmix", dir+"/pmi")
	if err := os.WriteFile(dir+"/overlay.json", []byte(overlay), 0o644); err != nil {
		return "", err
	}
	if err := build(dir+"/muster", "-tags", "carrygpu,carrypmix", "-overlay", dir+"/overlay.json"); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		return "", fmt.Errorf("find nvml.h: %w", err)
	}
	argv := []string{"-shared", "-fPIC", "-O2", "-I", strings.TrimSpace(string(out)) + "/pkg/nvml", "nvml/nvml.c", "-o"}
	if err := run("", cc, append(argv, dir+"/libnvidia-ml.so.1")...); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir+"/old", 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(dir+"/old/exports", []byte("{ global: "+strings.Join(universal, "; ")+"; local: *; };"), 0o644); err != nil {
		return "", err
	}
	return dir, run("", cc, append(argv, dir+"/old/libnvidia-ml.so.1", "-Wl,--version-script="+dir+"/old/exports")...)
})

// universal are functions that every driver's library has; a second stand-in has no others.
var universal = []string{"nvmlInit_v2", "nvmlShutdown", "nvmlErrorString", "nvmlDeviceGetCount_v2",
	"nvmlDeviceGetHandleByIndex_v2",
	"nvmlDeviceGetName", "nvmlDeviceGetUUID"}

// gpus is a daemon on this machine whose GPUs a file tells.
type gpus struct {
	*dev
	file string
}

// startGPUs starts muster dev, which is this machine, with the GPUs that lines tell (e2e/nvml/nvml.c).
func startGPUs(t *testing.T, lines string, args ...string) *gpus {
	t.Helper()
	product, err := gpuProduct()
	if product == "" {
		t.Skip("the stand-in library cannot be built: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := newDev(t, dir, "dev", append([]string{"--node", "n1", "--gpu-every", "500ms"}, args...))
	d.exe = product + "/muster"
	g := &gpus{d, dir + "/gpus"}
	g.set(lines)
	d.inside = []string{"env", "LD_LIBRARY_PATH=" + product, "STANDIN_NVML=" + g.file}
	t.Cleanup(d.cleanup)
	d.start()
	d.wait("the node", func() bool {
		out, _, code := d.run("sinfo", "-h", "-o", "%T")
		return code == 0 && out != "" && !strings.HasPrefix(out, "unknown") // it may have a name before it has registered
	})
	return g
}

// set replaces the file at once.
func (g *gpus) set(lines string) {
	g.t.Helper()
	if err := os.WriteFile(g.file+".new", []byte(lines), 0o644); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Rename(g.file+".new", g.file); err != nil {
		g.t.Fatal(err)
	}
}

// node is what sinfo says of the node: state, GRES and reason.
func (g *gpus) node() string { return strings.TrimSpace(g.must("sinfo", "-h", "-N", "-o", "%t|%G|%E")) }

// h100 are so many H100s on NVSwitches.
func h100(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b,
			"gpu %d name NVIDIA H100 80GB HBM3\ngpu %d uuid GPU-%08d-1111-2222-3333-444455556666\ngpu %d bus 00000000:%02X:00.0\ngpu %d minor %d\ngpu %d mem 81559\n",
			i, i, i, i, 0x1b+i, i, i, i)
		for l := range 18 {
			fmt.Fprintf(&b, "link %d %d 1 00000000:%02X:00.0 switch\n", i, l, 5+l%4)
		}
	}
	return b.String()
}

// mixed are two A100s, the first in slices.
const mixed = `gpu 0 name NVIDIA A100-SXM4-40GB
gpu 0 uuid GPU-a
gpu 0 bus 00000000:07:00.0
gpu 0 mem 40960
gpu 0 mig 1
mig 0 0 2 0 19968 MIG-a1 3g.20gb
mig 0 1 9 0 4864 MIG-a2 1g.5gb
mig 0 2 10 0 4864 MIG-a3 1g.5gb
gpu 1 name NVIDIA A100-SXM4-40GB
gpu 1 uuid GPU-b
gpu 1 bus 00000000:0F:00.0
gpu 1 minor 1
gpu 1 mem 40960
`

// TestGPUFound: GPUs appear without any configuration and jobs get their own.
func TestGPUFound(t *testing.T) {
	t.Parallel()
	g := startGPUs(t, h100(8))
	expect(t, "the node", g.node(), "idle|gpu:h100:8|none")
	expect(t, "one", g.must("srun", "--gres=gpu:h100:1", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"), "0")
	g.wait("its GPU to be free", func() bool { return g.must("squeue", "-h") == "" })
	expect(t, "three", g.must("srun", "--gpus=3", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"), "0,1,2")
	if text := g.must("scontrol", "show", "node", "n1"); !strings.Contains(text, "Gres=gpu:h100:8\n") || !strings.Contains(text, "gres/gpu=8,gres/gpu:h100=8") {
		t.Error(text)
	}
	if table := g.table(); !strings.Contains(table, "h100") || !strings.Contains(table, "0000:1b:00.0") || !strings.Contains(table, "18, switched") {
		t.Errorf("muster gpu:\n%s", table)
	}
}

// table is what muster gpu prints.
func (g *gpus) table() string {
	g.t.Helper()
	cmd := exec.Command(g.exe, "gpu")
	cmd.Env = append(os.Environ(), g.inside[1:]...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("muster gpu: %v\n%s", err, out)
	}
	return string(out)
}

// TestGPUOldDriver: a library that lacks nearly every function, which would kill the process that calls one, tells
// what it can.
func TestGPUOldDriver(t *testing.T) {
	t.Parallel()
	product, err := gpuProduct()
	if err != nil {
		t.Skip("the stand-in library cannot be built: ", err)
	}
	file := filepath.Join(t.TempDir(), "gpus")
	if err := os.WriteFile(file, []byte(h100(2)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(product+"/muster", "gpu")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+product+"/old", "STANDIN_NVML="+file)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "NVIDIA H100 80GB HBM3") != 2 || !strings.Contains(string(out), "GPU-00000001-1111") {
		t.Errorf("muster gpu: %v\n%s", err, out)
	}
}

// TestGPUSlices: slices are devices of their own type, and jobs get them by UUID.
func TestGPUSlices(t *testing.T) {
	t.Parallel()
	g := startGPUs(t, mixed)
	expect(t, "the node", g.node(), "idle|gpu:a100_3g.20gb:1,gpu:a100_1g.5gb:2,gpu:a100:1|none")
	for kind, want := range map[string]string{
		"a100_3g.20gb:1": "MIG-a1", "a100_1g.5gb:2": "MIG-a2,MIG-a3", "a100:1": "GPU-b",
	} {
		expect(t, kind, g.must("srun", "--gres=gpu:"+kind, "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"), want)
	}
	out := g.must("sbatch", "--wait", "--parsable", "--gres=gpu:a100_3g.20gb:1", "-o", "out", "--wrap",
		"echo $CUDA_VISIBLE_DEVICES")
	expect(t, "a batch job "+out, strings.TrimSpace(g.read("out")), "MIG-a1")
}

// TestGPUFault: an XID drains the node within seconds and says which GPU and why; the job that holds the GPU is ended,
// others go on.
func TestGPUFault(t *testing.T) {
	t.Parallel()
	g := startGPUs(t, h100(2))
	submit := func(requeue string) string {
		return g.must("sbatch", "--parsable", requeue, "--gpus=1", "-c1", "--mem=10", "-o", "/dev/null",
			"--wrap", "sleep 600")
	}
	first, second := submit("--no-requeue"), submit("--requeue")
	g.wait("the jobs", func() bool { return strings.Count(g.must("squeue", "-h", "-t", "R", "-o", "%i"), "\n") == 1 })
	begun := time.Now()
	g.set(h100(2) + "xid 1 1 79\n")
	g.wait("the drain", func() bool { return strings.HasPrefix(g.node(), "dr") })
	if took := time.Since(begun); took > patience(10*time.Second) {
		t.Errorf("an XID drains the node after %v", took)
	}
	if n := g.node(); !strings.Contains(n, "GPU 1 (GPU-00000001-1111-2222-3333-444455556666 0000:1c:00.0): XID 79: GPU has fallen off the bus") {
		t.Errorf("the reason: %s", n)
	}
	g.wait("the second job's requeue",
		func() bool { return strings.HasPrefix(g.must("squeue", "-h", "-j", second, "-o", "%t"), "PD") })
	expect(t, "the first job", g.must("squeue", "-h", "-j", first, "-o", "%t"), "R")
	if v := g.must("sacct", "-nXPD", "-j", second, "-o", "State,Verdict,BlameNode"); !strings.Contains(v, "|platform: n1: GPU 1 (GPU-00000001-1111-2222-3333-444455556666 0000:1c:00.0): XID 79: GPU has fallen off the bus|n1\n") {
		t.Errorf("the verdict on its first attempt: %s", v)
	}
	if why := g.must("muster", "why", second); !strings.Contains(why, "last attempt               platform: n1: GPU 1") {
		t.Errorf("why the second job waits again:\n%s", why)
	}
	g.must("scontrol", "update", "node=n1", "state=resume")
	g.must("scancel", first, second)

	g.set(strings.Replace(h100(2), "gpu 1 mem", "gpu 1 ecc_unc 3\ngpu 1 mem", 1)) // without the first event: the counter speaks
	g.wait("the second drain", func() bool { return strings.Contains(g.node(), "3 uncorrected ECC errors") })
	g.must("scontrol", "update", "node=n1", "state=resume")
	g.set(h100(2) + "gpu 1 lost 1\n")
	g.wait("the third drain", func() bool { return strings.Contains(g.node(), "GPU is lost") })
	expect(t, "what is left", strings.Split(g.node(), "|")[1], "gpu:h100:1")
}

// helpers are the processes of the GPU helper of a daemon.
func (g *gpus) helpers() (pids []string) {
	procs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range procs {
		env, err := os.ReadFile(p)
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), "STANDIN_NVML="+g.file) {
			continue
		}
		if name, _ := os.ReadFile(filepath.Dir(p) + "/cmdline"); strings.HasPrefix(string(name), "muster-gpu\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(p)))
		}
	}
	return pids
}

// TestGPUHang: a library that hangs holds up nobody: the daemon serves on, the helper is killed, and the node
// drains until the GPUs answer again.
func TestGPUHang(t *testing.T) {
	t.Parallel()
	g := startGPUs(t, h100(2))
	before := g.helpers()
	if len(before) != 1 {
		t.Fatalf("helpers: %v", before)
	}
	g.set("hang 3600000\n" + h100(2))
	end := time.Now().Add(patience(time.Minute))
	for served := time.Now(); !strings.Contains(g.node(),
		"GPUs unknown: no answer of the GPU helper within 5s, 3 times in a row"); time.Sleep(50 * time.Millisecond) {
		if d := time.Since(served); d > patience(5*time.Second) {
			t.Errorf("sinfo took %v", d)
		}
		if served = time.Now(); served.After(end) {
			t.Fatalf("no reason after a minute: %s", g.node())
		}
	}
	if err := syscall.Kill(count(before[0]), 0); err == nil {
		t.Errorf("the helper %s lives on", before[0])
	}
	expect(t, "the devices", strings.Split(g.node(), "|")[1], "gpu:h100:2")
	g.set(h100(2))
	g.wait("the return", func() bool { return g.node() == "idle|gpu:h100:2|none" })
}

// TestGPUDriver: a driver that does not fit the library, or is not loaded, is the node's reason.
func TestGPUDriver(t *testing.T) {
	t.Parallel()
	g := startGPUs(t, "init 18\n"+h100(2))
	expect(t, "the node", g.node(), "drain|(null)|NVML: the NVIDIA driver and its library are of different versions")
	g.set(h100(2))
	g.wait("the GPUs", func() bool { return g.node() == "idle|gpu:h100:2|none" })
	g.set("init 9\n" + h100(2))
	g.wait("the driver's end",
		func() bool { return g.node() == "drain|gpu:h100:2|NVML: the NVIDIA driver is not loaded" })
}

// TestGPUDeclared: gres.conf is compared with what is found; a wrong line is a reason, not a lost node, and a new
// configuration is compared at once.
func TestGPUDeclared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(gres string) {
		t.Helper()
		for name, text := range map[string]string{
			"slurm.conf": "ClusterName=c\nGresTypes=gpu\nNodeName=n1 Gres=gpu:h100:4\nPartitionName=p Nodes=n1 Default=YES\n",
			"gres.conf":  gres,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("AutoDetect=nvml\nName=gpu Type=h100 File=/dev/nvidia[0-3]\n")
	g := startGPUs(t, h100(4), "--conf", dir+"/slurm.conf")
	expect(t, "the same twice", g.node(), "idle|gpu:h100:4|none")
	for _, c := range []struct{ gres, want string }{
		{
			"Name=gpu Type=a100 File=/dev/nvidia[0-3]\n",
			"idle|gpu:h100:4|gres.conf:1: Type=a100, found h100 at /dev/nvidia0,/dev/nvidia1,/dev/nvidia2,/dev/nvidia3",
		},
		{"Name=gpu Type=h100 File=/dev/nvidia[2-3]\n", "idle|gpu:h100:2|none"},
		{"AutoDetect=nvml\nName=shard Count=16 File=/dev/nvidia[0-3]\n", "idle|gpu:h100:4,shard:16|none"},
		{"Name=gpu Type=h100 File=/dev/nvidia[2-3]\n", "idle|gpu:h100:2|none"},
	} {
		write(c.gres)
		g.must("scontrol", "reconfigure")
		g.wait(c.want, func() bool { return g.node() == c.want })
	}
	expect(t, "a job", g.must("srun", "--gpus=1", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"),
		"GPU-00000002-1111-2222-3333-444455556666")
}

// TestGPULeft: a node is done with a job when nothing of it is on its GPUs any more. A process that stays drains
// the node with its GPU and process id until it is gone; what has got out of a user's job is killed.
func TestGPULeft(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("jobs of others need root")
	}
	g := startGPUs(t, h100(2))
	stays := func(uid uint32) (cmd *exec.Cmd, line string) {
		cmd = exec.Command("sleep", "600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd, fmt.Sprintf("proc 1 %d 20000 0\n", cmd.Process.Pid)
	}
	run := func(uid uint32) (end func()) {
		id := g.submitAs(uid, "--gpus=2", "-c1", "--mem=10", "--wrap", "sleep 600")
		g.wait("the job", func() bool { return g.must("squeue", "-h", "-o", "%t") == "R" })
		return func() {
			g.must("scancel", id)
			g.wait("its end", func() bool { return g.must("squeue", "-h") == "" })
		}
	}
	end := run(daemonUID)
	other, line := stays(0)
	g.set(h100(2) + line)
	end()
	expect(t, "a process that stays", g.node(),
		fmt.Sprintf("drain|gpu:h100:2|GPU 1 (GPU-00000001-1111-2222-3333-444455556666): process %d (sleep, user 0) of job 1 still holds 20000 MB",
			other.Process.Pid))
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	g.wait("the return", func() bool { return g.node() == "idle|gpu:h100:2|none" })

	end = run(daemonUID)
	own, line := stays(daemonUID)
	g.set(h100(2) + line)
	go func() { _ = own.Wait() }()
	end()
	g.wait("its process to be killed", func() bool { return syscall.Kill(own.Process.Pid, 0) == syscall.ESRCH })
	expect(t, "the node", g.node(), "idle|gpu:h100:2|none")
	begun := time.Now()
	g.must("srun", "--gpus=2", "true")
	t.Logf("a job on free GPUs takes %v", time.Since(begun))
}
