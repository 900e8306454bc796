package packaging

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// keptSuffix is what the name of a file of Slurm's ends in while muster's is in its place.
const keptSuffix = ".slurm"

// Where commands and units of a Slurm may be.
var (
	commandDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/opt/slurm/bin"}
	unitDirs    = []string{"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}
)

// foreignCommands are the front-ends of somebody else's, of Slurm most likely, on this machine.
func (i *Installer) foreignCommands() []string { return i.foreign(i.FrontEnds) }

// freeNames returns those of MoreNames that no other program of this machine has.
func (i *Installer) freeNames() (list []string) {
	for _, n := range i.MoreNames {
		if len(i.foreign([]string{n})) == 0 {
			list = append(list, n)
		}
	}
	return list
}

// foreign returns the paths at which programs other than muster have one of these names.
func (i *Installer) foreign(names []string) (list []string) {
	d := disk{i.Root}
	dirs := commandDirs
	if own := path.Join(i.Prefix, "bin"); !slices.Contains(dirs, own) {
		dirs = append([]string{own}, dirs...)
	}
	for _, dir := range dirs {
		if st, err := os.Lstat(d.path(dir)); err != nil || st.Mode()&os.ModeSymlink != 0 {
			continue // /usr/sbin may be /usr/bin
		}
		for _, n := range names {
			p := path.Join(dir, n)
			if !d.exists(p) {
				continue
			}
			if to, err := os.Readlink(d.path(p)); err != nil || filepath.Base(to) != "muster" {
				list = append(list, p)
			}
		}
	}
	return list
}

// inTheWay are those of them that stand where muster's go.
func (i *Installer) inTheWay() (list []string) {
	for _, p := range i.foreignCommands() {
		if path.Dir(p) == path.Join(i.Prefix, "bin") {
			list = append(list, p)
		}
	}
	return list
}

// foreignUnit reports whether a unit of that name is here that is not muster's.
func (i *Installer) foreignUnit(name string) bool {
	d := disk{i.Root}
	for _, dir := range unitDirs {
		text, err := os.ReadFile(d.path(path.Join(dir, name)))
		if err == nil && !strings.Contains(string(text), "muster") {
			return true
		}
	}
	return false
}

// slurmHere refuses to hide a Slurm that is installed, unless that is wanted.
func (i *Installer) slurmHere() error {
	found := i.foreignCommands()
	for _, u := range slurmUnits {
		if i.foreignUnit(u) {
			found = append(found, u)
		}
	}
	if len(found) == 0 || i.ReplaceSlurm {
		return nil
	}
	const shown = 3
	list := strings.Join(found[:min(shown, len(found))], ", ")
	if more := len(found) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("a Slurm is installed here: %s. Nothing was changed. With --replace-slurm muster's commands and units are used instead; "+
		"Slurm's files stay, those in the way as NAME%s, and come back with --uninstall", list, keptSuffix)
}
