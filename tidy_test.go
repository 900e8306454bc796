package main

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport is the table of docs/architecture.md: which of our packages each may import.
var mayImport = map[string][]string{
	"cast":      {"wire"},
	"cast/node": {"cast"},
	".": {"agent/container/imagehelper", "agent/supervisor", "agent/userfile", "cli", "cli/mcphost", "cli/nodetest", "early",
		"gpu",
		"gpu/nvml", "pmi/pmix", "ui/page"},
	"early":              {"api", "slurm", "slurm/front"},
	"packaging":          {"durable"},
	"wire":               {},
	"cluster":            {"cluster/federation", "wire"},
	"cluster/federation": {},
	"cluster/hostlist":   {},
	"sched":              {"cluster", "sched/place"},
	"sched/place":        {"cluster"},
	"sched/explain":      {"cluster", "sched", "sched/place"},
	"sched/schedtest":    {"cluster"},
	"sched/replay":       {"cluster", "sched"},
	"sched/faults":       {"cluster", "sched"},
	"consensus":          {"durable"},
	"durable":            {},
	"cli/farm":           {"wire"},
	"telemetry":          {},
	"consensus/gossip":   {},
	"acct":               {"cluster", "telemetry", "wire"},
	"api":                {"cluster", "cluster/federation", "cluster/hostlist", "wire"},
	"api/stream":         {},
	"memexec":            {},
	"pmi":                {"wire"},
	"pmi/peer":           {},
	"pmi/sockowner":      {},
	"pmi/pmix":           {"memexec", "pmi", "pmi/peer", "pmi/sockowner"},
	"pmi/helper":         {"pmi/pmix"},
	"gpu":                {"cluster", "memexec", "wire"},
	"gpu/nvml":           {"cluster", "gpu"},
	"gpu/helper":         {"gpu", "gpu/nvml"},
	"fabric":             {"durable", "cluster", "wire"},
	"burnin":             {"cluster", "gpu"},
	"burnin/pairs":       {},
	"burnin/bandwidth":   {"burnin/pairs", "wire"},
	"adopt":              {"adopt/dump", "cluster", "cluster/hostlist", "wire"},
	"adopt/dump":         {},
	"adopt/preview":      {"cluster", "slurm/conf"},
	"adopt/nodes":        {},
	"adopt/queue":        {"cluster"},
	"agent/trust":        {"durable", "cluster", "wire"},
	"agent/userfile":     {"wire"},
	"agent/container": {"agent/container/enroot", "agent/container/cdi", "agent/userfile", "durable",
		"cluster", "wire"},

	"agent/container/enroot":     {},
	"agent/container/archive":    {"agent/userfile", "wire"},
	"agent/container/credhelper": {"wire"},
	"agent/container/progress":   {},
	"agent/container/cdi":        {},
	"agent/container/layers":     {},
	"agent/container/locality":   {"cluster"},
	"agent/container/images": {"agent/container/archive", "agent/container/credhelper",
		"agent/container/progress", "agent/container", "agent/container/layers", "agent/userfile", "api", "durable",
		"wire"},
	"agent/container/imagehelper": {"agent/container/images", "memexec"},
	"agent/container/helper":      {"agent/container/images"},

	"agent/step/watch": {"api/stream"},
	"agent/cgroup":     {"cluster"},
	"agent/usage":      {"agent/cgroup", "agent/step"},

	"agent/step": {"agent/cgroup", "agent/container", "api/stream", "cluster", "wire"},
	"agent/supervisor": {"agent/cgroup", "agent/container/progress", "agent/container", "agent/step",
		"agent/step/watch", "agent/userfile",
		"api/stream", "cluster", "pmi", "wire"},
	"agent/backoff": {},
	"agent/sparse":  {},
	"agent/turns":   {},
	"agent/outbox":  {"agent/backoff", "cluster", "durable", "wire"},
	"agent/machine": {"cluster", "fabric", "gpu"},
	"agent/measure": {"agent/backoff", "agent/machine", "agent/step", "agent/usage", "api", "cluster", "fabric",
		"gpu", "telemetry"},
	"agent/meter":              {"agent/measure", "agent/step", "agent/usage", "cluster", "gpu"},
	"agent/hardware":           {"agent/machine", "cluster", "gpu"},
	"agent/sisters":            {"agent/backoff", "agent/step", "api", "cluster"},
	"agent/tail":               {"agent/step", "cluster"},
	"agent/sweep":              {"agent/backoff", "agent/userfile", "cluster", "durable", "gpu", "wire"},
	"agent/fence":              {"agent/cgroup", "cluster"},
	"agent/container/exchange": {"agent/container/layers", "api", "cluster", "wire"},
	"agent/ports":              {"agent/step", "cluster"},
	"agent/client": {"agent/container/enroot", "api", "cluster", "gpu",
		"agent/backoff", "agent/cgroup", "agent/container", "agent/container/exchange", "agent/container/locality",
		"agent/fence", "agent/hardware", "agent/machine",
		"agent/measure", "agent/meter", "agent/outbox", "agent/ports", "agent/sisters", "agent/step", "agent/sweep",
		"agent/ras", "agent/tail", "agent/usage", "agent/userfile", "agent/x11",
		"pmi", "pmi/sockowner", "wire"},
	"agent/ras":        {"pmi/sockowner", "wire"},
	"agent/x11":        {"agent/step"},
	"agent/burst":      {"agent/backoff", "agent/users", "api", "cluster", "wire"},
	"agent/guests":     {"agent/cgroup", "agent/step", "cluster"},
	"agent/hooks":      {"agent/guests", "agent/users", "api", "cluster", "wire"},
	"agent/federation": {"api", "cluster", "cluster/federation", "wire"},
	"ui":               {},
	"ui/login":         {"agent/webpage"},
	"agent/origin":     {},
	"agent/session":    {"agent/origin", "api", "cluster", "wire"},
	"agent/webpage":    {"agent/guests", "agent/origin", "agent/eventlog", "agent/lookup", "agent/samples", "agent/session", "api", "cluster"},
	"ui/forms":         {"agent/guests", "agent/step"},
	"ui/shell":         {"agent/guests", "ui/forms", "wire"},
	"ui/page": {"acct", "agent/eventlog", "agent/lookup", "agent/origin", "agent/samples", "agent/session", "agent/users",
		"agent/sparse", "agent/visibility", "agent/webpage", "api", "cluster", "cluster/hostlist", "sched/explain",
		"telemetry",
		"ui", "ui/forms", "ui/login",
		"ui/shell", "wire"},
	"agent/agenttest":  {"cluster", "telemetry"},
	"agent/users":      {"api", "cluster"},
	"agent/heartbeat":  {"cluster"},
	"agent/visibility": {"agent/users", "api", "cluster"},
	"agent/eventlog":   {"agent/visibility", "api", "cluster", "cluster/hostlist"},
	"agent/lookup":     {"acct", "agent/visibility", "cluster"},
	"agent/samples":    {"acct", "api", "cluster", "cluster/hostlist", "telemetry"},
	"agent/metrics":    {"agent/samples", "api", "cluster", "telemetry"},
	"agent/usertoken":  {"agent/sparse", "agent/users", "api", "cluster", "wire"},
	"agent/history": {"acct", "agent/lookup", "agent/samples", "agent/visibility", "api", "cluster", "consensus",
		"durable", "wire"},
	"agent/server": {"acct", "agent/burst", "agent/container/locality", "agent/container/layers", "agent/eventlog",
		"agent/federation", "agent/guests", "agent/heartbeat", "agent/history", "agent/hooks", "agent/lookup",
		"agent/metrics", "agent/sparse", "agent/trust", "agent/turns",
		"agent/users", "agent/usertoken", "agent/visibility", "api", "cluster", "cluster/federation", "consensus",
		"durable", "sched", "sched/explain", "agent/session", "agent/watches", "agent/webpage", "wire"},
	"agent/watches": {"agent/samples", "api", "cluster"},
	"agent": {"acct", "agent/origin", "agent/client", "agent/heartbeat", "agent/history", "agent/machine", "agent/container",
		"agent/container/enroot", "agent/metrics", "agent/sparse", "agent/turns",
		"agent/server", "agent/cgroup", "agent/step", "agent/supervisor", "agent/trust", "agent/usage",
		"agent/users", "api", "cluster",
		"consensus",
		"consensus/gossip", "durable", "gpu", "agent/webpage", "wire"},
	"slurm/opt":       {},
	"slurm/jobfield":  {"cluster", "slurm/opt"},
	"slurm/data":      {"wire"},
	"slurm/format":    {"cluster"},
	"slurm/conf":      {"cluster", "cluster/hostlist", "slurm/format", "slurm/opt"},
	"slurm/env":       {"cluster", "cluster/hostlist"},
	"slurm/slurmtest": {"api", "cluster", "slurm/front", "wire"},
	"slurm/front":     {"cluster/federation", "slurm/data", "api", "cluster", "cluster/hostlist", "slurm/opt", "wire"},
	"slurm/values":    {"cluster", "slurm/front", "slurm/opt"},
	"slurm/show": {"cluster/federation", "slurm/data", "api", "cluster", "cluster/hostlist", "slurm/env",
		"slurm/format",
		"slurm/front", "slurm/jobfield", "slurm/opt", "wire"},
	"slurm/submit": {"api", "cluster", "cluster/federation", "cluster/hostlist", "pmi", "slurm/env",
		"slurm/format", "slurm/front", "slurm/jobfield", "slurm/opt",
		"slurm/values"},
	"slurm/launch": {"api", "api/stream", "cast", "cluster", "pmi", "slurm/env", "slurm/front", "slurm/opt",
		"slurm/stage", "slurm/submit"},
	"slurm/cron":     {"api", "cluster", "slurm/front", "slurm/opt", "slurm/submit"},
	"slurm/lua":      {"api", "cluster", "cluster/hostlist", "slurm/format", "slurm/front", "slurm/jobfield", "slurm/values", "wire"},
	"slurm/stage":    {"api", "api/stream", "cast", "cluster", "slurm/front", "slurm/opt"},
	"slurm/assocmgr": {"api", "cluster", "slurm/front", "slurm/show"},
	"slurm/control": {"slurm/assocmgr", "cluster/federation", "slurm/data", "api", "cluster", "cluster/hostlist",
		"slurm/conf", "slurm/env",
		"slurm/format", "slurm/front", "slurm/jobfield", "slurm/opt", "slurm/show", "slurm/values"},
	"slurm/imported": {"cluster", "cluster/hostlist", "slurm/format"},
	"slurm/report": {"slurm/data", "api", "cluster", "slurm/format", "slurm/front", "slurm/imported", "slurm/opt",
		"slurm/show", "slurm/values"},
	"slurm/sacctmgr": {"cluster/federation", "slurm/data", "api", "cluster", "cluster/hostlist",
		"slurm/control", "slurm/format",
		"slurm/front", "slurm/opt", "slurm/report", "slurm/show", "slurm/values", "wire"},
	"slurm/rest": {"api", "cluster", "cluster/hostlist", "slurm/control", "slurm/data", "slurm/front", "slurm/jobfield",
		"slurm/report", "slurm/sacctmgr", "slurm/show", "slurm/submit", "wire"},
	"slurm/wrap": {"api", "cluster", "slurm/control", "slurm/format", "slurm/front", "slurm/report",
		"slurm/launch", "slurm/sacctmgr", "slurm/show", "slurm/submit"},
	"slurm": {"slurm/cron", "slurm/wrap", "api", "cluster", "slurm/control", "slurm/env",
		"slurm/format", "slurm/front", "slurm/opt", "slurm/report", "slurm/rest", "slurm/sacctmgr",
		"slurm/launch", "slurm/show", "slurm/stage", "slurm/submit", "wire"},
	"cli/manual": {"packaging", "slurm", "slurm/conf", "slurm/opt"},
	"cli/demo":   {"acct", "agent", "agent/machine", "agent/samples", "api", "cluster", "cluster/hostlist", "wire"},
	"cli/look": {"api", "cluster", "cluster/hostlist", "slurm/format", "slurm/front", "slurm/report",
		"slurm/show", "wire"},
	"cli/mcp": {"api", "cli/look", "cluster", "slurm/control", "slurm/format", "slurm/front", "slurm/jobfield",
		"slurm/show", "slurm/submit"},
	"cli/mcphost": {"acct", "agent/eventlog", "agent/step", "api", "cli/mcp", "cluster", "slurm/front", "wire"},
	"cli/migrate": {"adopt/nodes", "adopt/preview", "adopt/queue", "api", "cluster", "cluster/hostlist", "durable",
		"slurm", "slurm/conf", "slurm/front", "slurm/lua", "slurm/submit", "slurm/values", "wire"},
	"cli/nodetest": {"api", "burnin", "burnin/bandwidth", "burnin/pairs", "cli/look", "cluster", "cluster/hostlist", "fabric",
		"slurm/format", "slurm/front", "slurm/show", "slurm/submit"},
	"cli/watch": {"api", "cluster", "slurm/format", "slurm/front", "slurm/show"},
	"cli": {"cli/demo", "cli/farm", "cli/watch", "adopt", "adopt/dump", "cli/migrate", "cli/mcp", "cli/mcphost", "agent/burst", "agent/container/enroot", "cli/look", "durable", "agent", "agent/client",
		"agent/machine", "agent/step",
		"agent/trust", "agent/webpage", "api",
		"cast/node", "cli/manual", "cli/nodetest", "cluster", "cluster/hostlist", "gpu", "packaging", "pmi", "pmi/peer",
		"sched/faults", "sched/replay", "slurm",
		"telemetry", "slurm/conf", "slurm/env", "slurm/format", "slurm/front", "slurm/lua", "slurm/opt",
		"slurm/rest", "slurm/show", "slurm/submit", "wire"},
}

