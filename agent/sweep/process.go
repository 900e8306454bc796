package sweep

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ticks is the unit of the times in /proc, as all of Linux's architectures that muster is built for have it.
const ticks = 100

// process tells of a process: its name, its user and when it began, within a tick. Not ok if there is none.
func process(pid int) (name string, user uint32, began time.Time, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	info, err := os.Stat(dir)
	if err != nil {
		return "", 0, began, false
	}
	if st, is := info.Sys().(*syscall.Stat_t); is {
		user = st.Uid
	}
	text, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return "", 0, began, false
	}
	head, rest, _ := strings.Cut(string(text), "(")
	end := strings.LastIndex(rest, ")")
	if head == "" || end < 0 {
		return "", 0, began, false
	}
	name = rest[:end]
	f := strings.Fields(rest[end+1:]) // from the third column on
	const state, start = 0, 19
	if len(f) <= start || f[state] == "Z" {
		return "", 0, began, false
	}
	after, err := strconv.ParseInt(f[start], 10, 64)
	boot := bootTime()
	if err != nil || boot.IsZero() {
		return "", 0, began, false
	}
	return name, user, boot.Add(time.Duration(after) * (time.Second / ticks)), true
}

// serverOfGPU is what the program of a process is named that serves jobs and stays: CUDA's multi-process service.
const serverOfGPU = "nvidia-cuda-mps"

// gpuProgramFolders are where drivers put the programs of that service.
var gpuProgramFolders = [...]string{
	"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/nvidia/bin", "/opt/nvidia/bin",
}

// servesGPUs reports whether a process is of that service. Its name says nothing, since a user can choose it: its
// program has to be the file that the driver has put into a folder of root's.
func servesGPUs(pid int) bool {
	exe := "/proc/" + strconv.Itoa(pid) + "/exe"
	path, _ := os.Readlink(exe)
	name := filepath.Base(path)
	if !strings.HasPrefix(name, serverOfGPU) {
		return false
	}
	runs, ok := knownFile(exe)
	return ok && slices.ContainsFunc(gpuProgramFolders[:], func(dir string) bool {
		here, ok := knownFile(dir + "/" + name)
		return ok && here == runs
	})
}

// file names a file of root's that nobody else can write.
type file struct {
	ino          uint64
	major, minor uint32
}

// knownFile is a file as the kernel knows it. No file system is asked: that of a user may not answer.
func knownFile(path string) (file, bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS, &st)
	roots := st.Uid == 0 && st.Mode&0o022 == 0
	return file{st.Ino, st.Dev_major, st.Dev_minor}, err == nil && roots
}

// bootTime is when the machine was booted.
func bootTime() time.Time {
	text, err := os.ReadFile("/proc/uptime")
	up, perr := strconv.ParseFloat(strings.SplitN(string(text)+" ", " ", 2)[0], 64)
	if err != nil || perr != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(up * float64(time.Second)))
}
