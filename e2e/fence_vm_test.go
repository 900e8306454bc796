package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var fenceKernel = flag.String("fence-vm", "", "kernel image that TestFenceVM boots")

// fenceTests are what must pass there, and not be left out, on each kind of machine.
var fenceTests = []string{
	"TestMemoryFence", "TestCPUFence", "TestPIDFence", "TestDeviceFence/as_the_machine_has_it",
	"TestFenceFromTheStart", "TestNoFenceNoLaunch", "TestFence", "TestFenceOfEveryPath", "TestSession",
}

// TestFenceVM runs the tests of fences on machines of their own, with all controllers in cgroup v2, with those of
// v1 beside v2, and with v1 alone. Their only file system is made of busybox, the product and its tests.
func TestFenceVM(t *testing.T) {
	if *fenceKernel == "" {
		t.Skip("no -fence-vm given; make fence-vm does")
	}
	dir := t.TempDir()
	initrd := filepath.Join(dir, "initrd")
	files := map[string]string{"bin/busybox": "/usr/bin/busybox", "init": "testdata/fence-vm.sh"}
	for _, name := range []string{"agent/cgroup", "agent/supervisor", "e2e"} {
		file := filepath.Join(dir, filepath.Base(name)+".test")
		cmd := exec.Command("go", "test", "-c", "-o", file, "../"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("compile the tests of %s: %v\n%s", name, err, out)
		}
		files["muster/"+filepath.Base(file)] = file
	}
	for _, name := range frontEnds {
		files["muster/"+name] = filepath.Join(bin, name)
	}
	if err := writeArchive(initrd, files); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ cgroups, isolation string }{
		{"v2", "cgroup2(memory,cpuset,pids,devices)"},
		{"hybrid", "cgroup2+cgroup1(memory,cpuset,pids,devices)"},
		{"v1", "cgroup2+cgroup1(memory,cpuset,pids,devices)"}} {
		t.Run(c.cgroups, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			console := filepath.Join(t.TempDir(), "console")
			cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg", "-m", "3072", "-smp", "2", "-display", "none", "-monitor", "none", "-no-reboot", "-nic", "none",
				"-serial", "file:"+console, "-kernel", *fenceKernel, "-initrd", initrd, "-append", "console=ttyS0 quiet panic=-1 cgroups="+c.cgroups)
			out, err := cmd.CombinedOutput()
			text, _ := os.ReadFile(console)
			said := strings.ReplaceAll(string(text), "\r\n", "\n")
			if err != nil || !strings.Contains(said, "\nfence tests: 0\n") {
				t.Fatalf("the machine: %v\n%s\n%s", err, out, said[max(0, len(said)-20000):])
			}
			for _, name := range fenceTests {
				if !strings.Contains(said, "--- PASS: "+name+" ") {
					t.Errorf("%s did not run", name)
				}
			}
			if !strings.Contains(said, "isolation: "+c.isolation+"\n") {
				t.Errorf("the machine is not %s:\n%s", c.isolation, row(said, "isolation: "))
			}
		})
	}
}

// writeArchive writes files as an archive for the kernel's first file system (cpio, newc format), with links to
// what is named like them before.
func writeArchive(path string, files map[string]string) error {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	inode := 0
	add := func(name string, mode uint32, content []byte) error {
		inode++
		head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", inode, mode, 0, 0,
			1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0)
		text := head + name + "\x00"
		text += strings.Repeat("\x00", -len(text)&3)
		if _, err := zip.Write([]byte(text)); err != nil {
			return err
		}
		_, err := zip.Write(append(content, make([]byte, -len(content)&3)...))
		return err
	}
	const folder, program, link, plain = 0o040755, 0o100755, 0o120777, 0o100644
	for _, d := range []string{"bin", "muster", "etc"} {
		if err := add(d, folder, nil); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
		"etc/group":  "root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n",
		"etc/hosts":  "127.0.0.1 localhost fencevm\n",
	} {
		if err := add(name, plain, []byte(text)); err != nil {
			return err
		}
	}
	for name, file := range files {
		if to, err := os.Readlink(file); err == nil {
			if err := add(name, link, []byte(to)); err != nil {
				return err
			}
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := add(name, program, content); err != nil {
			return err
		}
	}
	if err := add("TRAILER!!!", 0, nil); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
