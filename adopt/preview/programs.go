package preview

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// known are programs around Slurm, besides its commands: what becomes of each.
var known = [...]struct {
	words   string // names, or the beginnings of names that end in *
	verdict Verdict
	how     string
	action  string
}{
	{"slurmctld slurmdbd sackd", Needless, "a daemon of Slurm", "disable it after the move"},
	{"slurmd", Needless, "a daemon of Slurm", "disable it after the move; muster install client sets up nodes"},
	{"munge munged", Needless, "muster does not use munge", "disable it unless other software needs it"},
	{"slurmrestd", Different, "each server of muster answers the REST interface", "change its address: docs/rest.md"},
	{"prometheus-slurm-exporter slurm_exporter slurm-exporter slurm-prometheus-exporter", Different,
		"servers have the same series", "scrape /metrics/compat of a server: docs/monitoring.md"},
	{"dcgm-exporter", Works, "it does not depend on Slurm", "see docs/monitoring.md for the jobs of GPUs"},
	{"ondemand* ood_* ood-*", Works, "it calls Slurm's commands", "try it with a test user"},
	{"slurm-web*", Different, "it calls slurmrestd", "change its address, or use muster's page: docs/page.md"},
	{"xdmod-*", Works, "it reads the output of sacct", "try it with a few days"},
	{"pam_slurm_adopt.so", Different, "muster pam-adopt does the same", "change the line: docs/configuration.md"},
	{"pam_slurm.so", Different, "muster pam-adopt does the same", "change the line: docs/configuration.md"},
	{"slurm_acct_db", Different, "there is no database to save", "use muster snapshot: docs/upkeep.md"},
	{"pyslurm* libslurm* libslurm.so", Lost, "muster has no libslurm", "use the REST interface or --json"},
	{"sview smap sh5util scrun slurmsmwd", Lost, "muster does not have this command", "remove the call"},
}

const maxHits = 200

// programs lists the uses of Slurm in crontabs, units and PAM files, each program once per file.
func programs(s *Site) (out []Item) {
	for _, f := range s.Scheduled {
		seen := map[string]bool{}
		n := 0
		for line := range strings.Lines(f.Text) {
			n++
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") || unitComment(f.Path, line) {
				continue
			}
			for _, word := range programWords(line) {
				it, found := useOf(s, word)
				if !found || seen[word] || len(out) >= maxHits {
					continue
				}
				seen[word] = true
				it.Where = f.Path + ":" + strconv.Itoa(n)
				out = append(out, it)
			}
		}
	}
	return out
}

// unitComment reports whether a line of a unit starts no program.
func unitComment(file, line string) bool {
	if ext := path.Ext(file); ext != ".service" && ext != ".timer" {
		return false
	}
	return !strings.HasPrefix(line, "Exec")
}

// wordRunes are the characters of a program's path.
const wordRunes = "-_./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// programWords splits a line into the base names of its words.
func programWords(line string) (out []string) {
	split := func(r rune) bool { return !strings.ContainsRune(wordRunes, r) }
	for _, w := range strings.FieldsFunc(line, split) {
		out = append(out, path.Base(strings.TrimLeft(w, "-")))
	}
	return out
}

// useOf says what becomes of a program; found is false if it has nothing to do with Slurm.
func useOf(s *Site, word string) (it Item, found bool) {
	if slices.Contains(s.Commands, word) {
		return Item{Name: word, Verdict: Works, How: "muster has this command", Action: noAction}, true
	}
	for _, k := range known {
		for name := range strings.FieldsSeq(k.words) {
			begin, any := strings.CutSuffix(name, "*")
			if name == word || any && strings.HasPrefix(word, begin) {
				return Item{Name: word, Verdict: k.verdict, How: k.how, Action: k.action}, true
			}
		}
	}
	return Item{}, false
}
