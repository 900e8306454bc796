package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dev.muster/agent/container/cdi"
	"golang.org/x/sys/unix"
)

// Images for GPUs bring CUDA but not the driver's libraries, which must be those of the node's
// kernel module. They are put where NVIDIA's images look for them by LD_LIBRARY_PATH, whatever
// distribution an image is of. Images have the libraries for AMD's GPUs and InfiniBand; the devices
// are in /dev.
const (
	driverDir  = "/usr/local/nvidia"
	driverLibs = driverDir + "/lib64"
	driverBin  = driverDir + "/bin"
	// driverDevice is there on nodes with NVIDIA's driver.
	driverDevice = "/dev/nvidiactl"
)

// libDirs are where a node may have the libraries; programs is where it has what goes with them.
var (
	libDirs  = []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}
	programs = []string{"/usr/bin/nvidia-smi", "/usr/bin/nvidia-debugdump",
		"/usr/bin/nvidia-cuda-mps-control", "/usr/bin/nvidia-cuda-mps-server"}
)

// driverNames begin the names of libraries for computing, for video, and of the management.
var driverNames = []string{"libcuda.so.", "libcudadebugger.so.", "libnvcuvid.so.",
	"libnvidia-ml.so.", "libnvidia-cfg.so.",
	"libnvidia-ptxjitcompiler.so.", "libnvidia-nvvm", "libnvidia-opencl.so.", "libnvidia-compiler.so.",
	"libnvidia-encode.so.",
	"libnvidia-opticalflow.so.", "libnvidia-allocator.so.", "libnvidia-gpucomp.so.", "libnvidia-pkcs11",
	"libnvidia-sandboxutils.so."}

// driver opens the node's driver, if it has one: what its files of the Container Device Interface say, or what is
// found.
func (b *build) driver() error {
	edits, err := cdi.Read(cdi.Dirs)
	if err != nil {
		return err
	}
	if len(edits.Mounts) > 0 {
		return b.edit(&edits)
	}
	if _, err := os.Stat(driverDevice); err != nil {
		return nil
	}
	files, links, err := driverFiles(libDirs)
	if err != nil {
		return err
	}
	b.links = links
	b.config.libs = []string{driverLibs}
	for _, f := range files {
		if err := b.node(f, source{target: path.Join(driverLibs, filepath.Base(f)), attr: still}); err != nil {
			return err
		}
	}
	for _, f := range programs {
		err := b.node(f, source{target: path.Join(driverBin, filepath.Base(f)), attr: still})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// mountFlags are the options of a mount that are kept.
var mountFlags = map[string]uint64{"ro": still, "nosuid": unix.MOUNT_ATTR_NOSUID, "nodev": unix.MOUNT_ATTR_NODEV,
	"noexec": unix.MOUNT_ATTR_NOEXEC}

// edit opens what the node's files say.
func (b *build) edit(e *cdi.Edits) error {
	for _, m := range e.Mounts {
		s := source{target: path.Clean(m.Container), deep: m.Flag("rbind")}
		for name, attr := range mountFlags {
			if m.Flag(name) {
				s.attr |= attr
			}
		}
		if err := b.node(m.Host, s); err != nil {
			return fmt.Errorf("the driver, as %s have it: %w", strings.Join(cdi.Dirs, " and "), err)
		}
	}
	b.links = e.Links
	b.config.edit(e)
	return nil
}

func (c *Config) edit(e *cdi.Edits) {
	c.libs = e.Folders
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], e.Env...)
}

// Driver has programs find the driver in a container that another step has made. It is called before that is
// entered.
func (c *Config) Driver() error {
	edits, err := cdi.Read(cdi.Dirs)
	if err != nil {
		return err
	}
	c.edit(&edits)
	if _, err := os.Stat(driverDevice); err == nil && len(edits.Mounts) == 0 {
		c.libs = []string{driverLibs}
	}
	return nil
}

// driverFiles lists the libraries of the first folder that has CUDA's, and the links to them.
func driverFiles(dirs []string) (files []string, links []cdi.Link, err error) {
	for _, dir := range dirs {
		if list, _ := filepath.Glob(filepath.Join(dir, driverNames[0]+"*")); len(list) == 0 {
			continue
		}
		for _, name := range driverNames {
			list, err := filepath.Glob(filepath.Join(dir, name+"*"))
			if err != nil {
				return nil, nil, err
			}
			for _, f := range list {
				to, err := os.Readlink(f)
				if err == nil && !strings.Contains(to, "/") {
					links = append(links, cdi.Link{To: to, At: path.Join(driverLibs, filepath.Base(f))})
					continue
				}
				files = append(files, f) // a link to elsewhere is mounted as what it leads to
			}
		}
		return files, links, nil
	}
	return nil, nil, nil
}

// linkDriver makes the links to the driver's libraries; what the image has in their place goes.
func (b *build) linkDriver() error {
	for _, l := range b.links {
		if err := b.link(l); err != nil {
			return &os.PathError{Op: "link", Path: l.At, Err: err}
		}
	}
	return nil
}

func (b *build) link(l cdi.Link) error {
	dir, err := b.target(path.Dir(path.Clean("/"+l.At)), true)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	name := path.Base(l.At)
	return b.in(dir, func() error {
		err := unix.Symlinkat(l.To, dir, name)
		if err != unix.EEXIST {
			return err
		}
		err = unix.Unlinkat(dir, name, 0)
		if err == unix.EBUSY { // the driver's file itself is mounted there
			return nil
		}
		return errors.Join(err, unix.Symlinkat(l.To, dir, name))
	})
}

// WithDriver has programs find the driver, in a container that has it.
func (c *Config) WithDriver(env []string) []string {
	for _, dir := range c.libs {
		env = addTo(env, "LD_LIBRARY_PATH", dir)
	}
	if slices.Contains(c.libs, driverLibs) {
		env = addTo(env, "PATH", driverBin)
	}
	return env
}

// addTo has a list of folders in an environment end with one more.
func addTo(env []string, name, dir string) []string {
	for i, v := range env {
		list, ok := strings.CutPrefix(v, name+"=")
		if !ok {
			continue
		}
		for have := range strings.SplitSeq(list, ":") {
			if have == dir {
				return env
			}
		}
		if list != "" {
			dir = list + ":" + dir
		}
		env[i] = name + "=" + dir
		return env
	}
	return append(env, name+"="+dir)
}
