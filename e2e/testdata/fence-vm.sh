#!/bin/busybox sh
# The first process of a machine that TestFenceVM boots: it mounts what the kernel's command line asks for (cgroups=v2, hybrid or v1)
# and runs the tests of fences there. The last line on the console is "fence tests: " and the exit code.
/bin/busybox mkdir -p /proc /sys /tmp /run /dev /root
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/pts /dev/shm
/bin/busybox mount -t devpts devpts /dev/pts
/bin/busybox mount -t tmpfs tmp /tmp
/bin/busybox mount -t tmpfs shm /dev/shm
/bin/busybox chmod 1777 /tmp /dev/shm
/bin/busybox --install -s /bin
ln -s /proc/self/fd /dev/fd
export PATH=/bin:/muster HOME=/root MUSTER_E2E_BIN=/muster
hostname fencevm
ip link set lo up
old() {
	mount -t tmpfs cgroup /sys/fs/cgroup
	for c in memory cpuset pids devices; do
		mkdir /sys/fs/cgroup/$c
		mount -t cgroup -o $c $c /sys/fs/cgroup/$c
	done
}
case $(cat /proc/cmdline) in
*cgroups=v2*) mount -t cgroup2 cgroup2 /sys/fs/cgroup ;;
*cgroups=hybrid*)
	old
	mkdir /sys/fs/cgroup/unified
	mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
	;;
*) old ;;
esac
cd /tmp
code=0
/muster/supervisor.test -test.v -test.run 'Fence|TestAdopt|TestIsolation' || code=1
cd /muster && ./e2e.test -test.v -test.run '^(TestFence|TestFenceOfEveryPath|TestSession)$' || code=1
echo "fence tests: $code"
poweroff -f
