// Package enroot reads what a site has said of containers in the files of enroot, which nodes that ran Pyxis have in
// /etc/enroot: settings, variables, mounts and hooks. Settings that still have a meaning hold for muster's
// containers; Notes says why the others do not.
package enroot

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dir is the folder of the files: ENROOT_SYSCONF_PATH, or /etc/enroot.
func Dir() string { return cmp.Or(os.Getenv("ENROOT_SYSCONF_PATH"), "/etc/enroot") }

// Site is what a node's files say.
type Site struct {
	MountHome bool     `json:"mount_home,omitempty"`
	Writable  bool     `json:"writable,omitempty"`
	Root      bool     `json:"root,omitempty"`
	AllowHTTP bool     `json:"allow_http,omitempty"`
	Squash    []string `json:"squash,omitempty"`  // options of mksquashfs
	Environ   []string `json:"environ,omitempty"` // NAME=VALUE, as it stands there
	Mounts    []Mount  `json:"mounts,omitempty"`
	Hooks     []string `json:"hooks,omitempty"` // programs, in their order
	// Error is why the files cannot be gone by: no container is made then.
	Error string `json:"error,omitempty"`

	data  string
	notes []string
}

// Mount is a line of a .fstab file.
type Mount struct {
	Source string   `json:"source"`
	Target string   `json:"target"`
	Type   string   `json:"type"`
	Flags  []string `json:"flags,omitempty"`
	Where  string   `json:"where"` // FILE:LINE
}

// maxFile bounds a file of the site's.
const maxFile = 1 << 20

// setting is a key of enroot.conf.
type setting struct {
	set func(s *Site, value string)
	why string // it has no effect
}

// settings are all keys that mean something here, or whose work is done in another way. Others are told.
var settings = map[string]setting{
	"ENROOT_MOUNT_HOME":        {set: func(s *Site, v string) { s.MountHome = yes(v) }},
	"ENROOT_ROOTFS_WRITABLE":   {set: func(s *Site, v string) { s.Writable = yes(v) }},
	"ENROOT_REMAP_ROOT":        {set: func(s *Site, v string) { s.Root = yes(v) }},
	"ENROOT_ALLOW_HTTP":        {set: func(s *Site, v string) { s.AllowHTTP = yes(v) }},
	"ENROOT_SQUASH_OPTIONS":    {set: func(s *Site, v string) { s.Squash = strings.Fields(v) }},
	"ENROOT_DATA_PATH":         {set: (*Site).setData},
	"ENROOT_CACHE_PATH":        {why: "layers are kept beside the images, for an hour"},
	"ENROOT_RUNTIME_PATH":      {why: "the daemon keeps such files below its --data"},
	"ENROOT_TEMP_PATH":         {why: "images are unpacked where they stay"},
	"ENROOT_CONFIG_PATH":       {why: "credentials are in ~/.config/enroot, or where a user's own variable says"},
	"ENROOT_LIBRARY_PATH":      {why: "there is no enroot"},
	"ENROOT_SYSCONF_PATH":      {why: "the daemon's own ENROOT_SYSCONF_PATH says where this file is"},
	"ENROOT_GZIP_PROGRAM":      {why: "layers are unpacked by muster itself"},
	"ENROOT_ZSTD_OPTIONS":      {why: "layers are unpacked by muster itself"},
	"ENROOT_MAX_PROCESSORS":    {why: "layers are unpacked by muster itself"},
	"ENROOT_MAX_CONNECTIONS":   {why: "nodes get layers from each other, the registry sends each once"},
	"ENROOT_CONNECT_TIMEOUT":   {why: "registries have 30 s to answer"},
	"ENROOT_TRANSFER_TIMEOUT":  {why: "a download ends when nothing comes for a minute"},
	"ENROOT_TRANSFER_RETRIES":  {why: "what broke off goes on where it ended"},
	"ENROOT_LOGIN_SHELL":       {why: "no login shell is started in a container"},
	"ENROOT_ALLOW_SUPERUSER":   {why: "root's containers are as everybody's"},
	"ENROOT_ALLOW_DEV":         {why: "/dev is the node's; the job's cgroup says which devices may be used"},
	"ENROOT_RESTRICT_DEV":      {why: "/dev is the node's; the job's cgroup says which devices may be used"},
	"ENROOT_NATIVE_OVERLAYFS":  {why: "the kernel's overlayfs is always used"},
	"ENROOT_SLURM_HOOK":        {why: "muster runs the steps itself"},
	"ENROOT_FORCE_OVERRIDE":    {why: "nothing is made that could be in the way"},
	"ENROOT_SET_USER_DIRS":     {why: "there are no folders of users"},
	"ENROOT_BUNDLE_ALL":        {why: "muster makes no bundles"},
	"ENROOT_BUNDLE_CHECKSUM":   {why: "muster makes no bundles"},
	"ENROOT_ROOTFS_RW":         {set: func(s *Site, v string) { s.Writable = yes(v) }},
	"ENROOT_ROOTFS":            {why: "hooks are told it"},
	"ENROOT_UNSQUASH_OPTIONS":  {why: "the kernel reads squashed images"},
	"ENROOT_CONTAINERD_SOCKET": {why: "images come from registries, files and folders"},
}

