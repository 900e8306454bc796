package burnin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/gpu"
)

var discard = slog.New(slog.DiscardHandler)

// toolTime bounds a program besides the load that it is asked for.
const toolTime = 10 * time.Minute

// memSlack is which part of its memory a GPU may have less than others of its make.
const memSlack = 16

// tool is a program that puts load on GPUs and says whether they compute right.
type tool struct {
	names []string // under any of which it is installed
	args  func(load time.Duration, gpus int) []string
	// figures finds what it measured: the name, or "" for that of the figure, and the value.
	figures *regexp.Regexp
	figure  cluster.Figure // its name where the text has none, and its unit
	// bad finds that a GPU, by its number, or in the program's words something, is broken; the exit code says so too.
	bad *regexp.Regexp
	// blames: bad's first group is the number of a GPU.
	blames bool
}

// tools are the programs that are looked for, as NVIDIA's documents (dcgmi diag, nvbandwidth, nccl-tests) and
// gpu-burn's say how they are called and what they print.
var tools = []tool{
	{names: []string{"dcgmi"}, args: func(time.Duration, int) []string { return []string{"diag", "-r", "2"} },
		bad: regexp.MustCompile(`(?m)^\|.*\|\s*(Fail.*?)\s*\|\s*$`)},
	{names: []string{"gpu-burn", "gpu_burn"},
		args: func(load time.Duration, _ int) []string { return []string{strconv.Itoa(int(max(load.Seconds(), 1)))} },
		bad:  regexp.MustCompile(`(?m)^\s*GPU (\d+): FAULTY`), blames: true},
	{names: []string{"nvbandwidth"}, args: func(time.Duration, int) []string { return nil },
		figures: regexp.MustCompile(`(?m)^SUM (\S+) ([0-9.]+)`), figure: cluster.Figure{Unit: "GB/s"}, bad: regexp.MustCompile(`(?m)^(.*ERROR.*)$`)},
	{names: []string{"all_reduce_perf"}, args: func(_ time.Duration, n int) []string {
		return []string{"-b", "8", "-e", "1G", "-f", "2", "-g", strconv.Itoa(n)}
	},
		figures: regexp.MustCompile(`(?m)^# Avg bus bandwidth()\s*: ([0-9.]+)`), figure: cluster.Figure{Name: "all-reduce bus bandwidth", Unit: "GB/s"},
		bad: regexp.MustCompile(`(?m)^# (Out of bounds values : [1-9].*)$`)},
}

// result is what came of a tool.
type result struct {
	name    string
	wrong   []string
	blamed  []int // GPUs by the tool's numbers
	figures []cluster.Figure
}

// gpus puts load on the GPUs and judges them.
func (t *test) gpus(ctx context.Context, w *watch) {
	if w.first == nil || len(w.first.Readings) == 0 {
		w.stop()
		if len(w.faults) > 0 {
			t.parts = append(t.parts, judge(t.part("gpu-driver", ""), texts(w.faults, "gpu")))
		}
		return
	}
	var results []result
	for i := range tools {
		for _, name := range tools[i].names {
			if path, err := t.Find(name); err == nil && ctx.Err() == nil {
				t.Say("testing the GPUs by %s", name)
				results = append(results, tools[i].run(ctx, path, t.Load, len(w.first.Readings)))
				break
			}
		}
	}
	if len(results) == 0 && ctx.Err() == nil { // what they show at rest
		idle := time.NewTimer(2 * lookEvery)
		defer idle.Stop()
		select {
		case <-idle.C:
		case <-ctx.Done():
		}
	}
	if last := w.finish(ctx); ctx.Err() == nil {
		t.parts = append(t.parts, t.judgeGPUs(w, last, results)...)
	}
}

// run calls the tool.
func (k *tool) run(ctx context.Context, path string, load time.Duration, gpus int) result {
	r := result{name: filepath.Base(path)}
	ctx, cancel := context.WithTimeout(ctx, load+toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, k.args(load, gpus)...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "CUDA_DEVICE_ORDER=PCI_BUS_ID") // numbers as NVML has them
	if real, err := filepath.EvalSymlinks(path); err == nil {
		cmd.Dir = filepath.Dir(real) // gpu_burn has its kernel beside it
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stdout), io.MultiWriter(&out, os.Stderr)
	err := cmd.Run()
	k.read(&r, out.String(), err)
	return r
}

