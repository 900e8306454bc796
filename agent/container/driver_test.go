package container

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestDriverFiles(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"libcuda.so.570.1", "libnvidia-ml.so.570.1", "libc.so.6", "libGLX_nvidia.so.570.1"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"libcuda.so.1": "libcuda.so.570.1", "libnvidia-ml.so.1": "/elsewhere/ml"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	files, links, err := driverFiles([]string{dir + "/none", dir})
	want := fmt.Sprintf("[%[1]s/libcuda.so.570.1 %[1]s/libnvidia-ml.so.1 %[1]s/libnvidia-ml.so.570.1] [{libcuda.so.570.1 /usr/local/nvidia/lib64/libcuda.so.1}]",
		dir)
	if got := fmt.Sprint(files, links); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestAddTo(t *testing.T) {
	env := addTo(addTo(addTo([]string{"A=", "B=/x"}, "A", "/a"), "B", "/b"), "C", "/c")
	env = addTo(env, "B", "/b")
	if want := []string{"A=/a", "B=/x:/b", "C=/c"}; !slices.Equal(env, want) {
		t.Errorf("%q, want %q", env, want)
	}
}
