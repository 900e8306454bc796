package packaging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Places of an installation.
const (
	configDir = "/etc/muster"
	unitDir   = "/etc/systemd/system"
	StateDir  = "/var/lib/muster"
	runDir    = "/run/muster"
	// DownloadDir has the programs that a server gives to machines of other architectures.
	DownloadDir = StateDir + "/download"
	// packagedFile is there when muster came as a package, whose files are not the installer's.
	packagedFile = "/usr/share/muster/packaged"
)

// Roles of a machine.
const (
	Server = "server"
	Client = "client"
	Login  = "login"
)

// File is a file of an installation, below its prefix.
type File struct {
	Path string // as in share/man/man1/sbatch.1
	Text string
}

// Installer makes a machine a member of a cluster.
type Installer struct {
	Role   string
	Root   string // the folder that becomes a machine's /; empty: this machine
	Prefix string // /usr/local
	Source string // the program to install
	// FrontEnds are the names under which the program is called, Files what else belongs to it.
	FrontEnds []string
	Files     []File
	// MoreNames are further names of the program, linked where no other program of the machine has them.
	MoreNames []string
	// Options are those of the daemon, for the file that the units read; empty: leave the file as it is.
	Options      string
	ReplaceSlurm bool
	DryRun       bool // only tell
	Verbose      bool // of each file
	NoStart      bool
	Out          io.Writer

	// Command runs a program and gives its output.
	Command func(ctx context.Context, name string, args ...string) (string, error)
	// Systemd says whether this machine runs systemd now.
	Systemd bool
	// Member says whether this machine has joined a cluster; Join makes it join. A first server does neither.
	Member func() bool
	Join   func(ctx context.Context) error
	// Joins is what Join does, in words; empty: it does nothing.
	Joins string
	// Ready waits until the daemon serves and its machine is in the cluster.
	Ready func(ctx context.Context) error
	// MayLeave refuses to remove what others still need: a member of a group of servers, a node that jobs have.
	// With purge it has the machine leave its cluster.
	MayLeave func(ctx context.Context, purge bool) error
	// Check looks, before anything is written, for what would keep the machine from becoming a member.
	Check func() error
	// StopSteps ends what still runs of jobs here; without force it refuses if there is anything.
	StopSteps func(force bool) error

	changed map[string]bool // texts of actions that were done, and their groups
	count   int
}

// Install makes the machine what it should be. It can be called again at any time.
func (i *Installer) Install(ctx context.Context) error {
	i.changed, i.count = map[string]bool{}, 0
	old, err := i.installed()
	if err != nil {
		return err
	}
	i.ReplaceSlurm = i.ReplaceSlurm || len(old) > 0 // it was decided when muster was installed
	packaged := (disk{i.Root}).exists(packagedFile)
	if packaged && i.Source != "/usr/bin/muster" {
		return fmt.Errorf("muster is installed here as a package: upgrade or remove that, and use its muster install %s to join",
			i.Role)
	}
	if packaged {
		i.Prefix = "/usr"
	} else if err := i.slurmHere(); err != nil {
		return err
	}
	if i.Root == "" && i.Check != nil && !i.Member() {
		if err := i.Check(); err != nil {
			return fmt.Errorf("%w; nothing was changed", err)
		}
	}
	actions, err := i.files(packaged)
	if err != nil {
		return err
	}
	if err := i.do(actions); err != nil {
		return err
	}
	if i.Root == "" && i.Join != nil && !i.Member() {
		if err := i.step(i.Joins, func() error { return i.Join(ctx) }); err != nil {
			return err
		}
	}
	if err := i.start(ctx); err != nil {
		return err
	}
	if i.count == 0 {
		i.tell("nothing to change")
	} else if i.Root == "" {
		i.hints(ctx)
	}
	return nil
}

// hints tell of what is wanted on some machines and is not the installer's to change.
func (i *Installer) hints(ctx context.Context) {
	if dir := path.Join(i.Prefix, "bin"); !slices.Contains(filepath.SplitList(os.Getenv("PATH")), dir) {
		i.tell("%s is not in your PATH; add it, for sudo in secure_path of /etc/sudoers", dir)
	}
	if !i.Systemd {
		return
	}
	for unit, open := range map[string]string{
		"firewalld": "firewall-cmd --permanent --add-port=7440/tcp --add-port=7440/udp && firewall-cmd --reload",
		"ufw":       "ufw allow 7440",
	} {
		if i.unitIs(ctx, "active", unit) {
			i.tell("%s runs here, and members call each other: open the port, e.g. %s", unit, open)
		}
	}
}

func (i *Installer) tell(format string, args ...any) {
	fmt.Fprintf(i.Out, "muster: "+format+"\n", args...)
}

// step does one thing, or says that it would.
func (i *Installer) step(text string, do func() error) error {
	if i.DryRun {
		i.tell("would %s", text)
		return i.try(text, func() error { return nil })
	}
	i.tell("%s", text)
	return i.try(text, do)
}

