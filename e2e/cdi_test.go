package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestContainerDriver: what the node's file of the Container Device Interface says is in each container: the
// driver's files, links by which programs find them, and variables.
func TestContainerDriver(t *testing.T) {
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	d.file(0, "driver/libcuda.so.570.1", "the driver\n")
	d.file(0, "driver/smi", "#!/bin/sh\necho 8 GPUs\n")
	if err := os.Chmod(d.dir+"/driver/smi", 0o755); err != nil {
		t.Fatal(err)
	}
	const dir = "/var/run/cdi"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, fmt.Sprintf("muster-test-%d.yaml", os.Getpid()))
	t.Cleanup(func() { os.Remove(file); os.Remove(dir) }) // if it is empty
	text := strings.ReplaceAll(`cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices: []
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void, DRIVER_IS=here]
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, create-symlinks, --link, libcuda.so.570.1::/opt/lib/libcuda.so.1]
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, update-ldcache, --folder, /opt/lib]
  mounts:
  - {hostPath: DIR/libcuda.so.570.1, containerPath: /opt/lib/libcuda.so.570.1, options: [ro, nosuid, nodev, bind]}
  - {hostPath: DIR/smi, containerPath: /bin/nvidia-smi, options: [ro, nosuid, nodev, bind]}
`, "DIR", d.dir+"/driver")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	tiny := "srun --container-image=" + h.host + "#lab/tiny:1 "
	const inside = "srun --overlap --container-name=n:exec "
	joins := "salloc -Q sh -c '" + tiny + "--container-name=n " +
		"sh -c \"touch /tmp/on; until [ -e /tmp/off ]; do sleep .1; done\" & " +
		"for i in $(seq 100); do " + inside + "ls /tmp/on >/dev/null 2>&1 && break; sleep .1; done; " +
		inside + "sh -c \"echo \\$LD_LIBRARY_PATH \\$DRIVER_IS; touch /tmp/off\"; wait'"
	for _, c := range []struct{ what, line, out, errs string }{
		{"a library by its link", tiny + "cat /opt/lib/libcuda.so.1", "the driver\n", ""},
		{"a program", tiny + "nvidia-smi", "8 GPUs\n", ""},
		{"the loader finds it", tiny + "sh -c 'echo $LD_LIBRARY_PATH $DRIVER_IS'", "/opt/lib here\n", ""},
		{"read-only", tiny + "--container-writable sh -c 'echo x >/opt/lib/libcuda.so.1'", "", "Read-only file system"},
		{"a step that joins", joins, "/opt/lib here\n", "*"},
	} {
		t.Run(c.what, func(t *testing.T) {
			out, errs, code := d.line(1, c.line)
			if out != c.out || c.errs != "*" && (!strings.Contains(errs, c.errs) || (code != 0) != (c.errs != "")) {
				t.Errorf("%s\nout %q\nerr %q\ncode %d\nwant %q and %q", c.line, out, errs, code, c.out, c.errs)
			}
		})
	}
	if err := os.Remove(d.dir + "/driver/smi"); err != nil {
		t.Fatal(err)
	}
	want := "the driver, as /etc/cdi and /var/run/cdi have it: open " + d.dir
	if _, errs, code := d.line(1, tiny+"true"); code != 1 || !strings.Contains(errs, want) {
		t.Errorf("a file that is not there: %d %s", code, errs)
	}
}
