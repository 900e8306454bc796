package cdi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// generated is what nvidia-ctk cdi generate writes, shortened; @LIB is a library.
const generated = `---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  - NVIDIA_CTK_LIBCUDA_DIR=/usr/lib/x86_64-linux-gnu
  hooks:
  - args:
    - nvidia-cdi-hook
    - create-symlinks
    - --link
    - libcuda.so.1::/usr/lib/x86_64-linux-gnu/libcuda.so
    - --link
    - ../libnvidia-allocator.so.1::/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so
    hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
  - args:
    - nvidia-cdi-hook
    - update-ldcache
    - --folder
    - /usr/lib/x86_64-linux-gnu
    hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
  mounts:
  - containerPath: /usr/bin/nvidia-smi
    hostPath: /opt/driver/bin/nvidia-smi
    options:
    - ro
    - nosuid
    - nodev
    - bind
  - hostPath: '@LIB'
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: "0"
`

func TestRead(t *testing.T) {
	lib := filepath.Join(t.TempDir(), "libcuda.so.570.1")
	if err := errors.Join(os.WriteFile(lib, nil, 0o644), os.Symlink("libcuda.so.570.1", filepath.Dir(lib)+"/libcuda.so.1"),
		os.Symlink("elsewhere", filepath.Dir(lib)+"/libcuda.so.2")); err != nil {
		t.Fatal(err)
	}
	dirs := []string{t.TempDir(), t.TempDir(), "/none"}
	put := func(dir, file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dirs[dir0(dir)], file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("etc", "other.yaml", "cdiVersion: 0.5.0\nkind: vendor.com/net\ncontainerEdits:\n  env: [A=b]\n")
	put("etc", "readme.txt", "nothing")
	put("etc", "broken.yaml", "kind: [vendor.com/net")
	if e, err := Read(dirs); err != nil || fmt.Sprint(e) != fmt.Sprint(Edits{}) {
		t.Fatal(e, err)
	}
	put("etc", "nvidia.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  env: [OLD=1]\n")
	put("run", "nvidia.yaml", strings.ReplaceAll(generated, "@LIB", lib))
	e, err := Read(dirs)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(lib)
	want := fmt.Sprint(Edits{Env: []string{"NVIDIA_CTK_LIBCUDA_DIR=/usr/lib/x86_64-linux-gnu"},
		Mounts: []Mount{{
			"/opt/driver/bin/nvidia-smi", "/usr/bin/nvidia-smi", []string{"ro", "nosuid", "nodev", "bind"},
		},
			{lib, lib, nil}},
		Links: []Link{{"libcuda.so.570.1", dir + "/libcuda.so.1"},
			{"libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so"},
			{"../libnvidia-allocator.so.1", "/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so"}},
		Folders: []string{dir, "/usr/lib/x86_64-linux-gnu"}})
	if got := fmt.Sprint(e); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func dir0(name string) int { return map[string]int{"etc": 0, "run": 1}[name] }

// TestBad: a file that cannot be read names itself.
func TestBad(t *testing.T) {
	for text, bad := range map[string]string{
		"kind: [nvidia.com/gpu":                             "yaml",
		"kind: nvidia.com/gpu":                              "cdiVersion is missing",
		"{\"kind\": \"nvidia.com/gpu\", \"cdiVersion\": []": "yaml",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "gpu.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read([]string{dir}); err == nil || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), "gpu.json") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
