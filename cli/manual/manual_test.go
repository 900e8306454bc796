package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/slurm"
	"dev.muster/slurm/opt"
)

// testPages writes the manuals and completions of a small muster and of all front-ends into a folder.
func testPages(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	token := []opt.Entry{{Long: "role", Arg: opt.Required, Meta: "role", Help: "what's may join: [server] 'x' \\"}}
	for _, f := range Files(Native("muster", "a workload manager", "COMMAND", nil, Native("token",
		"join tokens", "", nil, Native("create", "make one", "", token)))) {
		p := filepath.Join(dir, f.Path)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(f.Text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestManuals: every option of the tables is in each of the files, and programs that read them do not complain.
func TestManuals(t *testing.T) {
	dir := testPages(t)
	for _, p := range slurm.Pages() {
		if len(p.Options) == 0 || p.Operands == "" || p.Summary == "" {
			t.Errorf("the page of %s is empty: %+v", p.Name, p)
		}
		for file, form := range map[string]string{"share/man/man1/" + p.Name + ".1": `\-\-%s\fR`,
			"share/bash-completion/completions/" + p.Name:         "--%s",
			"share/zsh/site-functions/_" + p.Name:                 "'--%s",
			"share/fish/vendor_completions.d/" + p.Name + ".fish": " -l '%s'"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range p.Options {
				name := o.Long
				if strings.Contains(form, `\-`) {
					name = roff(name)
				}
				if !strings.Contains(string(text), strings.Replace(form, "%s", name, 1)) {
					t.Errorf("%s does not tell of --%s", file, o.Long)
				}
			}
		}
	}
	for pattern, check := range map[string][]string{"share/man/man1/*": {"mandoc", "-Tlint", "-W", "error"},
		"share/bash-completion/completions/*": {"bash", "-n"},
		"share/man/man5/*": {"mandoc", "-Tlint", "-W",
			"error"}, "share/man/man7/*": {"mandoc", "-Tlint", "-W",
			"error"},
		"share/zsh/site-functions/*": {"zsh", "-n"}, "share/fish/vendor_completions.d/*": {"fish", "-n"}} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		want := len(slurm.FrontEnds()) + 1
		if !strings.HasPrefix(pattern, "share/man/") {
			want += len(slurm.Wrappers())
		}
		if chapter, ok := strings.CutPrefix(pattern, "share/man/man"); ok && chapter != "1/*" {
			want = map[string]int{"5/*": 1, "7/*": 2}[chapter]
		}
		if err != nil || len(files) != want {
			t.Errorf("%s: %d files, %v", pattern, len(files), err)
		}
		if _, err := exec.LookPath(check[0]); err != nil {
			t.Logf("%s is not here: %s not checked", check[0], pattern)
			continue
		}
		for _, f := range files {
			if out, err := exec.Command(check[0], append(check[1:], f)...).CombinedOutput(); err != nil ||
				len(out) > 0 {
				t.Errorf("%s %s: %v %s", check[0], f, err, out)
			}
		}
	}
}

// TestManualSections: manuals have the letters and fields of formats, states, variables, codes and examples.
func TestManualSections(t *testing.T) {
	dir := testPages(t)
	for page, wants := range map[string][]string{
		"squeue": {"LETTERS OF", "%i", "JOBID", "timelimit", "PD, PENDING", "OOM, OUT_OF_MEMORY", "squeue \\-\\-start"},
		"sinfo":  {"%G", "draining", "sinfo \\-R"},
		"sacct":  {"MaxRSS", "AllocTRES", "NF, NODE_FAIL", "EXIT STATUS"},
		"sbatch": {"SLURM_ARRAY_TASK_ID", "EXAMPLES", "\\-\\-array=0\\-99%10", "EXIT STATUS"},
		"srun":   {"SLURM_PROCID", "130"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, "share/man/man1", page+".1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("the manual of %s has no %q", page, want)
			}
		}
	}
	pages := slurm.Pages()
	for _, topic := range topics() {
		pages = append(pages, topic.Page)
	}
	for _, p := range pages {
		for _, s := range p.Sections {
			if s.Text == "" && len(s.Rows) == 0 {
				t.Errorf("%s: section %s is empty", p.Name, s.Title)
			}
			for _, r := range s.Rows {
				if r.Word == "" || r.Means == "" {
					t.Errorf("%s, %s: %+v", p.Name, s.Title, r)
				}
			}
		}
	}
}

// TestTopics: the manual of reasons has each of them, and that of muster.conf each key.
func TestTopics(t *testing.T) {
	dir := testPages(t)
	for file, words := range map[string][]string{
		"man7/muster-reasons.7": {"PartitionTimeLimit", "AssocGrpGRES", "QOSMaxWallDurationPerJobLimit",
			"NonZeroExitCode",
			"What to do: wait, or scontrol update jobid=N dependency="},
		"man7/muster-wrappers.7": {"qsub", "OPTIONS OF BSUB", "sbatch \\-\\-account=VALUE", "refused: directives begin"},
		"man5/muster.conf.5":     {"StatusPage", "PageCertificate", "OIDCAdministrators", "scontrol reconfigure"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, "share/man", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if !strings.Contains(string(text), word) {
				t.Errorf("%s says nothing of %s", file, word)
			}
		}
	}
}

// TestCompletion types words in bash.
func TestCompletion(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	dir := testPages(t)
	tools := t.TempDir()
	text := `#!/bin/sh
case "$*" in
"internal names partitions") echo debug batch;;
"internal names nodes") echo n1 n2;;
"internal names jobs") echo 41 42;;
"internal names accounts") echo physics;;
"internal names after scancel"*|"internal names after muster why"*) echo 41 42;;
"internal names after sacctmgr show") echo account user;;
esac
`
	if err := os.WriteFile(filepath.Join(tools, "muster"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"sbatch --parti":           "--partition=",
		"sbatch --partition = d":   "debug",
		"sbatch --partition =":     "debug batch",
		"srun -p b":                "batch",
		"srun -w ":                 "n1 n2",
		"scancel ":                 "41 42",
		"scancel 41 4":             "41 42",
		"sbatch --account = ":      "physics",
		"muster why ":              "41 42",
		"sacctmgr show a":          "account",
		"scancel --use":            "--user=",
		"scontrol reconf":          "reconfigure",
		"sacctmgr mod":             "modify",
		"muster tok":               "token",
		"muster token cr":          "create",
		"muster token create --ro": "--role=",
		"squeue --nosuchoption":    "",
		"qsub -q ":                 "debug batch",
		"qsub -A ph":               "physics",
		"qsub -h":                  "-h",
		"bsub -o":                  "-o -oo",
		"bsub -q b":                "batch",
		"qstat -Q":                 "-Q",
		"bjobs -q ":                "debug batch",
		"qdel 4":                   "41 42",
		"pbsnodes ":                "n1 n2",
	} {
		words := strings.Split(line, " ")
		script := `. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _muster_"$1"; echo "${COMPREPLY[*]}"`
		cmd := exec.Command("bash", append([]string{"--norc", "-c", script, "bash", filepath.Join(dir,
			"share/bash-completion/completions", words[0])}, words...)...)
		cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: %q, want %q (%v)", line, got, want, err)
		}
	}
}
