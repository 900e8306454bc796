package slurm

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dev.muster/slurm/conf"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/submit"
)

var update = flag.Bool("update", false, "rewrite docs/slurm-compat.md")

const (
	compatFile  = "../docs/slurm-compat.md"
	beginMarker = "<!-- options: begin (go test ./slurm -run TestCompatDoc -update) -->\n"
	endMarker   = "<!-- options: end -->\n"
)

// TestCompatDoc keeps the options in docs/slurm-compat.md as the tables are.
func TestCompatDoc(t *testing.T) {
	old, err := os.ReadFile(compatFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(old), beginMarker)
	if !ok && !*update {
		t.Fatal("no marker in " + compatFile)
	}
	_, tail, _ := strings.Cut(rest, endMarker)
	if !ok && len(old) == 0 {
		head = "# What of Slurm muster speaks\n\n## Options\n\nEvery option of sbatch, srun and salloc, and the variables that stand for it. Precedence: command line, environment, script.\n\n"
	}
	want := spanks(t, head+beginMarker+optionTable()+endMarker+tail)
	if want == string(old) {
		return
	}
	if !*update {
		t.Fatal(compatFile + " is stale: go test ./slurm -run TestCompatDoc -update")
	}
	if err := os.MkdirAll(filepath.Dir(compatFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(compatFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

const (
	beginSpanks = "<!-- plugins: begin -->\n"
	endSpanks   = "<!-- plugins: end -->\n"
)

// spanks puts the table of SPANK plugins into the text.
func spanks(t *testing.T, text string) string {
	t.Helper()
	head, rest, ok := strings.Cut(text, beginSpanks)
	_, tail, end := strings.Cut(rest, endSpanks)
	if !ok || !end {
		t.Fatal("no marker of plugins in " + compatFile)
	}
	table := "| plugin | what it is for | muster | how |\n|---|---|---|---|\n"
	for _, s := range conf.Spanks() {
		names := "`" + strings.Join(strings.Fields(s.Names), "`, `") + "`"
		table += fmt.Sprintf("| %s | %s | %s | %s |\n", names, s.For, s.Have, s.How)
	}
	return head + beginSpanks + table + endSpanks + tail
}

const (
	containersFile  = "../docs/containers.md"
	beginContainers = "<!-- options: begin (go test ./slurm -run TestContainersDoc -update) -->\n"
)

// TestContainersDoc keeps the options and variables of containers in docs/containers.md as the tables are.
func TestContainersDoc(t *testing.T) {
	old, err := os.ReadFile(containersFile)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(old), beginContainers)
	_, tail, end := strings.Cut(rest, endMarker)
	if !ok || !end {
		t.Fatal("no marker in " + containersFile)
	}
	table := "| option | variable | of | muster |\n|---|---|---|---|\n"
	for _, rows := range submit.ParserFor(opt.All).Rows {
		for _, o := range rows {
			if o.Group != opt.Containers {
				continue
			}
			name, of, variable := "`--"+o.Long+"`", "Slurm", "–"
			if o.Meta != "" {
				name = "`--" + o.Long + "=" + strings.ReplaceAll(o.Meta, "|", "\\|") + "`"
			}
			if _, pyxis, ok := strings.Cut(o.Env, "srun=PYXIS"); ok {
				word, _, _ := strings.Cut(pyxis, " ")
				of, variable = "Pyxis", "`PYXIS"+word+"`"
			} else if strings.HasPrefix(o.Long, "no-") {
				of, variable = "Pyxis", "the value 0"
			} else if o.Long == "container-prefetch" {
				of = "muster"
			} else if o.Env != "" {
				variable = "`SBATCH_CONTAINER`, `SRUN_CONTAINER`, `SALLOC_CONTAINER`"
			}
			effect := o.Help
			if o.Ignored != "" {
				effect = "accepted, no effect: " + o.Ignored
			}
			table += fmt.Sprintf("| %s | %s | %s | %s |\n", name, variable, of, strings.ReplaceAll(effect, "|", "\\|"))
		}
	}
	want := head + beginContainers + table + endMarker + tail
	if want == string(old) {
		return
	}
	if !*update {
		t.Fatal(containersFile + " is stale: go test ./slurm -run TestContainersDoc -update")
	}
	if err := os.WriteFile(containersFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func optionTable() string {
	var b strings.Builder
	b.WriteString("| option | sbatch | srun | salloc | variables | effect |\n|---|---|---|---|---|---|\n")
	for _, table := range submit.ParserFor(opt.All).Rows {
		for _, o := range table {
			effect := o.Help
			switch {
			case o.Alias != "":
				effect = "another spelling of --" + o.Alias
			case o.Ignored != "":
				effect = "accepted, no effect: " + o.Ignored
			case effect == "":
				effect = "internal"
			}
			if o.Newer {
				effect += " (not in 22.05)"
			}
			name, on := "`--"+o.Long+"`", [3]string{}
			if o.Short != 0 {
				name = "`-" + string(o.Short) + "`, " + name
			}
			var env []string
			for i, prog := range [...]opt.Prog{opt.Sbatch, opt.Srun, opt.Salloc} {
				if o.On&prog == 0 {
					continue
				}
				on[i] = "x"
				for word := range strings.SplitSeq(o.Env, " ") {
					if v := submit.ParserFor(prog).EnvName(word); v != "" && !slices.Contains(env, v) {
						env = append(env, v)
					}
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", name, on[0], on[1], on[2], strings.Join(env, " "), strings.ReplaceAll(effect, "|", `\|`))
		}
	}
	return b.String()
}
