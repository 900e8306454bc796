// Command life compares how jobs live and die: what each process of a job receives and when, how it ends, what the
// front-end says and what history has, on a real Slurm and on muster. e2e/compare/life.sh brings both up and calls it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if filepath.Base(os.Args[0]) == "probe" {
		os.Exit(runProbe(os.Args[1:]))
	}
	only := flag.String("only", "", "run only cells with one of these texts in their name, with blanks between")
	list := flag.Bool("list", false, "print the names of the cells")
	show := flag.Bool("show", false, "print what was seen of the cells that are the same too")
	dir := flag.String("dir", "", "scratch folder (must be readable by all)")
	folder := flag.String("folder", "e2e/compare", "where the lists are")
	slots := flag.Int("slots", 10, "cells at once")
	slurmPath := flag.String("slurm-path", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "PATH with Slurm's commands")
	slurmConf := flag.String("slurm-conf", "", "slurm.conf of the reference")
	bin := flag.String("bin", "bin", "folder with muster's commands")
	socket := flag.String("socket", "", "muster's socket")
	flag.Parse()
	cells := pick(allCells(), *only)
	if *list {
		for _, c := range cells {
			fmt.Println(c.name())
		}
		fmt.Println(len(cells), "cells")
		return
	}
	known, err := readKnown(filepath.Join(*folder, "life/known.txt"))
	check(err)
	check(copySelf(*dir + "/probe"))
	prelude, err := joined(*dir+"/prelude.sh", *folder+"/prelude.sh", *folder+"/life/prelude.sh")
	check(err)
	common := []string{
		"HOME=" + *dir, "LANG=C.UTF-8", "TZ=UTC", "USER=root", "LOGNAME=root", "SHELL=/bin/bash",
		"BASH_ENV=" + prelude, "TERM=dumb",
	}
	sides := []*side{
		{*dir + "/s", append([]string{"PATH=" + *slurmPath, "SLURM_CONF=" + *slurmConf}, common...)},
		{*dir + "/m", append([]string{"PATH=" + *bin + ":" + *slurmPath, "MUSTER_SOCKET=" + *socket}, common...)},
	}
	r := &runner{sides: sides, probe: *dir + "/probe", results: make([][2]life, len(cells))}
	r.run(cells, *slots)
	if !report(cells, r.results, known, *show, *only == "") {
		os.Exit(1)
	}
}

// allCells are the cells of the plan, each once.
func allCells() (out []cell) {
	seen := map[cell]bool{}
	for _, group := range plan {
		for _, s := range strings.Fields(group.shapes) {
			for _, p := range strings.Fields(group.programs) {
				for e := range strings.SplitSeq(group.ends, "-") {
					c := cell{s, p, e}
					if !seen[c] {
						seen[c] = true
						out = append(out, c)
					}
				}
			}
		}
	}
	return out
}

func pick(cells []cell, only string) []cell {
	words := strings.Fields(only)
	return slices.DeleteFunc(cells, func(c cell) bool {
		hit := func(w string) bool { return strings.Contains(c.name(), w) }
		return len(words) > 0 && !slices.ContainsFunc(words, hit)
	})
}

// copySelf puts this program, as the probe, where all users find it.
func copySelf(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// joined writes files one behind the other.
func joined(to string, from ...string) (string, error) {
	var all []byte
	for _, f := range from {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		all = append(all, b...)
	}
	return to, os.WriteFile(to, all, 0o644)
}
