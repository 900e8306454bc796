package e2e

import (
	"os"
	"strings"
	"testing"
)

// docOf is the block of a kind of a page.
func docOf(t *testing.T, page, kind string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range docBlock.FindAllStringSubmatch(string(text), -1) {
		if block[1] == kind {
			return block[2]
		}
	}
	t.Fatalf("%s has no block of kind %q", page, kind)
	return ""
}

// TestMPIDocsScript: the script of docs/mpi.md works as it stands, with a program of the tests.
func TestMPIDocsScript(t *testing.T) {
	t.Parallel()
	program := compileMPI(t, "mpicc.mpich", "libmpich-dev mpich")
	d := startDev(t, "--hollow", "4x8c16g", "--hollow-exec")
	d.link(program, "solver")
	d.write("job.sh", docOf(t, "mpi.md", "script"))
	d.must("sbatch", "--wait", "--output=job.out", "job.sh")
	expect(t, "the script", d.read("job.out"), "world of 32\n")
}

// TestMPIDocs: so do its commands.
func TestMPIDocs(t *testing.T) {
	t.Parallel()
	d, program := startOpenMPI(t, "4x8c16g")
	d.link(program, "program")
	d.env = append(d.env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	lines := docOf(t, "mpi.md", "openmpi")
	if n := strings.Count(lines, "./program"); n != 2 {
		t.Errorf("%d commands start the program", n)
	}
	for line := range strings.Lines(lines) {
		out := d.shell(line)
		if strings.Contains(line, "./program") && !strings.Contains(out, "world of 4\n") {
			t.Errorf("%s: %s", line, out)
		}
	}
}

// link puts a program into the folder of front-ends.
func (d *dev) link(program, name string) {
	d.t.Helper()
	if err := os.Symlink(program, d.work+"/"+name); err != nil {
		d.t.Fatal(err)
	}
}