// anything may be imported by whole-product tests.
func wholeProduct(pkg string) bool { return strings.HasPrefix(pkg, "e2e") }

// impure are imports that would make a pure package impure.
var impure = []string{"os", "net", "log", "log/slog", "math/rand", "math/rand/v2", "context", "sync"}

// forbidden are imports that the pure packages may not have.
var forbidden = map[string][]string{
	"cluster":       impure,
	"sched":         impure,
	"sched/place":   impure,
	"sched/explain": impure,
}

// longFunctions and longFiles are dated exceptions; the lists only shrink.
var longFunctions = map[string]string{}

var longFiles = map[string]string{}

const (
	maxFunction = 80
	maxFile     = 800
	module      = "dev.muster"
)

func goFiles(t *testing.T, each func(path string, file *ast.File, set *token.FileSet)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != "." || path == "tools") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		each(path, f, set)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTidyImports holds the table of rooms and arrows.
func TestTidyImports(t *testing.T) {
	goFiles(t, func(path string, f *ast.File, _ *token.FileSet) {
		pkg, test := filepath.ToSlash(filepath.Dir(path)), strings.HasSuffix(path, "_test.go")
		may, known := mayImport[pkg]
		if !known && !wholeProduct(pkg) {
			t.Errorf("%s: package %s is not in the table of rooms", path, pkg)
		}
		for _, imp := range f.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			if rest, ours := strings.CutPrefix(name, module+"/"); ours && !test && !wholeProduct(pkg) &&
				!slices.Contains(may, rest) {
				t.Errorf("%s: %s may not import %s", path, pkg, rest)
			}
			if !test && name == "encoding/json" {
				t.Errorf("%s: JSON is package wire's (docs/adr/0005-own-json.md)", path)
			}
			if !test && slices.Contains(forbidden[pkg], name) {
				t.Errorf("%s: %s must stay pure and may not import %s", path, pkg, name)
			}
		}
	})
}