// read makes a result of what the tool printed and how it ended.
func (k *tool) read(r *result, out string, err error) {
	if k.figures != nil {
		for _, m := range k.figures.FindAllStringSubmatch(out, -1) {
			f := k.figure
			if m[1] != "" {
				f.Name = m[1]
			}
			f.Value, _ = strconv.ParseFloat(m[2], 64)
			r.figures = append(r.figures, f)
		}
	}
	for _, m := range k.bad.FindAllStringSubmatch(out, -1) {
		if n, nerr := strconv.Atoi(m[1]); k.blames && nerr == nil {
			r.blamed = append(r.blamed, n)
			continue
		}
		r.wrong = append(r.wrong, r.name+": "+strings.TrimSpace(m[1]))
	}
	if err != nil && len(r.wrong) == 0 && len(r.blamed) == 0 {
		lines := strings.Split(strings.TrimSpace(out), "\n")
		r.wrong = append(r.wrong, fmt.Sprintf("%s: %v: %s", r.name, err, strings.TrimSpace(lines[len(lines)-1])))
	}
}

// texts are what faults of a part say.
func texts(faults []cluster.Fault, part string) (out []string) {
	for _, f := range faults {
		if f.Part == part {
			out = append(out, f.Text)
		}
	}
	return out
}

// judgeGPUs says of each GPU how it did, and of the programs that do not say which GPU is to blame.
func (t *test) judgeGPUs(w *watch, last *gpu.Scan, results []result) (out []cluster.TestedPart) {
	var names []string
	cut := slices.ContainsFunc(w.first.Readings, func(r gpu.Reading) bool { return r.MIG }) // then tools number the slices
	blamed := map[int][]string{}
	load := t.part("load", "")
	var wrong []string
	var figures []cluster.Figure
	for _, r := range results {
		names, wrong, figures = append(names, r.name), append(wrong, r.wrong...), append(figures, r.figures...)
		for _, n := range r.blamed {
			if cut || n >= len(w.first.Readings) {
				wrong = append(wrong, fmt.Sprintf("%s: GPU %d computes wrong", r.name, n))
				continue
			}
			blamed[n] = append(blamed[n], r.name+": it computes wrong")
		}
	}
	for i := range w.first.Readings {
		out = append(out, judgeGPU(w, i, last, blamed[i]))
		if one := &out[len(out)-1].Tests[0]; one.Verdict == cluster.BurninPassed && len(results) == 0 {
			one.Text = "at rest: its counters alone"
		}
	}
	if driver := texts(w.faults, "gpu"); len(driver) > 0 {
		out = append(out, judge(t.part("gpu-driver", ""), driver))
	}
	if load.Model = strings.Join(names, ", "); len(results) == 0 {
		return append(out,
			untested(load,
				"no load was put on the GPUs and their links: dcgmi, gpu-burn, nvbandwidth and all_reduce_perf are not installed"))
	}
	return append(out, judge(load, wrong, figures...))
}

// judgeGPU compares what one GPU was with what it is now.
func judgeGPU(w *watch, i int, last *gpu.Scan, wrong []string) cluster.TestedPart {
	before := &w.first.Readings[i]
	g := &before.GPU
	p := cluster.TestedPart{
		ID: g.UUID, Kind: "gpu", Model: g.Model, Serial: before.Serial,
		Tests: []cluster.PartTest{{Verdict: cluster.BurninPassed}},
	}
	label := fmt.Sprintf("GPU %d (%s)", g.Minor, g.UUID)
	told := texts(w.faults, g.UUID)
	for k := range wrong {
		wrong[k] = label + ": " + wrong[k]
	}
	wrong = append(told, wrong...)
	k := slices.IndexFunc(last.Readings, func(r gpu.Reading) bool { return r.GPU.UUID == g.UUID })
	if k < 0 || before.Lost != "" || last.Readings[k].Lost != "" {
		if len(told) == 0 {
			wrong = append(wrong, label+": it is lost")
		}
		return judge(p, wrong)
	}
	after := &last.Readings[k]
	if n := after.RemappedBad - before.RemappedBad; n > 0 {
		wrong = append(wrong, fmt.Sprintf("%s: %d rows of memory were remapped during the test", label, n))
	}
	most := g.MemMB
	for _, o := range w.first.Readings {
		if o.GPU.Model == g.Model {
			most = max(most, o.GPU.MemMB)
		}
	}
	if g.MemMB < most-most/memSlack {
		wrong = append(wrong, fmt.Sprintf("%s: %d MB of memory, others of its make have %d", label, g.MemMB, most))
	}
	figures := []cluster.Figure{{
		Name:  "corrected errors",
		Value: float64(after.ECCCorrected - min(before.ECCCorrected, after.ECCCorrected)),
	},
		{Name: "remapped rows", Value: float64(after.RemappedBad)},
		{Name: "NVLinks", Value: float64(after.GPU.NVLinks)},
		{Name: "memory", Value: float64(g.MemMB), Unit: "MB"}}
	if top := w.peaks[g.UUID]; top != nil {
		figures = append(figures, cluster.Figure{
			Name: "highest temperature", Value: float64(top.tempC), Unit: "C",
		}, cluster.Figure{Name: "highest power", Value: float64(top.powerW), Unit: "W"},
			cluster.Figure{Name: "highest utilisation", Value: float64(top.util), Unit: "%"})
	}
	return judge(p, wrong, figures...)
}
