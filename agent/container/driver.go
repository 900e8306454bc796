package container

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Images for GPUs bring CUDA but not the driver's libraries, which must be those of the node's
// kernel module. They are put where NVIDIA's images look for them by LD_LIBRARY_PATH, whatever
// distribution an image is of. What AMD's GPUs and InfiniBand take is in the images; their devices
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

// driverLink is a link beside the driver's libraries, by which programs ask for them.
type driverLink struct{ name, to string }

// driver opens the node's driver, if it has one.
func (b *build) driver() error {
	if _, err := os.Stat(driverDevice); err != nil {
		return nil
	}
	files, links, err := driverFiles(libDirs)
	if err != nil {
		return err
	}
	b.links = links
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

// driverFiles lists the libraries of the first folder that has CUDA's, and the links to them.
func driverFiles(dirs []string) (files []string, links []driverLink, err error) {
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
					links = append(links, driverLink{filepath.Base(f), to})
					continue
				}
				files = append(files, f) // a link to elsewhere is mounted as what it leads to
			}
		}
		return files, links, nil
	}
	return nil, nil, nil
}

// linkDriver makes the links to the driver's libraries.
func (b *build) linkDriver() error {
	if len(b.links) == 0 {
		return nil
	}
	dir, err := b.target(driverLibs, true)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for _, l := range b.links {
		err := b.in(dir, func() error { return unix.Symlinkat(l.to, dir, l.name) })
		if err != nil && err != unix.EEXIST {
			return &os.PathError{Op: "link", Path: path.Join(driverLibs, l.name), Err: err}
		}
	}
	return nil
}

// WithDriver has programs find the driver, in a container that has it.
func WithDriver(env []string) []string {
	if _, err := os.Stat(driverLibs); err != nil {
		return env
	}
	return addTo(addTo(env, "LD_LIBRARY_PATH", driverLibs), "PATH", driverBin)
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