// TestTidyPure keeps clocks and goroutines out of the pure packages.
func TestTidyPure(t *testing.T) {
	goFiles(t, func(path string, f *ast.File, set *token.FileSet) {
		if _, pure := forbidden[filepath.ToSlash(filepath.Dir(path))]; !pure || strings.HasSuffix(path, "_test.go") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: goroutine in a pure package", set.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && (n.Sel.Name == "Now" ||
					n.Sel.Name == "Since" || n.Sel.Name == "Until") {
					t.Errorf("%s: time.%s in a pure package", set.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	})
}

// TestTidySizes bounds functions and files.
func TestTidySizes(t *testing.T) {
	goFiles(t, func(path string, f *ast.File, set *token.FileSet) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		if n := set.Position(f.End()).Line; n > maxFile && longFiles[path] == "" {
			t.Errorf("%s has %d lines, more than %d", path, n, maxFile)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
			if n > maxFunction && longFunctions[path+":"+fn.Name.Name] == "" {
				t.Errorf("%s: %s has %d lines, more than %d", path, fn.Name.Name, n, maxFunction)
			}
		}
	})
}

// undesigned are packages that should have a DESIGN.md and do not; the list only shrinks.
var undesigned = map[string]bool{"acct": true, "agent": true, "api": true, "cli": true, "wire": true}

