package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Garbage on the socket disturbs nobody.
func TestGarbage(t *testing.T) {
	d := startDev(t)
	rnd := rand.NewChaCha8([32]byte{1})
	heads := []string{"", "GET / HTTP/1.1\r\n", "POST /v1/jobs/submit HTTP/1.1\r\nContent-Length: 20\r\n\r\n",
		"POST /v1/jobs/submit HTTP/1.1\r\nHost: m\r\nContent-Length: 5\r\n\r\n{{{{{",
		"GET /v1/jobs?q=%7B%7B HTTP/1.1\r\nHost: m\r\n\r\n",
		"POST /v1/steps/attach HTTP/1.1\r\nHost: m\r\nUpgrade: x\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\n{}",
		"POST /v1/nodes/report HTTP/1.1\r\nHost: m\r\nContent-Length: 60\r\n\r\n{\"reports\":[{\"node\":\"x\",\"seq\":1,\"updates\":[{\"kind\":\"?\"}]}]}   "}
	for i := range 40 {
		c, err := net.Dial("unix", d.dir+"/s")
		if err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
		junk := make([]byte, 512)
		_, _ = rnd.Read(junk)
		_, _ = c.Write(append([]byte(heads[i%len(heads)]), junk...))
		_ = c.Close()
	}
	expect(t, "a job after that", d.must("srun", "echo", "fine"), "fine")
}

func TestRoughJobs(t *testing.T) {
	d := startDev(t)
	d.must("sbatch", "-o", "/proc/self/no/such/out", "--wrap", "true")
	d.wait("the job that cannot write", func() bool {
		return d.must("sacct", "-nXP", "-j", "1", "-o", "State,ExitCode") == "FAILED|0:53"
	})
	if err := os.Mkdir(d.dir+"/gone", 0o755); err != nil {
		t.Fatal(err)
	}
	id := d.must("sbatch", "--parsable", "-H", "-D", d.dir+"/gone", "-o", d.dir+"/chdir.out", "--wrap", "pwd")
	if err := os.Remove(d.dir + "/gone"); err != nil {
		t.Fatal(err)
	}
	d.must("scontrol", "release", id)
	d.wait("the job without its folder",
		func() bool { return d.must("sacct", "-nXP", "-j", id, "-o", "State") == "COMPLETED" })
	if got := d.read("chdir.out"); !strings.Contains(got, "couldn't chdir to") || !strings.HasSuffix(got, "/tmp\n") {
		t.Errorf("a vanished working directory: %q", got)
	}
	id = d.must("sbatch", "--parsable", "-o", "new/dir/%j/out", "--wrap", "echo made")
	d.wait("the made folder",
		func() bool { b, _ := os.ReadFile(d.dir + "/new/dir/" + id + "/out"); return string(b) == "made\n" })
}

// An array of a million tasks is one record: submitted, listed and cancelled in no time.
func TestMillionTasks(t *testing.T) {
	d := startDev(t)
	began := time.Now()
	id := d.must("sbatch", "--parsable", "--array=0-999999", "-H", "-o", "/dev/null", "--wrap", "true")
	expect(t, "squeue", d.must("squeue", "-h", "-j", id, "-o", "%i"), id+"_[0-999999]")
	d.must("scancel", id)
	expect(t, "after scancel", d.must("squeue", "-h"), "")
	t.Logf("a million tasks submitted, listed and cancelled in %v", time.Since(began))
}

func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can submit for others")
	}
	d := startDev(t)
	if err := os.Chmod(d.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	d.must("sbatch", "-W", "--uid=nobody", "-o", d.dir+"/who/%j.out", "--wrap",
		"id -un; stat -c %U who 2>/dev/null || stat -c %U "+d.dir+"/who")
	expect(t, "runs as the user, who owns the made folder", d.read("who/1.out"), "nobody\nnobody\n")
	_, errs, code := d.run("sbatch", "--uid=4242424", "-o", "/dev/null", "--wrap", "true")
	if code == 0 || errs == "" {
		t.Errorf("a user that does not exist: exit code %d, %q", code, errs)
	}
	// The other way round: an ordinary user may not touch root's job.
	id := d.must("sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "true")
	cmd := exec.Command(bin+"/scancel", id)
	cmd.Env, cmd.Dir = d.env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Access/permission denied") || cmd.ProcessState.ExitCode() != 210 {
		t.Errorf("scancel of another's job: %v, %q", err, out)
	}
}

// A full disk refuses what cannot be kept and loses nothing that was acknowledged.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	small, err := os.MkdirTemp("", "f")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(small)
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	defer syscall.Unmount(small, syscall.MNT_DETACH)
	d := startDevAt(t, small)
	d.must("sbatch", "-H", "-o", "/dev/null", "--wrap", "true")
	if err := os.WriteFile(small+"/fill", make([]byte, 16<<20), 0o600); err == nil {
		t.Fatal("the disk did not fill up")
	}
	script := "#!/bin/sh\n" + strings.Repeat("# padding\n", 200_000)
	refused := false
	for i := range 8 {
		_, errs, code := d.input(fmt.Sprintf("%s# %d\n", script, i), "sbatch", "-H", "-o", "/dev/null")
		if code != 0 {
			refused = true
			if !strings.Contains(errs, "sbatch: error: ") {
				t.Errorf("refused without a word: %q", errs)
			}
			break
		}
	}
	if !refused {
		t.Error("a full disk refused nothing")
	}
	if err := os.Remove(small + "/fill"); err != nil {
		t.Fatal(err)
	}
	d.kill()
	d.start()
	d.wait("the daemon to be back", func() bool { _, _, code := d.run("squeue", "-h"); return code == 0 })
	expect(t, "the first job is still there", d.must("squeue", "-h", "-j", "1", "-o", "%i %r"), "1 JobHeldUser")
	if out, errs, code := d.run("srun", "echo", "fine"); code != 0 || out != "fine\n" {
		t.Errorf("work after that: %d %q %q", code, out, errs)
	}
}
