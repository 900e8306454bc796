package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReserveOfRoot: who fills a writable container does not take the blocks that the file system keeps for root.
func TestReserveOfRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system takes root")
	}
	for _, need := range []string{"/dev/loop-control", "/usr/sbin/mkfs.ext4"} {
		if _, err := os.Stat(need); err != nil {
			t.Skipf("a small file system takes %s: %v", need, err)
		}
	}
	runtime.LockOSThread() // and so the thread ends with the test, and its mounts with the thread
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(uid uint32, script string) error {
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		text, err := cmd.CombinedOutput()
		t.Logf("%s", text)
		return err
	}
	err := run(0, "truncate -s 64M disk.img; mkfs.ext4 -q -m 50 disk.img; mkdir lower disk root; "+
		"mount -o loop disk.img disk; mkdir disk/up disk/work; chown 1234:1234 disk/up; chmod 755 ..; chmod 755 .")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = run(0, "umount root; umount disk") }()
	t.Chdir(dir)
	const options = "lowerdir=lower,upperdir=disk/up,workdir=disk/work,redirect_dir=nofollow,metacopy=off,index=off"
	if err := mountFor(1234, "overlay", "root", options); err != nil {
		t.Fatal(err)
	}
	if err := run(1234, "cat /dev/zero >root/full"); err == nil {
		t.Fatal("the disk is never full")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Join(dir, "disk"), &st); err != nil {
		t.Fatal(err)
	}
	if left := int64(st.Bfree) * st.Bsize; left < 20<<20 {
		t.Errorf("%d MiB are left for root, of some 30", left>>20)
	}
}
