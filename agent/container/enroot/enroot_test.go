package enroot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"enroot.conf": "# ours\nENROOT_MOUNT_HOME yes\nENROOT_REMAP_ROOT=y\nENROOT_ROOTFS_WRITABLE   no\n" +
			"ENROOT_SQUASH_OPTIONS \"-comp lzo -noD\"\n" +
			"ENROOT_DATA_PATH /raid/enroot/data-$(id -u)\nENROOT_CACHE_PATH /x\nENROOT_NEW 1\n" +
			"NVIDIA_VISIBLE_DEVICES all\n#ENROOT_ALLOW_HTTP y\n",
		"environ.d/10.env":         "# x\nA=1\nB=${HOME}/b\n",
		"environ.d/05.env":         "Z=0\n",
		"environ.d/off":            "no",
		"mounts.d/10-system.fstab": "proc /proc proc x-create=dir,nosuid\n",
		"mounts.d/50.fstab": "/raid /raid none x-create=dir,bind,rw,nofail\n" +
			"tmpfs /scratch tmpfs size=1g,mode=1777\n/etc/x /etc/x\n",
		"hooks.d/98-nvidia.sh": "#!/bin/sh\n",
		"hooks.d/50-ours.sh":   "#!/bin/sh\n",
		"hooks.d/51-off.sh":    "x",
		"hooks.d/README":       "x",
	})
	s := Read(dir)
	if !s.MountHome || !s.Root || s.Writable || s.AllowHTTP || s.Error != "" {
		t.Errorf("%+v", s)
	}
	for what, is := range map[string][2]string{
		"squash":  {fmt.Sprint(s.Squash), "[-comp lzo -noD]"},
		"environ": {fmt.Sprint(s.Environ), "[Z=0 A=1 B=${HOME}/b]"},
		"hooks":   {fmt.Sprint(s.Hooks), "[" + dir + "/hooks.d/50-ours.sh]"},
		"store":   {s.data, "/raid/enroot"},
		"mounts": {fmt.Sprint(s.Mounts),
			"[{/raid /raid none [x-create=dir bind rw nofail] " + dir + "/mounts.d/50.fstab:1} " +
				"{tmpfs /scratch tmpfs [size=1g mode=1777] " + dir + "/mounts.d/50.fstab:2} {/etc/x /etc/x none [defaults] " + dir + "/mounts.d/50.fstab:3}]"},
	} {
		if is[0] != is[1] {
			t.Errorf("%s: %s, want %s", what, is[0], is[1])
		}
	}
	told := strings.Join(s.Notes(), "\n")
	for _, want := range []string{"enroot.conf:7: ENROOT_CACHE_PATH has no effect: layers",
		"enroot.conf:8: ENROOT_NEW has no effect: it is not known",
		"NVIDIA_VISIBLE_DEVICES has no effect", "10-system.fstab is left out", "98-nvidia.sh is left out",
		"51-off.sh is left out: it cannot be executed"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q lacks %q", told, want)
		}
	}
	if s := Read(filepath.Join(dir, "none")); s.Error != "" || len(s.Notes()) != 0 || s.Data() != "" {
		t.Errorf("no files: %+v", s)
	}
}

func TestBad(t *testing.T) {
	for name, c := range map[string][2]string{
		"environ.d/x.env":  {"A B\n", "x.env:1: \"A B\" is not NAME=VALUE"},
		"mounts.d/x.fstab": {"\n/x\n", "x.fstab:2: \"/x\" is not SOURCE TARGET TYPE OPTIONS"},
		"mounts.d/y.fstab": {"h:/x /x nfs\n", "y.fstab:1: file systems of type nfs are not mounted"},
		"mounts.d/z.fstab": {"/x /x none idmap\n", "z.fstab:1: the option idmap of a mount is not known"},
		"enroot.conf":      {strings.Repeat("#", maxFile+1), "is larger than"},
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{name: c[0]})
		s := Read(dir)
		if !strings.Contains(s.Error, c[1]) || !strings.Contains(strings.Join(s.Notes(), ""), c[1]) {
			t.Errorf("%s: %q %q", name, s.Error, s.Notes())
		}
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"enroot.conf": "ENROOT_DATA_PATH $HOME/x\n"})
	if s := Read(dir); s.Data() != "" || !strings.Contains(s.Notes()[0], "names no folder that all users share") {
		t.Errorf("%+v", s)
	}
}

func TestExpand(t *testing.T) {
	get := func(name string) string { return map[string]string{"A": "1"}[name] }
	const text = "$A ${A} ${B:-x} ${A:-y} $B"
	for most, want := range map[int]string{100: "1 1 x 1 ", 8: "1 1 x 1 ", 7: "", 3: "", 0: ""} {
		got, err := Expand(text, most, get)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("at most %d bytes: %q, %v", most, got, err)
		}
	}
}
