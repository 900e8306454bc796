package packaging

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Uninstall takes away what Install has put here; with purge also the configuration and the data folder, which make
// this machine a member. It refuses while jobs run, unless purge.
func (i *Installer) Uninstall(ctx context.Context, purge bool) error {
	i.changed, i.count = map[string]bool{}, 0
	d := disk{i.Root}
	runs := i.Root == "" // this machine itself, and no folder that becomes one
	if runs && i.MayLeave != nil {
		if err := i.MayLeave(ctx, purge); err != nil {
			return err
		}
	}
	if runs && i.Systemd {
		if err := i.stop(ctx, purge); err != nil {
			return err
		}
	}
	paths, err := i.installed()
	if err != nil {
		return err
	}
	if err := i.do(i.removals(paths, purge)); err != nil {
		return err
	}
	if !i.DryRun {
		i.emptied(append(paths, i.listFile(), hardeningFile))
	}
	if runs && i.Systemd {
		if err := i.reload(ctx); err != nil {
			return err
		}
	}
	switch {
	case i.count == 0 && d.exists(packagedFile):
		i.tell("muster came here as a package: remove that")
	case i.count == 0:
		i.tell("nothing to remove")
	case !purge && !i.DryRun:
		i.tell("%s and %s were kept; --uninstall --purge removes them too", configDir, StateDir)
	}
	return nil
}

// removals take away what was installed, and put back what it had replaced.
func (i *Installer) removals(paths []string, purge bool) (list []action) {
	d := disk{i.Root}
	for _, p := range paths {
		if i.ours(p) {
			list = append(list, d.removed(p).of(goneText(p)))
		}
		if d.exists(p + keptSuffix) {
			list = append(list, d.moved(p+keptSuffix, p))
		}
	}
	if d.exists(hardeningFile) {
		list = append(list, d.removed(hardeningFile))
	}
	list = append(list, d.removed(i.listFile()))
	if purge {
		list = append(list, d.cleared(configDir), d.cleared(StateDir), d.cleared(runDir))
	}
	return list
}

// goneText is what is told of files of a kind that are removed.
func goneText(p string) string {
	parts := strings.Split(p, "/") // the first is empty
	return "remove what was installed in " + strings.Join(parts[:min(3, len(parts))], "/")
}

// ours reports whether what is at a path still is muster's: a link there may lead elsewhere by now.
func (i *Installer) ours(p string) bool {
	to, err := os.Readlink(disk{i.Root}.path(p))
	return err != nil || to == "muster"
}

// stop ends the daemons, and what jobs have left. While jobs run it starts the daemons again and refuses, unless force.
func (i *Installer) stop(ctx context.Context, force bool) error {
	var was []string
	for _, unit := range append(slices.Clone(slurmUnits), mungeUnit, "muster-server.service", "muster-client.service") {
		if i.foreignUnit(unit) || !(disk{i.Root}).exists(path.Join(unitDir, unit)) {
			continue
		}
		enabled, _ := i.Command(ctx, "systemctl", "is-enabled", unit)
		active, _ := i.Command(ctx, "systemctl", "is-active", unit)
		if strings.TrimSpace(enabled) != "enabled" && slices.Contains([]string{"inactive", "unknown"},
			strings.TrimSpace(active)) {
			continue
		}
		was = append(was, unit)
		if err := i.systemctl(ctx, "stop and disable "+unit, "disable", "--quiet", "--now", unit); err != nil {
			return err
		}
	}
	if i.DryRun || i.StopSteps == nil || !(disk{i.Root}).exists(path.Join(StateDir, "client")) {
		return nil
	}
	err := i.StopSteps(force)
	if err == nil {
		return nil
	}
	for _, unit := range was {
		_, serr := i.Command(ctx, "systemctl", "enable", "--quiet", "--now", unit)
		err = errors.Join(err, serr)
	}
	return err
}

// emptied removes the folders of muster's own that have become empty.
func (i *Installer) emptied(paths []string) {
	d := disk{i.Root}
	for _, p := range paths {
		for dir := path.Dir(p); i.mayEmpty(dir); dir = path.Dir(dir) {
			if err := os.Remove(d.path(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
				if !errors.Is(err, syscall.ENOTEMPTY) {
					i.tell("folder %s stays: %v", dir, err)
				}
				break
			}
		}
	}
}

// mayEmpty reports whether a folder is one that Install makes: below the prefix, but not its share/man and the like, or
// that of the server's restrictions.
func (i *Installer) mayEmpty(dir string) bool {
	rest, below := strings.CutPrefix(dir, path.Join(i.Prefix, "share")+"/")
	return below && rest != "man" || dir == path.Dir(hardeningFile)
}
