package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gpuCheck runs packaging/scripts/gpu-check.py on two GPUs of the stand-in library, and returns what it prints and its
// exit status.
func gpuCheck(t *testing.T, env ...string) (out string, code int) {
	t.Helper()
	product, err := gpuProduct()
	if err != nil {
		t.Skip("the stand-in library cannot be built: ", err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	fakes, err := filepath.Abs("testdata/gpu-check")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "gpus")
	if err := os.WriteFile(file, []byte(h100(2)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", "../packaging/scripts/gpu-check.py", product+"/muster",
		"--smi", fakes+"/nvidia-smi", "--load", "sh "+fakes+"/load", "--watch", "4", "--limit", "240")
	cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+product, "STANDIN_NVML="+file), env...)
	ended := make(chan struct{})
	defer close(ended)
	go forgetDead(file, ended)
	text, err := cmd.CombinedOutput()
	if code = cmd.ProcessState.ExitCode(); err != nil && code < 0 {
		t.Fatalf("gpu-check: %v\n%s", err, text)
	}
	return string(text), code
}

// aProc is the line of a process in the file of the stand-in library.
var aProc = regexp.MustCompile(`(?m)^proc \d+ (\d+) .*\n`)

// forgetDead takes processes that have ended out of the stand-in's file, as the driver does by itself.
func forgetDead(file string, ended chan struct{}) {
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-ended:
			return
		case <-t.C:
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		left := aProc.ReplaceAllStringFunc(string(text), func(line string) string {
			pid, _ := strconv.Atoi(aProc.FindStringSubmatch(line)[1])
			if syscall.Kill(pid, 0) == syscall.ESRCH {
				return ""
			}
			return line
		})
		if left == string(text) || os.WriteFile(file+".left", []byte(left), 0o644) != nil {
			continue
		}
		_ = os.Rename(file+".left", file) // what fails now is done at the next tick
	}
}

// TestGPUCheck: the check of a machine with GPUs finds that muster and nvidia-smi agree, says what it could not check,
// and fails if they do not agree.
func TestGPUCheck(t *testing.T) {
	t.Parallel()
	out, code := gpuCheck(t)
	if code != 0 {
		t.Errorf("exit status %d", code)
	}
	rows := map[string]string{
		"the GPU helper answers":                              "ok | 2 GPUs, by nvml",
		"nvidia-smi lists GPUs":                               "ok | 2 GPUs, driver 550.54.15",
		"NVML and nvidia-smi -q agree":                        "ok | 2 GPUs, ",
		"slices (MIG) and nvidia-smi -L agree":                "not checked | no GPU is in MIG mode",
		"muster dev starts, a job runs":                       "ok | ",
		"the node has all GPUs":                               "ok | gpu:h100:2",
		"nvidia-smi -L, CUDA_VISIBLE_DEVICES: a job of 1 GPU": "ok | CUDA_VISIBLE_DEVICES=0, ",
		"nvidia-smi -L, CUDA_VISIBLE_DEVICES: a job of all":   "ok | CUDA_VISIBLE_DEVICES=0,1, ",
		"two jobs have different GPUs":                        "ok | GPUs 0 and 1",
		"samples, metrics and sstat under load":               "ok | utilization % 93 (nvidia-smi 93 to 93), ",
		"GPU memory is free after a killed job":               "ok | 0 MB, 61000 MB, 0 MB before, during and after",
		"the cost of a poll":                                  "ok | look ",
	}
	if _, err := os.Stat("/dev/nvidia0"); err != nil {
		rows["the fence refuses other GPUs"] = "not checked | no device files /dev/nvidiaN"
	}
	for name, want := range rows {
		if !strings.Contains(out, fmt.Sprintf("\n| %s | %s", name, want)) {
			t.Errorf("there is no row %q with %q", name, want)
		}
	}
	for _, want := range []string{"sstat gpumem 61000 MB", "\n2 x NVIDIA H100 80GB HBM3, driver 550.54.15, Linux ",
		"Made with a stand-in for NVML: no record of a real GPU."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	out, code = gpuCheck(t, "NVIDIA_SMI_LIES=1000")
	want := "NVML and nvidia-smi -q agree: FAIL: GPU-00000000-1111-2222-3333-444455556666: mem_mb is 81559, " +
		"nvidia-smi has 82559"
	if code != 1 || !strings.Contains(out, want) {
		t.Errorf("an nvidia-smi that has other values: exit status %d\n%s", code, out)
	}
}

// TestGPUCheckNone: on a machine without GPUs the check says so, checks what is left, and fails nothing.
func TestGPUCheckNone(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	if _, err := os.Stat("/proc/driver/nvidia"); err == nil {
		t.Skip("there are GPUs")
	}
	cmd := exec.CommandContext(t.Context(), "python3", "../packaging/scripts/gpu-check.py", bin+"/muster",
		"--smi", "/none/nvidia-smi")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "| not checked | no NVIDIA GPU") < 10 ||
		!strings.Contains(string(out), "\n| muster dev starts, a job runs | ok |") {
		t.Errorf("%v\n%s", err, out)
	}
}
