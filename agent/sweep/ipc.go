package sweep

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dev.muster/agent/userfile"
	"golang.org/x/sys/unix"
)

// sharedAtOnce is how many names of a folder are held at a time.
const sharedAtOnce = 1024

// firstUser is the least user id of a person.
const firstUser = 1000

// ipcKind is a kind of System V object: where the kernel lists them, and how one is removed by its number.
type ipcKind struct {
	list, id string
	remove   func(id int) error
}

func ipcControl(call uintptr, second bool) func(int) error {
	return func(id int) error {
		cmd, third := uintptr(unix.IPC_RMID), uintptr(0)
		if second { // semctl(id, number, command)
			cmd, third = 0, unix.IPC_RMID
		}
		if _, _, no := unix.Syscall(call, uintptr(id), cmd, third); no != 0 {
			return no
		}
		return nil
	}
}

var ipcKinds = []ipcKind{
	{"shm", "shmid", ipcControl(unix.SYS_SHMCTL, false)},
	{"msg", "msqid", ipcControl(unix.SYS_MSGCTL, false)},
	{"sem", "semid", ipcControl(unix.SYS_SEMCTL, true)},
}

// ipcOf lists the numbers of a user's objects from a table of /proc/sysvipc.
func ipcOf(table, id string, uid uint32) (ids []int) {
	var names []string
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if names == nil {
			names = f
			continue
		}
		number, owner := -1, -1
		for i, name := range names {
			if i >= len(f) {
				break
			}
			switch v, _ := strconv.Atoi(f[i]); name {
			case id:
				number = v
			case "uid":
				owner = v
			}
		}
		if number >= 0 && owner == int(uid) {
			ids = append(ids, number)
		}
	}
	return ids
}

// IPC removes what a user has left in the machine's memory: shared memory, queues and semaphores of System V,
// and files in /dev/shm. Those of root and the system's own users are left alone, as by systemd's RemoveIPC.
func IPC(uid uint32, log *slog.Logger) {
	if uid < firstUser || os.Geteuid() != 0 {
		return
	}
	gone := 0
	for _, k := range ipcKinds {
		table, _ := os.ReadFile("/proc/sysvipc/" + k.list) // a kernel without them has none
		for _, id := range ipcOf(string(table), k.id, uid) {
			if err := k.remove(id); err != nil {
				log.Warn("an IPC object could not be removed", "kind", k.list, "id", id, "user", uid, "err", err)
				continue
			}
			gone++
		}
	}
	gone += removeShared("/dev/shm", uid, log)
	if gone > 0 {
		log.Info("what a user's jobs left in memory was removed", "user", uid, "count", gone)
	}
}

// removeShared removes what a user owns directly in a folder, and tells how much that was. There may be any number of
// files, and folders in each other to any depth.
func removeShared(dir string, uid uint32, log *slog.Logger) (gone int) {
	f, err := os.Open(dir)
	if err != nil {
		return 0
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(sharedAtOnce)
		for _, name := range names {
			path := filepath.Join(dir, name)
			var st unix.Stat_t
			if unix.Lstat(path, &st) != nil || st.Uid != uid {
				continue
			}
			if err := userfile.Remove(path); err != nil {
				log.Warn("a file in memory could not be removed", "path", path, "user", uid, "err", err)
				continue
			}
			gone++
		}
		if err != nil { // the end, mostly
			return gone
		}
	}
}
