package container

import "testing"

// TestMountBelow: a folder with a mount below it is found by the kernel's table, whatever the mount point is called.
func TestMountBelow(t *testing.T) {
	t.Parallel()
	const table = "22 1 254:0 / / rw - ext4 /dev/vda rw\n23 22 0:5 / /proc rw - proc proc rw\n" +
		`24 22 0:6 / /home/a\040b\134/x rw - tmpfs tmpfs rw` + "\n"
	for _, c := range []struct{ dir, want string }{
		{"/", "/proc"},
		{"/proc", ""},
		{"/pro", ""},
		{"/home", `/home/a b\/x`},
		{`/home/a b\`, `/home/a b\/x`},
		{`/home/a b\/x`, ""},
		{"/srv", ""},
	} {
		t.Run(c.dir, func(t *testing.T) {
			t.Parallel()
			if got := mountBelow(table, c.dir); got != c.want {
				t.Errorf("below %s: %q, not %q", c.dir, got, c.want)
			}
		})
	}
}
