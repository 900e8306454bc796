package container

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// scratch are folders of every container that are empty at first and can be written to.
var scratch = []struct{ path, mode string }{{"/tmp", "1777"}, {"/var/tmp", "1777"}, {"/run", "1777"}}

// open opens all of the node that the container shall have, while the node's names are still there.
func (b *build) open() error {
	always := []source{{target: "/proc", attr: quiet, deep: true}, {target: "/sys", attr: quiet | still, deep: true},
		{target: "/dev", deep: true}}
	for _, s := range always {
		if err := b.node(s.target, s); err != nil {
			return err
		}
	}
	for _, f := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/hostname"} {
		if err := b.node(f, source{target: f, attr: quiet | still}); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	if err := b.node(b.Spec.Self, source{target: Program, attr: still | unix.MOUNT_ATTR_NOSUID}); err != nil {
		return err
	}
	if err := b.driver(); err != nil {
		return err
	}
	if sock := b.Spec.Sock; sock != "" {
		if dir := filepath.Dir(sock); !shared[dir] { // the folder: a daemon that was restarted has another socket there
			sock = dir
		}
		if err := b.node(sock, source{target: sock}); err != nil {
			return err
		}
	}
	if b.Script != "" {
		if err := b.node(b.Script, source{target: b.Script, attr: still}); err != nil {
			return err
		}
	}
	if b.Folder != "" {
		if err := b.node(b.Folder, source{target: b.Folder}); err != nil {
			return err
		}
	}
	if err := readOwn(b); err != nil {
		return err
	}
	if err := openSite(b); err != nil {
		return err
	}
	return b.openMounts()
}

// shared are folders of which a container gets no more than the socket in them.
var shared = map[string]bool{"/": true, "/tmp": true, "/run": true, "/var/run": true, "/var": true,
	"/etc": true, "/root": true}

// openMounts opens what the user asked for, with the user's rights: what may not be read is not
// mounted.
func (b *build) openMounts() error {
	list := b.Spec.Mounts
	for _, s := range b.Spec.Scripts {
		list = append([]cluster.ContainerMount{{Source: s, Target: s, ReadOnly: true}}, list...)
	}
	if b.Spec.MountHome {
		if b.Spec.Home == "" {
			return fmt.Errorf("--container-mount-home: this node knows no home of %s", b.Spec.User)
		}
		list = append([]cluster.ContainerMount{{Source: b.Spec.Home, Target: b.Spec.Home}}, list...)
	}
	for _, m := range list {
		if err := b.openMount(m); err != nil {
			return fmt.Errorf("--container-mounts: %w", err)
		}
	}
	for _, f := range b.Spec.Sent { // above what is mounted over their folders
		if err := b.openMount(cluster.ContainerMount{Source: f, Target: f, ReadOnly: true}); err != nil {
			return fmt.Errorf("--bcast: %w", err)
		}
	}
	return nil
}

func (b *build) openMount(m cluster.ContainerMount) error {
	s := source{target: path.Clean(m.Target)}
	if s.target == "/" {
		return fmt.Errorf("%s cannot be mounted at /: that is the image, --container-image=%[1]s", m.Source)
	}
	if m.ReadOnly {
		s.attr |= still
	}
	if m.Private {
		s.spread = unix.MS_PRIVATE
	}
	if err := roomForMount(b); err != nil {
		return err
	}
	fd, dir, err := openReadable(b, m.Source)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if m.File && dir || m.Dir && !dir {
		return fmt.Errorf("%s: x-create asks for the wrong kind of target", m.Source)
	}
	if err := b.clone(fd, m.Source, &s, true); err != nil {
		return err
	}
	b.user = append(b.user, s)
	return nil
}

// inside mounts all that was opened. The image is the root meanwhile.
func (b *build) inside() error {
	for _, s := range b.sys[:3] { // /proc, /sys and /dev
		if err := b.attach(s); err != nil {
			return err
		}
	}
	for _, t := range scratch {
		if err := b.empty(t.path, t.mode, ""); err != nil {
			return err
		}
	}
	for _, s := range b.sys[3:] {
		if err := b.attach(s); err != nil {
			return err
		}
	}
	for _, do := range []func() error{b.names, b.linkDriver, b.accounts} {
		if err := do(); err != nil {
			return err
		}
	}
	if err := attachSite(b); err != nil {
		return err
	}
	for _, s := range b.user {
		if err := b.attach(s); err != nil {
			return fmt.Errorf("--container-mounts: %w", err)
		}
	}
	return nil
}
