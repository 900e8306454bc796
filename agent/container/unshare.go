package container

import (
	"fmt"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// spaces are the namespaces that a container may have for itself, by their names.
var spaces = map[string]int{"net": unix.CLONE_NEWNET, "ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS}

// unshare gives the thread namespaces of its own, as the user asks. A network of its own has the loopback alone.
func unshare(b *build) error {
	flags := 0
	for _, name := range b.Spec.Unshare {
		if !cluster.ContainerSpace(name) {
			return fmt.Errorf("--container-unshare=%s: it is none of net, ipc and uts", name)
		}
		flags |= spaces[name]
	}
	if flags == 0 {
		return nil
	}
	if err := unix.Unshare(flags); err != nil {
		return fmt.Errorf("--container-unshare: %w", err)
	}
	if flags&unix.CLONE_NEWNET == 0 {
		return nil
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("--container-unshare=net: begin the loopback: %w", err)
	}
	return nil
}

// loopbackUp starts lo in this thread's network.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