// try does one thing without a word, unless it fails.
func (i *Installer) try(text string, do func() error) error {
	i.count++
	i.changed[text] = true
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

// do does the actions that are not done yet.
func (i *Installer) do(actions []action) error {
	for _, a := range actions {
		done, err := a.done()
		if err != nil {
			return fmt.Errorf("%s: %w", a.text, err)
		}
		if done {
			continue
		}
		if a.group == "" || i.DryRun && i.Verbose {
			err = i.step(a.text, a.do)
		} else {
			err = i.inGroup(a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inGroup does one of several like actions, or would: the first of them tells of all.
func (i *Installer) inGroup(a action) error {
	would, do := "", a.do
	if i.DryRun {
		would, do = "would ", func() error { return nil }
	}
	if !i.changed[a.group] {
		i.tell("%s%s", would, a.group)
		i.changed[a.group] = true
	}
	return i.try(a.text, do)
}

func (i *Installer) bin(name string) string { return path.Join(i.Prefix, "bin", name) }

// listFile names what was installed, so that it can be removed.
func (i *Installer) listFile() string { return path.Join(i.Prefix, "share/muster/installed") }

// Installed reports whether muster was installed below a prefix of this machine.
func Installed(prefix string) bool {
	i := Installer{Prefix: prefix}
	return disk{}.exists(i.listFile())
}

// unit is the unit of the role.
func (i *Installer) unit() string {
	if i.Role == Server {
		return "muster-server.service"
	}
	return "muster-client.service"
}

// files are the actions that put files in their places.
func (i *Installer) files(packaged bool) (list []action, err error) {
	if !packaged {
		if list, err = i.programFiles(); err != nil {
			return nil, err
		}
	}
	d := disk{i.Root}
	list = append(list, d.folder(configDir, 0o755), d.folder(StateDir, 0o755))
	env := path.Join(configDir, strings.TrimPrefix(strings.TrimSuffix(i.unit(), ".service"), "muster-")+".env")
	options, err := i.environment(env)
	if err != nil {
		return nil, err
	}
	restrict, err := i.hardening(env, options)
	if err != nil {
		return nil, err
	}
	more, err := i.siblings()
	return slices.Concat(list, options, restrict, more), err
}

// hardeningFile restricts the unit of a server.
const hardeningFile = unitDir + "/muster-server.service.d/hardening.conf"

// hardening returns the action that restricts a server which runs no jobs, or takes the restrictions from one that
// does. The options are those of the file env if it stays as it is.
func (i *Installer) hardening(env string, written []action) ([]action, error) {
	d, options := disk{i.Root}, i.Options
	if len(written) == 0 {
		have, err := os.ReadFile(d.path(env))
		if err != nil {
			return nil, err
		}
		options = string(have)
	}
	switch {
	case i.Role == Server && !strings.Contains(options, "--and-client"):
		return []action{d.file(hardeningFile, 0o644, []byte(hardening))}, nil
	case d.exists(hardeningFile):
		return []action{d.removed(hardeningFile)}, nil
	}
	return nil, nil
}

// programFiles are the actions for what a package would hold, and for the list of it.
func (i *Installer) programFiles() (list []action, err error) {
	d := disk{i.Root}
	var paths []string
	add := func(p string, a action, group string) {
		paths = append(paths, p)
		list = append(list, a.of(group))
	}
	for _, p := range i.inTheWay() {
		list = append(list, d.moved(p, p+keptSuffix))
	}
	program, share := i.bin("muster"), path.Join(i.Prefix, "share")
	add(program, d.copied(program, 0o755, i.Source), "")
	for _, n := range slices.Concat(i.FrontEnds, i.freeNames()) {
		add(i.bin(n), d.link(i.bin(n), "muster"), "link Slurm's commands in "+i.bin("")+" to muster")
	}
	for _, f := range i.Files {
		p := path.Join(i.Prefix, f.Path)
		add(p, d.file(p, 0o644, []byte(f.Text)), "write manuals and completion below "+share)
	}
	units, err := Units(program)
	if err != nil {
		return nil, err
	}
	for _, u := range units {
		if u.Name == mungeUnit && i.foreignUnit(u.Name) {
			continue // others than Slurm use it
		}
		p := path.Join(unitDir, u.Name)
		add(p, d.file(p, 0o644, []byte(u.Text)), "write units below "+unitDir)
	}
	old, err := i.installed()
	if err != nil {
		return nil, err
	}
	for _, p := range old {
		if !slices.Contains(paths, p) {
			list = append(list, d.removed(p)) // it was of an older version
		}
	}
	return append(list, d.file(i.listFile(), 0o644, []byte(strings.Join(paths, "\n")+"\n"))), nil
}

// environment is the action that writes the daemon's options into their file, none if that is to stay as somebody
// has edited it.
func (i *Installer) environment(p string) ([]action, error) {
	d, options := disk{i.Root}, i.Options
	untouched, err := Environment("")
	if err != nil {
		return nil, err
	}
	have, err := os.ReadFile(d.path(p))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if options == "" && len(have) > 0 && string(have) != untouched {
		return nil, nil
	}
	if i.Role == Login {
		options = strings.TrimSpace("--login " + options)
	}
	text, err := Environment(options)
	if err != nil {
		return nil, err
	}
	return []action{d.file(p, 0o644, []byte(text))}, nil
}

// siblings are the programs for other architectures that lie beside the one to install, as in a bundle: a server gives
// them to machines that want them.
func (i *Installer) siblings() (list []action, err error) {
	if i.Role != Server {
		return nil, nil
	}
	for _, arch := range architectures {
		from := filepath.Join(filepath.Dir(i.Source), programName+arch)
		if from == i.Source {
			continue
		}
		ours, err := isOurs(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !ours {
			i.tell("%s is left out: others than root may have written it", from)
			continue
		}
		p := path.Join(DownloadDir, programName+arch)
		list = append(list, disk{i.Root}.copied(p, 0o755, from))
	}
	return list, nil
}

// isOurs reports whether a file is a plain one that nobody but this user or root can have written: other machines run
// it as root, and the program to install may lie in /tmp, where everybody may put another beside it.
func isOurs(file string) (bool, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(file, &st); err != nil {
		return false, &fs.PathError{Op: "lstat", Path: file, Err: err}
	}
	const kindAndOthers = syscall.S_IFMT | 0o022
	own := slices.Contains([]int{0, os.Geteuid()}, int(st.Uid))
	return own && st.Mode&kindAndOthers == syscall.S_IFREG, nil
}

// installed reads the list of what was installed before.
func (i *Installer) installed() ([]string, error) {
	text, err := os.ReadFile(disk{i.Root}.path(i.listFile()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []string
	for _, p := range strings.Split(string(text), "\n") {
		if path.IsAbs(p) && path.Clean(p) == p && p != "/" {
			list = append(list, p)
		}
	}
	return list, err
}

// start has systemd run the daemon, again if what it runs has changed, and waits for it.
func (i *Installer) start(ctx context.Context) error {
	if i.Root != "" || i.NoStart {
		return nil
	}
	if !i.Systemd {
		i.tell("systemd does not run here: have your init run %s", i.byHand())
		return nil
	}
	stale := i.unitsChanged()
	if err := i.reload(ctx); err != nil {
		return err
	}
	unit := i.unit()
	if !i.unitIs(ctx, "enabled", unit) {
		if err := i.systemctl(ctx, "enable "+unit, "enable", "--quiet", unit); err != nil {
			return err
		}
	}
	switch running := i.unitIs(ctx, "active", unit); {
	case running && !stale && !i.daemonChanged(ctx, unit):
		return nil
	case running:
		if err := i.systemctl(ctx, "restart "+unit+"; jobs run on", "restart", unit); err != nil {
			return err
		}
	default:
		if err := i.systemctl(ctx, "start "+unit, "start", unit); err != nil {
			return fmt.Errorf("%w; journalctl -u %s says why", err, unit)
		}
	}
	if i.DryRun {
		return nil
	}
	if err := i.Ready(ctx); err != nil {
		return fmt.Errorf("wait for %s: %w; journalctl -u %s says more", unit, err, unit)
	}
	return nil
}

// systemctl has systemd do something.
func (i *Installer) systemctl(ctx context.Context, text string, args ...string) error {
	return i.step(text, func() error {
		_, err := i.Command(ctx, "systemctl", args...)
		return err
	})
}

// reload has systemd read its units, if one of them was written or removed.
func (i *Installer) reload(ctx context.Context) error {
	if !i.unitsChanged() {
		return nil
	}
	return i.systemctl(ctx, "have systemd read its units", "daemon-reload")
}

// unitIs reports whether systemd says that a unit is enabled, or active.
func (i *Installer) unitIs(ctx context.Context, state, unit string) bool {
	text, _ := i.Command(ctx, "systemctl", "is-"+state, unit) // it fails where it is not
	return strings.TrimSpace(text) == state
}

func (i *Installer) byHand() string {
	words := map[string]string{Server: "server", Client: "client", Login: "client --login"}
	return i.bin("muster") + " " + words[i.Role]
}

// unitsChanged reports whether this run wrote or removed a unit.
func (i *Installer) unitsChanged() bool {
	for text := range i.changed {
		if strings.Contains(text, unitDir) {
			return true
		}
	}
	return false
}

// daemonChanged reports whether the daemon should run with another program or other options than it does.
func (i *Installer) daemonChanged(ctx context.Context, unit string) bool {
	for text := range i.changed {
		if text == "write "+i.bin("muster") || strings.HasPrefix(text, "write "+configDir) {
			return true
		}
	}
	text, err := i.Command(ctx, "systemctl", "show", "-P", "MainPID", unit)
	pid := strings.TrimSpace(text)
	if err != nil || pid == "" || pid == "0" {
		return false
	}
	runs, err := os.Stat("/proc/" + pid + "/exe")
	if err != nil {
		return false
	}
	want, err := os.Stat(i.bin("muster"))
	return err == nil && !os.SameFile(runs, want)
}
