package slurm

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"dev.muster/slurm/slurmtest"
)

// FuzzFrontEnds: no line of arguments makes a front-end panic, whatever it finds in the cluster.
//
// Lines are words with blanks between; a word itself has none. Left out are what waits or repeats for good, what
// runs programs, and what writes files that the line names.
func FuzzFrontEnds(f *testing.F) {
	for _, g := range goldens {
		for _, line := range g.lines {
			f.Add(line)
		}
	}
	for _, line := range strings.Split(moreLines, "\n") {
		f.Add(line)
	}
	dir := f.TempDir()
	// The worker alone goes there: what it finds is written where the fuzzer is.
	moved := sync.OnceValue(func() error { return os.Chdir(dir) })
	fake := slurmtest.New()
	mux := fake.Mux()
	slurmtest.WithBooks(mux, fake)
	fake.Own = mux
	dial := fake.Dial(f)
	f.Fuzz(func(t *testing.T, line string) {
		if err := moved(); err != nil {
			t.Fatal(err)
		}
		argv := strings.Fields(line)
		if len(argv) == 0 || !slices.Contains(FrontEnds(), argv[0]) || slices.ContainsFunc(argv[1:], isUnsafe) {
			t.Skip()
		}
		sys := slurmtest.Sys(argv[0], dir)
		sys.Stdin, sys.Stdout, sys.Stderr, sys.Dial = strings.NewReader("y\n"), io.Discard, io.Discard, dial
		sys.Hostname = func() (string, error) { return "vm", nil }
		Main(argv, sys)
	})
}

// isUnsafe reports words with which a front-end goes on for good, starts programs, or writes files.
func isUnsafe(word string) bool {
	w := strings.ToLower(strings.TrimLeft(word, "-"))
	if short := !strings.HasPrefix(word, "--") && word != w; short && strings.Contains(w, "i") {
		return true // one letter of several: -si6 is -s -i6
	}
	for _, begin := range []string{"i", "it", "follow", "wait", "dump", "write", "archive", "file=", "uid", "gid"} {
		if strings.HasPrefix(w, begin) {
			return true
		}
	}
	return strings.ContainsAny(word, "/~")
}

// moreLines are lines of the front-ends that the golden files leave out.
const moreLines = `sacct -X -o jobid,state,elapsed,alloctres -s CD -S now-1hour -E now
sacct --json -j 734
sacct -P -n -o all
sacctmgr show assoc tree format=account,user,share
sacctmgr -n -P show qos format=name,priority,maxtrespu
sacctmgr add user zed account=root fairshare=3
sacctmgr modify user alice set maxjobs=3 where account=team-a
sacctmgr delete account team-a
sacctmgr show tres
sreport cluster accountutilizationbyuser start=2026-11-01 -t hours
sreport job sizesbyaccount grouping=10,20
sshare -a -l
sprio -l
sstat -j 735.0 -o jobid,maxrss
sdiag
scancel -u alice -t pd
sbatch -N2 --gres=gpu:h100:2 -t 1:00 --wrap true
sbatch -a 1-10:2%3 -d afterok:734 --mail-type=END --wrap true
srun -N2 -n4 -c2 --mem=100 true
salloc -N1 --begin=now+1hour true
squeue --start -o %i|%S|%y
sinfo -N -O nodelist,gres,gresused`
