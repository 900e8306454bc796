package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeSlurm stands for scontrol, squeue and scancel of a Slurm whose pending jobs are files: ID.show has what scontrol
// prints of it, ID.admin its AdminComment. It keeps a log of all changes.
const fakeSlurm = `#!/bin/bash
cd "$(dirname "$0")"
echo "$(basename "$0") $*" >> log
case "$(basename "$0") $*" in
"scontrol --version") echo slurm 22.05.8 ;;
"scontrol show config") echo "ClusterName = old"; echo "StateSaveLocation = $PWD/state" ;;
scontrol*"show job") cat [0-9]*.show ;;
squeue*) for f in [0-9]*.show; do
	id=${f%.show}; printf '%-16s%-64s%s\n' "$(id -u)" $id "$(cat $id.admin 2>/dev/null)"
	done ;;
"scontrol update JobId="*)
	id=${2#JobId=}; echo "${3#AdminComment=}" > $id.admin
	case "$*" in *Priority=0*) sed -i "s/Reason=[A-Za-z]*/Reason=JobHeldAdmin/; s/\(Eligible\|Accrue\)Time=[^ ]*/\1Time=Unknown/g" $id.show ;; esac
	if [ -e die ]; then rm die; kill -9 $PPID; fi ;;
"scancel "*) rm $1.show ;;
*) echo "fake: $*" >&2; exit 1 ;;
esac
`

// TestAdoptQueue: muster adopt queue moves jobs of a Slurm with their numbers, owners, times and dependencies; killed
// after the first hold, it goes on.
func TestAdoptQueue(t *testing.T) {
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec")
	dir := filepath.Join(d.dir, "slurm")
	at := time.Now().Add(-3 * time.Hour).Truncate(time.Second)
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("scontrol", fakeSlurm, 0o755)
	for _, name := range []string{"squeue", "scancel"} {
		if err := os.Symlink("scontrol", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for id, rest := range map[int]string{
		4242: "Reason=JobHeldUser Dependency=(null)", 4243: "Reason=Dependency Dependency=afterok:4242(unfulfilled)"} {
		when := at.Format("2006-01-02T15:04:05")
		put(fmt.Sprintf("%d.show", id), fmt.Sprintf("JobId=%d JobName=n%d UserId=u(%d) GroupId=g(%d) JobState=PENDING %s "+
			"BatchFlag=1 Requeue=1 SubmitTime=%s EligibleTime=%s AccrueTime=%s NumNodes=1 NumTasks=1 "+
			"Command=/x/a.sh WorkDir=%s TimeLimit=00:07:00 StdOut=%s/%d.out\n",
			id, id, os.Getuid(), os.Getgid(), rest, when, when, when, d.dir, d.dir, id), 0o644)
		put(fmt.Sprintf("state/hash.%d/job.%d/script", id%10, id), "#!/bin/sh\necho ran with $MARK\n\x00", 0o600)
		put(fmt.Sprintf("state/hash.%d/job.%d/environment", id%10, id),
			"\x02\x00\x00\x00MARK=old\x00PATH="+os.Getenv("PATH")+"\x00", 0o600)
	}
	adopt := func() (string, int) {
		cmd := exec.Command(filepath.Join(bin, "muster"), "adopt", "queue")
		cmd.Env = append(slices.Clone(d.env), "PATH="+dir+":"+os.Getenv("PATH"))
		out, _ := cmd.CombinedOutput() // of which the exit code says the rest
		return string(out), cmd.ProcessState.ExitCode()
	}
	put("die", "", 0o644)
	if out, code := adopt(); code != -1 {
		t.Fatalf("it was to be killed, and ended with %d: %s", code, out)
	}
	out, code := adopt()
	for _, want := range []string{"job 4242: moved as job 4242", "job 4243: moved as job 4243"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Fatalf("%d: %s\n%s", code, out, d.slurmLog(dir))
		}
	}
	want := "4242 n4242 JobHeldUser\n4243 n4243 Dependency"
	if got := d.must("squeue", "-h", "-S", "i", "-o", "%i %j %r"); got != want {
		t.Errorf("squeue:\n%swant\n%s", got, want)
	}
	submitted := "SubmitTime=" + at.Format("2006-01-02T15:04:05")
	if show := d.must("scontrol", "show", "job", "4242"); !strings.Contains(show, submitted) {
		t.Errorf("no %s in\n%s", submitted, show)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "[0-9]*.show")); err != nil || len(left) > 0 {
		t.Errorf("in Slurm are still %q\n%s", left, d.slurmLog(dir))
	}
	d.must("scontrol", "release", "4242")
	d.wait("both jobs to end", func() bool { return d.must("squeue", "-h") == "" })
	for _, name := range []string{"4242.out", "4243.out"} {
		if text := d.read(name); text != "ran with old\n" {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// slurmLog is what the fake Slurm was asked.
func (d *dev) slurmLog(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}