func yes(v string) bool {
	switch strings.ToLower(v) {
	case "y", "yes", "true", "1", "on":
		return true
	}
	return false
}

// setData takes the folder of containers. Enroot has one for each user: ours is beside these, root's alone.
func (s *Site) setData(v string) {
	at, _, cut := strings.Cut(v, "$")
	if cut {
		at = filepath.Dir(at + "x")
	}
	if !filepath.IsAbs(at) || filepath.Clean(at) == "/" {
		s.note("ENROOT_DATA_PATH=%s has no effect: it names no folder that all users share", v)
		return
	}
	s.data = filepath.Clean(at)
}

// Data is ENROOT_DATA_PATH without what each user has of it, "" if it is not set.
func (s *Site) Data() string { return s.data }

// Notes tells what has no effect, and why.
func (s *Site) Notes() []string { return s.notes }

// Note tells something more.
func (s *Site) Note(format string, args ...any) { s.note(format, args...) }

func (s *Site) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// Read reads the files of a folder; one that is not there says nothing.
func Read(dir string) *Site {
	s := &Site{}
	for _, do := range []func(*Site, string) error{readSettings, readEnviron, readMounts, readHooks} {
		if err := do(s, dir); err != nil {
			s.Error = err.Error()
			s.note("%s; no container is made until that is mended", s.Error)
			return s
		}
	}
	return s
}

// readLines gives the lines of a file that say something.
func readLines(path string, each func(where, line string) error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	if len(text) > maxFile {
		return fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return Lines(path, text, each)
}

// Lines gives the lines of a text that say something.
func Lines(name string, text []byte, each func(where, line string) error) error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if l := strings.TrimSpace(string(line)); l != "" && l[0] != '#' {
			if err := each(fmt.Sprintf("%s:%d", name, n), l); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSettings reads enroot.conf and the files of enroot.conf.d: KEY VALUE, or KEY=VALUE.
func readSettings(s *Site, dir string) error {
	take := func(where, line string) error {
		key, value := line, ""
		if i := strings.IndexAny(line, " \t="); i > 0 {
			key, value = line[:i], strings.Trim(strings.TrimLeft(line[i:], " \t="), `"'`)
		}
		s.setting(where, key, value)
		return nil
	}
	if err := readLines(filepath.Join(dir, "enroot.conf"), take); err != nil {
		return err
	}
	return s.eachLine(dir, "enroot.conf.d", ".conf", take)
}

func (s *Site) setting(where, key, value string) {
	how, known := settings[key]
	switch {
	case !known && strings.HasPrefix(key, "ENROOT_"):
		s.note("%s: %s has no effect: it is not known here", where, key)
	case !known:
		s.note("%s: %s has no effect: variables of containers stand in environ.d", where, key)
	case how.set == nil:
		s.note("%s: %s has no effect: %s", where, key, how.why)
	case value != "":
		how.set(s, value)
	}
}

// list gives a folder's files of one kind, in the order of their names.
func list(dir, kind, ending string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, kind, "*"+ending)) // the pattern is right
	slices.Sort(files)
	return files
}

// eachLine gives the lines of all files of one kind.
func (s *Site) eachLine(dir, kind, ending string, each func(where, line string) error) error {
	for _, f := range list(dir, kind, ending) {
		if s.leftOut(f) {
			continue
		}
		if err := readLines(f, each); err != nil {
			return err
		}
	}
	return nil
}

// Kind is a folder of files, of the site or of a user. Add takes the text of one; nil: they are programs.
type Kind struct {
	Dir, Ending string
	Add         func(s *Site, name string, text []byte) error
}

// Kinds are those that users have, too.
var Kinds = [...]Kind{
	{"environ.d", ".env", (*Site).addEnviron},
	{"mounts.d", ".fstab", (*Site).addMounts},
	{"hooks.d", ".sh", nil},
}

// Stock reports whether a file is one that enroot brings.
func Stock(file string) bool { return stock[filepath.Base(file)] != "" }

func (s *Site) addEnviron(name string, text []byte) error { return Lines(name, text, s.environ) }

func (s *Site) environ(where, line string) error {
	name, _, ok := strings.Cut(line, "=")
	if !ok || name == "" || strings.ContainsAny(name, " \t") {
		return fmt.Errorf("%s: %q is not NAME=VALUE", where, line)
	}
	s.Environ = append(s.Environ, line)
	return nil
}

