package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fakePeer stands for the commands of a Slurm that is a peer. It prints who called it and how.
const fakePeer = `#!/bin/bash
cd "$(dirname "$0")"
name=$(basename "$0")
echo "$name $*" >> log
case "$name $*" in
"sbatch --test-only"*)
	[ -e hang ] && exec sleep 100
	echo "sbatch: Job 900 to start at $(cat starts) using 1 processors on nodes n1 in partition p" >&2 ;;
"sbatch "*--parsable*) cat > script; echo 900 ;;
"sbatch "*) cat > script; echo "Submitted batch job 900" ;;
"scancel "*) [ "$1" = 900 ] || { echo "scancel: error: Invalid job id $1" >&2; exit 1; } ;;
*) echo "$name in $SLURM_CONF as $(id -u): $*" ;;
esac
`

// TestSlurmPeer: with a Slurm as a peer, -M has the user call its own commands, and sbatch -M all chooses between both.
func TestSlurmPeer(t *testing.T) {
	t.Parallel()
	d := startCluster(t, "new", freeAddr(t), "1x4c8g")
	dir := filepath.Join(d.dir, "slurm")
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"squeue", "sinfo", "sacct", "scancel", "sbatch", "scontrol"} {
		put(name, fakePeer, 0o755)
	}
	for _, bad := range [][]string{
		{"--slurm", "-x"}, {"--slurm", "old", "--bin", "slurm"}, {"--slurm", "old", "--rest", "http://h"},
		{"--slurm", "old", "--via", "ssh -oProxyCommand=x"}, {"--slurm", "new", "--bin", dir},
	} {
		if _, errs, code := d.run("muster", append([]string{"peer", "add"}, bad...)...); code == 0 || errs == "" {
			t.Errorf("peer add %q: %d %s", bad, code, errs)
		}
	}
	if out := d.must("muster", "peer", "add", "--slurm", "old", "--bin", dir, "--conf", "/etc/old.conf"); out != "old" {
		t.Fatalf("added %q", out)
	}
	if out := d.must("muster", "peer", "ls"); !strings.Contains(out, "slurm "+dir) {
		t.Errorf("peers:\n%s", out)
	}
	put("starts", time.Now().UTC().Add(-time.Hour).Format("2006-01-02T15:04:05"), 0o644)
	near := d.must("sbatch", "--parsable", "--wrap", "sleep 300")
	who := " in /etc/old.conf as " + strconv.Itoa(os.Getuid()) + ": "
	for _, c := range []struct{ line, want string }{
		{"squeue -h -M old -o %i", "squeue" + who + "-h -o %i"},
		{"squeue -M all -o %i", "CLUSTER: new\nJOBID\n" + near + "\n\nCLUSTER: old\nsqueue" + who + "-o %i"},
		{"squeue -hM all -o %i", near + "\nsqueue" + who + "-h -o %i"},
		{"sinfo -M old", "CLUSTER: old\nsinfo" + who},
		{"sacct -M OLD -nX -j 7", "sacct" + who + "-nX -j 7"},
		{"scontrol -M old show job 7", "scontrol" + who + "show job 7"},
		{"sbatch -M old x.sh -M y", "Submitted batch job 900 on cluster old"},
		{"sbatch -M all --parsable --wrap=a", "900;old"},
		{"scancel -M old 900", ""},
		{"sacctmgr -nP show cluster format=cluster", "new\nold"},
	} {
		d.write("x.sh", "#!/bin/sh\n")
		got := strings.TrimSpace(d.must(strings.Fields(c.line)[0], strings.Fields(c.line)[1:]...))
		if got != strings.TrimSpace(c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.line, got, c.want)
		}
	}
	if log := d.slurmLog(dir); !strings.Contains(log, "\nsbatch x.sh -M y\n") {
		t.Errorf("the script's own arguments:\n%s", log)
	}
	if _, errs, code := d.run("scancel", "-M", "old", "7"); code != 1 || !strings.Contains(errs, "Invalid job id 7") {
		t.Errorf("scancel of no job: %d %s", code, errs)
	}
	put("starts", time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04:05"), 0o644)
	if out := d.must("sbatch", "-M", "all", "--parsable", "--wrap", "true"); !strings.HasSuffix(out, ";new") {
		t.Errorf("a job that starts first here went to %q", out)
	}
	put("hang", "", 0o644)
	out, errs, code := d.run("sbatch", "-M", "all", "--parsable", "--wrap", "true")
	if code != 0 || !strings.HasSuffix(out, ";new\n") || !strings.Contains(errs, "cluster old was not considered") {
		t.Errorf("with a peer that hangs: %d %s %s", code, out, errs)
	}
	d.write("named.sh", "#!/bin/sh\n#SBATCH -M old\n")
	if _, errs, code := d.run("sbatch", "named.sh"); code != 1 || !strings.Contains(errs, "remove that line and use sbatch -M") {
		t.Errorf("a script that names the cluster: %d %s", code, errs)
	}
	d.must("muster", "peer", "rm", "old")
	if _, errs, code := d.run("squeue", "-M", "old"); code != 1 || !strings.Contains(errs, "No cluster 'old' known") {
		t.Errorf("after the removal: %d %s", code, errs)
	}
}
