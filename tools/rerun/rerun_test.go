package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// flaky fails the first time it is run: it leaves a file for the second time.
const flaky = `
func Test@(t *testing.T) {
	if f, err := os.OpenFile("ran@", os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		f.Close()
		t.Run("row", func(t *testing.T) { t.Error("the first time") })
	}
}
`

const (
	good = "func Test@(*testing.T) {}\n"
	bad  = "func Test@(t *testing.T) { t.Error(\"always\") }\n"
	// panics only the first time.
	panics = `
func Test@(*testing.T) {
	if _, err := os.Stat("ran@"); err != nil {
		os.WriteFile("ran@", nil, 0o600)
		panic("once")
	}
}
`
	exits = "func Test@(*testing.T) { os.Exit(1) }\n"
	// skips fails the first time, and skips then.
	skips = `
func Test@(t *testing.T) {
	if _, err := os.Stat("ran@"); err == nil {
		t.Skip()
	}
	os.WriteFile("ran@", nil, 0o600)
	t.Error("once")
}
`
	testMain = "func TestMain(m *testing.M) { m.Run(); os.Exit(3) }\n"
	broken   = "func Test@(*testing.T) { undefined() }\n"
)

const makefile = `GOTEST = go test
lint:
	@echo linted; [ ! -e lintfails ]
test: lint
	$(GOTEST) -timeout 1m $(TESTFLAGS) ./...
`

// module writes a module with these tests, Test0, Test1 and so on, a Makefile and the repository's .ci/run.
func module(t *testing.T, tests ...string) string {
	t.Helper()
	dir, repository := t.TempDir(), filepath.Join("..", "..")
	repository, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	text := "package small\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Exit\n"
	for i, body := range tests {
		text += strings.ReplaceAll(body, "@", string(rune('0'+i)))
	}
	for name, content := range map[string]string{
		"go.mod":             "module example.org/small\n\ngo 1.26\n",
		"small_test.go":      text,
		"other/good_test.go": "package other\n\nimport \"testing\"\n\n" + strings.ReplaceAll(good, "@", "Other"),
		"Makefile":           makefile,
		// Tools that .ci/run would install otherwise.
		"path/chromium": "", "path/prometheus": "",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".ci", "tools"} {
		if err := os.Symlink(filepath.Join(repository, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runCI runs .ci/run of a module and returns its output and whether it passed.
func runCI(t *testing.T, dir string) (string, bool) {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, ".ci", "run"))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "path")+":"+os.Getenv("PATH"), "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestCIRunsFailedTestsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		tests []string
		flaky []string
		pass  bool
		says  string
	}{
		"all good":    {[]string{good, good}, nil, true, "--- PASS: Test1"},
		"one flaky":   {[]string{good, flaky}, []string{"Test1"}, true, "--- FAIL: Test1"},
		"three flaky": {[]string{flaky, flaky, flaky}, []string{"Test0", "Test1", "Test2"}, true, ""},
		"four flaky": {
			[]string{flaky, flaky, flaky, flaky}, []string{"Test0", "Test1", "Test2", "Test3"},
			false, "4 tests are flaky",
		},
		"one always fails": {
			[]string{flaky, bad}, []string{"Test0"},
			false, "Test1 of example.org/small failed 3 times",
		},
		"one skips the second": {[]string{skips}, nil, false, "Test0 of example.org/small failed 3 times"},
		"a build failure":      {[]string{flaky, broken}, nil, false, "undefined: undefined"},
		"a panic":              {[]string{panics, flaky}, nil, false, "did not run to the end"},
		"an exit":              {[]string{flaky, exits}, nil, false, "did not run to the end"},
		"a failing TestMain":   {[]string{good, testMain}, nil, false, "no test of it failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, pass := runCI(t, module(t, c.tests...))
			var found []string
			for _, m := range regexp.MustCompile(`(?m)^FLAKY: (\S+)$`).FindAllStringSubmatch(out, -1) {
				found = append(found, m[1])
			}
			if pass != c.pass || !slices.Equal(found, c.flaky) || !strings.Contains(out, c.says) {
				t.Errorf("passed: %v; want %v, flaky %q and %q:\n%s", pass, c.pass, c.flaky, c.says, out)
			}
			for _, closing := range []string{"linted", "--- PASS: TestOther", "ok  \texample.org/small/other\t"} {
				if !strings.Contains(out, closing) {
					t.Errorf("%q is missing:\n%s", closing, out)
				}
			}
			if strings.Contains(out, "=== RUN") {
				t.Errorf("the output has the beginnings of tests:\n%s", out)
			}
		})
	}
}

// TestCIFailsWithLint checks that nothing makes up for a failed linter.
func TestCIFailsWithLint(t *testing.T) {
	dir := module(t, good)
	if err := os.WriteFile(filepath.Join(dir, "lintfails"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, pass := runCI(t, dir); pass || strings.Contains(out, "--- PASS") {
		t.Errorf("passed: %v:\n%s", pass, out)
	}
}
