package launch

import (
	"os"
	"path/filepath"
	"testing"

	"dev.muster/slurm/slurmtest"
	"dev.muster/slurm/submit"
)

// TestX11Server: what DISPLAY says is found, with the cookie that xauth tells; what cannot be is told in Slurm's words.
func TestX11Server(t *testing.T) {
	dir := t.TempDir()
	xauth := "#!/bin/sh\ncase $3 in nohost:*) exit 1;; *:9*) exit 0;; esac\n" +
		"echo \"$3  MIT-MAGIC-COOKIE-1  abcd\"; echo 'x:1  MIT-MAGIC-COOKIE-1  0000'\n"
	if err := os.WriteFile(filepath.Join(dir, "xauth"), []byte(xauth), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for _, c := range []struct {
		display, socket, at, err string
	}{
		{display: "", err: "No DISPLAY variable set, cannot setup x11 forwarding."},
		{display: "foo", err: badDisplay},
		{display: "host:x", err: badDisplay},
		{display: "host:99999", err: badDisplay},
		{display: ":1717", err: "Cannot stat() local X11 socket `/tmp/.X11-unix/X1717`"},
		{display: "unix:1717.0", err: "Cannot stat() local X11 socket `/tmp/.X11-unix/X1717`"},
		{display: "nohost:1", err: "Problem running xauth command. Cannot use X11 forwarding."},
		{display: "host:9", err: "x11_get_xauth: Could not retrieve magic cookie. Cannot use X11 forwarding."},
		{display: "localhost:10.0", at: "localhost:6010"},
		{display: "[::1]:3", at: "[::1]:6003"},
	} {
		x, why := xServerOf(slurmtest.Sys("srun", dir, "DISPLAY="+c.display))
		switch {
		case why != c.err:
			t.Errorf("%q: %q, want %q", c.display, why, c.err)
		case x != nil && (x.at != c.at || x.socket != c.socket || x.cookie != "abcd"):
			t.Errorf("%q: %+v", c.display, *x)
		}
	}
}

// TestX11Option: what --x11 takes, and what it is where nothing is said.
func TestX11Option(t *testing.T) {
	for word, want := range map[string]string{
		"--x11": "all", "--x11=all": "all", "--x11=batch": "batch", "--x11=first": "first",
		"--x11=last": "last",
	} {
		r, err := submit.ParseSrun([]string{word, "true"}, slurmtest.Sys("srun", t.TempDir()))
		if err != nil || r.Way.X11 != want {
			t.Errorf("%s: %v", word, err)
		}
	}
	_, err := submit.ParseSrun([]string{"--x11=some", "true"}, slurmtest.Sys("srun", t.TempDir()))
	if want := "srun: error: Invalid --x11 specification: some: want all, batch, first or last"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