func readEnviron(s *Site, dir string) error { return s.eachLine(dir, "environ.d", ".env", s.environ) }

// stock are files that enroot brings, whose work muster does itself.
var stock = map[string]string{
	"10-system.fstab":     "a container has the node's /proc, /sys and /dev, and its own /tmp, /var/tmp and /run",
	"20-config.fstab":     "a container has the node's /etc/hosts, /etc/hostname and /etc/resolv.conf",
	"30-lxcfs.fstab":      "a container has the node's /proc",
	"10-aptfix.sh":        "where --container-remap-root has one user, apt takes -o APT::Sandbox::User=root",
	"10-cgroups.sh":       "a container has the node's /sys",
	"10-devices.sh":       "a container has the node's /dev",
	"10-home.sh":          "--container-mount-home, ENROOT_MOUNT_HOME",
	"10-localtime.sh":     "a container has its image's /etc/localtime: TZ in environ.d says another one",
	"10-shadow.sh":        "the user and the group have names in each container",
	"50-slurm-pmi.sh":     "MPI's process managers are in each container",
	"98-nvidia.sh":        "the driver's files are in each container, by the node's CDI file or as they are found",
	"99-mellanox.sh":      "a container has the node's /dev, with /dev/infiniband",
	"50-mig-config.sh":    "muster gpu divides GPUs",
	"50-slurm-pytorch.sh": "", // it writes variables alone
}

// leftOut reports whether a file is one of enroot's own that is not gone by, and tells so.
func (s *Site) leftOut(file string) bool {
	why := stock[filepath.Base(file)]
	if why != "" {
		s.note("%s is left out: %s", file, why)
	}
	return why != ""
}

func (s *Site) addMounts(name string, text []byte) error {
	if Stock(name) {
		return nil
	}
	return Lines(name, text, s.mount)
}

func (s *Site) mount(where, line string) error {
	m, err := ParseMount(where, line)
	s.Mounts = append(s.Mounts, m)
	return err
}

func readMounts(s *Site, dir string) error { return s.eachLine(dir, "mounts.d", ".fstab", s.mount) }

// flags are the options of a mount that are known, by the type of what is mounted; those that end with = have a value.
var flags = map[string]string{
	"none":  common + "bind rbind private rprivate slave rslave ",
	"tmpfs": common + "mode= size= ",
}

const common = " defaults ro rw suid nosuid dev nodev exec noexec nofail noauto relatime noatime " +
	"x-create=auto x-create=dir x-create=file x-detach "

// ParseMount reads a line as fstab has it: SOURCE TARGET TYPE OPTIONS.
func ParseMount(where, line string) (Mount, error) {
	f := strings.Fields(line)
	if len(f) < 2 {
		return Mount{}, fmt.Errorf("%s: %q is not SOURCE TARGET TYPE OPTIONS", where, line)
	}
	f = append(f, "none", "defaults")
	if len(f) == 3+2 { // the type alone is given
		f[3] = "defaults"
	}
	m := Mount{Source: f[0], Target: f[1], Type: f[2], Flags: strings.Split(f[3], ","), Where: where}
	if m.Type == "bind" || m.Type == "auto" {
		m.Type = "none"
	}
	known, ok := flags[m.Type]
	if !ok {
		return m, fmt.Errorf("%s: file systems of type %s are not mounted in a container, only folders and files of "+
			"the node (none) and tmpfs", where, m.Type)
	}
	for _, o := range m.Flags {
		name, _, _ := strings.Cut(o, "=")
		if !strings.Contains(known, " "+o+" ") && !strings.Contains(known, " "+name+"= ") {
			return m, fmt.Errorf("%s: the option %s of a mount is not known here; these are:%s", where, o,
				strings.TrimRight(known, " "))
		}
	}
	return m, nil
}

// Has reports whether an option is given.
func (m *Mount) Has(option string) bool { return slices.Contains(m.Flags, option) }

func readHooks(s *Site, dir string) error {
	for _, f := range list(dir, "hooks.d", ".sh") {
		if s.leftOut(f) {
			continue
		}
		info, err := os.Stat(f)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			s.note("%s is left out: it cannot be executed", f)
			continue
		}
		s.Hooks = append(s.Hooks, f)
	}
	return nil
}

// Expand puts the values of variables into a text: $NAME, ${NAME}, ${NAME:-DEFAULT}. A result of more than most bytes
// is an error.
func Expand(text string, most int, get func(name string) string) (string, error) {
	left := most
	out := os.Expand(text, func(name string) string {
		name, other, _ := strings.Cut(name, ":-")
		value := cmp.Or(get(name), other)
		kept := value[:min(len(value), max(left, 0))]
		left -= len(value)
		return kept
	})
	if left < 0 || len(out) > most {
		return "", fmt.Errorf("it is longer than %d bytes", most)
	}
	return out, nil
}