// designLines is from how many lines on a package needs a DESIGN.md, its own or that of the folder above it.
const designLines = 1500

// TestTidyDesigns wants large packages to say what they are for, why not the obvious way, and where to start reading.
func TestTidyDesigns(t *testing.T) {
	lines := map[string]int{}
	goFiles(t, func(path string, f *ast.File, set *token.FileSet) {
		if !strings.HasSuffix(path, "_test.go") {
			lines[filepath.ToSlash(filepath.Dir(path))] += set.Position(f.End()).Line
		}
	})
	for pkg, n := range lines {
		_, own := os.Stat(filepath.Join(pkg, "DESIGN.md"))
		_, above := os.Stat(filepath.Join(filepath.Dir(pkg), "DESIGN.md"))
		designed := own == nil || above == nil
		switch {
		case n >= designLines && !designed && !undesigned[pkg]:
			t.Errorf("package %s has %d lines and no DESIGN.md", pkg, n)
		case designed && undesigned[pkg]:
			t.Errorf("package %s has a DESIGN.md now: take it off the list", pkg)
		}
	}
}

// renames are the places that move files without package durable, and why.
var renames = map[string]string{
	"agent/outbox/journal.go":     "a log that only grows, and is not synced: a machine that crashed has lost its jobs",
	"agent/outbox/outbox.go":      "as the journal",
	"agent/supervisor/journal.go": "as the journal",
	"acct/open.go":                "a damaged file is put aside",
	"acct/whole.go":               "SQLite's files, which it syncs itself",

	"agent/container/layers/layers.go": "what a crash damages is found out by its digest, and fetched again",

	"cast/node/node.go":          "a user's file, no more durable than cp makes it",
	"slurm/stage/cmd_sgather.go": "as that",
}

