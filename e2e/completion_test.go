package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompletionLive: bash, zsh and fish complete names that the cluster has: of accounts, users, QOS, GPUs,
// features, reservations, nodes and jobs.
func TestCompletionLive(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x8c16g8gpu:h100")
	d.wait("two nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "2" })
	d.must("sacctmgr", "-i", "add", "account", "physics")
	d.must("sacctmgr", "-i", "add", "user", "alice", "account=physics")
	d.must("sacctmgr", "-i", "add", "qos", "urgent")
	d.must("scontrol", "create", "reservation", "reservationname=course", "starttime=now+1days", "duration=60",
		"nodes=gpu-node-001", "users=root")
	d.must("scontrol", "update", "nodename=gpu-node-001", "availablefeatures=fast,ib", "activefeatures=fast,ib")
	job := d.must("sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "true")
	for _, wrapper := range []string{"qdel", "qsub", "pbsnodes"} { // fish completes what is there alone
		if err := os.Symlink(filepath.Join(bin, "muster"), filepath.Join(d.dir, wrapper)); err != nil {
			t.Fatal(err)
		}
	}
	d.env = append(d.env, "PATH="+d.dir+":"+bin+":"+os.Getenv("PATH"))
	files := filepath.Join(d.dir, "files")
	d.must("muster", "internal", "files", files)
	shells := map[string]func(string) []string{
		"bash": func(line string) []string { return d.bashCompletes(files, line) },
		"zsh":  func(line string) []string { return d.zshCompletes(files, line) },
		"fish": func(line string) []string { return d.fishCompletes(files, line) },
	}
	for shell, completes := range shells {
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("no %s here: apt install %[1]s", shell)
			continue
		}
		for line, want := range map[string]string{
			"sbatch --account=phy":          "physics",
			"sbatch --qos=urg":              "urgent",
			"sbatch --gres=gpu:":            "gpu:h100",
			"sbatch --constraint=fa":        "fast",
			"sbatch --reservation=cou":      "course",
			"sbatch --nodelist=gpu-node-00": "gpu-node-002",
			"squeue --user=al":              "alice",
			"scancel " + job[:1]:            job,
			"muster why " + job[:1]:         job,
			"scontrol show re":              "reservation",
			"scontrol show reservation c":   "course",
			"scontrol show node gpu-node-":  "gpu-node-001",
			"sacctmgr show acc":             "account",
			"sacctmgr modify account ph":    "physics",
			"sacctmgr -i delete user ali":   "alice",
			"qdel " + job[:1]:               job,
			"qsub -A phy":                   "physics",
			"pbsnodes gpu-node-00":          "gpu-node-002",
		} {
			if got := completes(line); !slices.Contains(got, want) {
				t.Errorf("%s: %q is completed to %q, want %q", shell, line, got, want)
			}
		}
	}
}

// runShell runs a program with the cluster's commands on its path.
func (d *dev) runShell(name string, args ...string) string {
	d.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(d.env, "HOME="+d.dir, "TERM=dumb")
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s: %v %s", name, err, out)
	}
	return string(out)
}

func (d *dev) bashCompletes(files, line string) []string {
	words := strings.Split(strings.Replace(line, "=", " = ", 1), " ")
	script := `. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _muster_"$1"; printf '%s\n' "${COMPREPLY[@]}"`
	file := filepath.Join(files, "share/bash-completion/completions", words[0])
	return strings.Fields(d.runShell("bash", append([]string{"--norc", "-c", script, "bash", file}, words...)...))
}

func (d *dev) fishCompletes(files, line string) (out []string) {
	script := "set fish_complete_path " + filepath.Join(files, "share/fish/vendor_completions.d") +
		`; complete -C "` + line + `"`
	for one := range strings.Lines(d.runShell("fish", "--no-config", "-c", script)) {
		name, _, _ := strings.Cut(strings.TrimSpace(one), "\t")
		_, value, option := strings.Cut(name, "=")
		if option {
			name = value
		}
		out = append(out, name)
	}
	return out
}

// zshCompletes types into a zsh of its own, whose matches are printed as they are found.
func (d *dev) zshCompletes(files, line string) (out []string) {
	inner, outer := filepath.Join(d.dir, "inner.zsh"), filepath.Join(d.dir, "outer.zsh")
	for file, text := range map[string]string{inner: zshInner, outer: zshOuter} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	told := d.runShell("zsh", "-f", outer, inner, filepath.Join(files, "share/zsh/site-functions"), line)
	for one := range strings.Lines(told) {
		if _, match, ok := strings.Cut(one, "MATCH "); ok { // behind what was typed
			out = append(out, strings.TrimSpace(match))
		}
	}
	return out
}

const zshInner = `PROMPT=
fpath=($FILES $fpath)
autoload -Uz compinit && compinit -D -u
bindkey '^M' undefined
bindkey '^J' undefined
bindkey '^I' complete-word
finish() { print -r -- FINISHED; exit }
compprefuncs=()
comppostfuncs=(finish)
zstyle ':completion:*' insert-tab false
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  typeset -a found
  builtin compadd -A found "$@"
  local one
  for one in $found; do print -r -- "MATCH $one"; done
}
print READY
`

const zshOuter = `zmodload zsh/zpty
export FILES=$2
zpty typed zsh -f -i
zpty -w typed "source $1"
while zpty -r typed line; do [[ $line == *READY* ]] && break; done
zpty -w -n typed "$3"$'\t'
while zpty -r typed line; do print -r -- $line; [[ $line == *FINISHED* ]] && break; done
zpty -d typed
`
