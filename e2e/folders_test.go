package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startPrivate starts a node whose jobs have folders of their own, from a folder that they can see.
func startPrivate(t *testing.T, slurm string, args ...string) (d *dev, base string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("folders of a job's own need root")
	}
	dir, err := os.MkdirTemp("/var/tmp", "m")
	if err != nil {
		t.Fatal(err)
	}
	base = dir + "/jobs"
	for name, text := range map[string]string{
		"slurm.conf":         "ClusterName=c\nNodeName=n1 RealMemory=1000\nPartitionName=p Nodes=ALL Default=YES\nJobContainerType=job_container/tmpfs\n" + slurm,
		"job_container.conf": "AutoBasePath=true\nBasePath=" + base + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(filepath.Join(bin, "muster"))
	if err == nil {
		err = os.WriteFile(dir+"/srun", program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	d = startDevAt(t, dir, append([]string{
		"--node", "n1", "--gpu-every", "50ms", "--conf", dir + "/slurm.conf",
	}, args...)...)
	d.env = append(d.env, "PATH="+dir+":"+os.Getenv("PATH"))
	return d, base
}

// TestPrivateFolders: whichever way a process is started, it sees its job's /tmp and /dev/shm and nobody else's;
// with the job they are gone.
func TestPrivateFolders(t *testing.T) {
	t.Parallel()
	d, base := startPrivate(t, "LaunchParameters=remove_ipc\n")
	mine := fmt.Sprintf("muster-%d", os.Getpid())
	d.write("job.sh", "#!/bin/sh\ntouch /tmp/"+mine+" /dev/shm/"+mine+"\n"+
		"srun ls /tmp /dev/shm\necho ready >"+d.dir+"/ready\nuntil [ -e "+d.dir+"/go ]; do sleep 0.05; done\n")
	job := d.must("sbatch", "--parsable", "-o", d.dir+"/out", "-c1", "--mem=10", "job.sh")
	d.wait("the job", func() bool { return d.soFar("ready") != "" })
	want := "/dev/shm:\n" + mine + "\n\n/tmp:\n" + mine
	expect(t, "a step of the job", strings.TrimSpace(d.read("out")), want)
	expect(t, "a step beside it", d.must("srun", "--jobid", job, "--overlap", "ls", "/tmp", "/dev/shm"), want)
	if out := d.must("srun", "--jobid", job, "--overlap", "--pty", "ls", "/tmp"); !strings.Contains(out, mine) {
		t.Errorf("a terminal: %q", out)
	}
	expect(t, "another job", d.must("srun", "-c1", "--mem=10", "ls", "/tmp", "/dev/shm"), "/dev/shm:\n\n/tmp:")
	if _, err := os.Stat("/tmp/" + mine); !os.IsNotExist(err) {
		t.Error("the machine sees it:", err)
	}
	d.kill()
	d.start()
	d.wait("the daemon", func() bool { _, _, code := d.run("squeue"); return code == 0 })
	d.wait("a step after a restart", func() bool {
		out, _, _ := d.run("srun", "--jobid", job, "--overlap", "ls", "/tmp")
		return strings.TrimSpace(out) == mine
	})
	d.write("go", "")
	d.wait("its end", func() bool { return d.must("squeue", "-h") == "" })
	d.wait("its folders to be gone", func() bool {
		left, _ := filepath.Glob(base + "/*")
		return len(left) == 0
	})
	expect(t, "between the steps of an allocation",
		d.must("salloc", "-Q", "sh", "-c", "srun touch /tmp/a /dev/shm/b; srun ls /tmp /dev/shm"),
		"/dev/shm:\nb\n\n/tmp:\na")
}

// TestRemoveIPC: what a user's jobs leave in memory goes with the last of them on the node.
func TestRemoveIPC(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ipcmk"); err != nil || os.Getuid() != 0 {
		t.Skip("needs root and ipcmk")
	}
	const nobody = 65534
	d := startDev(t, "--node", "n1", "--conf",
		writeFile(t, "slurm.conf",
			"ClusterName=c\nNodeName=n1 RealMemory=1000\nPartitionName=p Nodes=ALL Default=YES\nLaunchParameters=remove_ipc\n"))
	file := fmt.Sprintf("/dev/shm/muster-%d", os.Getpid())
	left := func() (n int) {
		for _, kind := range []string{"shm", "msg", "sem"} {
			table, err := os.ReadFile("/proc/sysvipc/" + kind)
			if err != nil {
				t.Fatal(err)
			}
			n += strings.Count(string(table), fmt.Sprint(" ", nobody, " ", nobody, " ", nobody, " "))
		}
		if _, err := os.Stat(file); err == nil {
			n++
		}
		return n
	}
	stays := d.submitAs(nobody, "-c1", "--mem=10", "--wrap", "sleep 600")
	d.submitAs(nobody, "-W", "-c1", "--mem=10", "--wrap", "ipcmk -M 100 -Q -S 1 && touch "+file)
	expect(t, "while another job of the user is there", fmt.Sprint(left()), "4")
	d.must("scancel", stays)
	d.wait("all to be gone", func() bool { return left() == 0 })
}

// TestSharedFolders: a node whose jobs cannot have folders of their own says so, and why.
func TestSharedFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"slurm.conf":         "ClusterName=c\nNodeName=n1\nPartitionName=p Nodes=ALL Default=YES\nJobContainerType=job_container/tmpfs\n",
		"job_container.conf": "BasePath=/var/tmp/jobs\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := startDev(t, "--node", "n1", "--gpu-every", "50ms", "--conf", dir+"/slurm.conf") // its data lies in /tmp
	why := fmt.Sprintf("n1 job_container/tmpfs: jobs share /tmp and /dev/shm: %s/d/spool, which jobs need, lies in /tmp",
		d.dir)
	if os.Getuid() != 0 {
		why = "n1 job_container/tmpfs: jobs share /tmp and /dev/shm: the client does not run as root"
	}
	d.wait("the reason", func() bool { return d.must("sinfo", "-h", "-R", "-o", "%N %E") == why })
	expect(t, "a job", d.must("srun", "ls", "-d", d.dir), d.dir)
}