// TestTidyRenames has files replaced in one way.
func TestTidyRenames(t *testing.T) {
	unused := maps.Clone(renames)
	goFiles(t, func(path string, f *ast.File, set *token.FileSet) {
		pkg := filepath.ToSlash(filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") || wholeProduct(pkg) || pkg == "durable" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok || call.Sel.Name != "Rename" {
				return true
			}
			if x, ok := call.X.(*ast.Ident); !ok || x.Name != "os" {
				return true
			}
			if renames[filepath.ToSlash(path)] == "" {
				t.Errorf("%s: os.Rename: files are replaced by package durable", set.Position(n.Pos()))
			}
			delete(unused, filepath.ToSlash(path))
			return true
		})
	})
	for path := range unused {
		t.Errorf("%s renames no file any more: take it off the list", path)
	}
}

// TestTidyDocs wants a comment before each package clause.
func TestTidyDocs(t *testing.T) {
	documented := map[string]bool{}
	goFiles(t, func(path string, f *ast.File, _ *token.FileSet) {
		if dir := filepath.Dir(path); f.Doc != nil || !documented[dir] {
			documented[dir] = documented[dir] || f.Doc != nil || strings.HasSuffix(path, "_test.go") && f.Doc != nil
		}
	})
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// Allocations of a front end in package initializers, which a busy machine does not change as it does
// their times; see docs/adr/0002-early-dispatch.md. The figures only shrink.
const (
	initBytes  = 32 << 10
	initAllocs = 170
)

// TestTidyInit checks that front-ends run no initializer of the daemons' libraries, and few others.
func TestTidyInit(t *testing.T) {
	for _, name := range []string{"sbatch", "srun", "salloc", "scancel", "squeue", "sinfo", "scontrol", "sacct",
		"sacctmgr", "sprio", "sshare", "sreport", "sdiag", "seff", "sstat", "sbcast", "sgather", "sattach"} {
		bin := filepath.Join("bin", name)
		if _, err := os.Stat(bin); err != nil {
			t.Skip(bin + " is not built; make build first")
		}
		size, allocs := initCost(t, bin)
		for range 2 { // what the runtime allocates meanwhile on a busy machine counts as well
			again, more := initCost(t, bin)
			size, allocs = min(size, again), min(allocs, more)
		}
		t.Logf("package initialisation of %s: %d bytes in %d allocations", name, size, allocs)
		if size > initBytes || allocs > initAllocs {
			t.Errorf("package initialisation of %s takes %d bytes in %d allocations, more than %d in %d", name,
				size, allocs, initBytes, initAllocs)
		}
	}
}

// initCost runs a front-end and adds up what its packages' initializers allocate.
func initCost(t *testing.T, bin string) (size, allocs int) {
	cmd := exec.Command(bin, "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(&errs); lines.Scan(); { // init PACKAGE @0.1 ms, 0.01 ms clock, 432 bytes, 9 allocs
		w := strings.Fields(lines.Text())
		if len(w) < 11 || w[0] != "init" {
			continue
		}
		for _, heavy := range []string{"hashicorp/", "modernc.org/sqlite", "modernc.org/mathutil", "bbolt",
			"go-nvml", "encoding/gob", "net/http"} {
			if strings.Contains(w[1], heavy) {
				t.Fatalf("%s initialises %s", bin, w[1])
			}
		}
		n, err1 := strconv.Atoi(w[7])
		k, err2 := strconv.Atoi(w[9])
		if err1 != nil || err2 != nil {
			t.Fatalf("inittrace line %q", lines.Text())
		}
		size, allocs = size+n, allocs+k
	}
	if size == 0 {
		t.Fatalf("%s tells nothing of its initialisers", bin)
	}
	return size, allocs
}
