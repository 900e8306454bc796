package cluster

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unseen are words that no command shows.
var unseen = map[Reason]string{NoReason: "shown as None", EndPreempted: "of Expire alone; such jobs show no reason"}

var rewrite = flag.Bool("rewrite", false, "rewrite docs/reasons.md")

const reasonsFile = "../docs/reasons.md"

// TestReasons keeps docs/reasons.md as the table is (-rewrite does it), the table as the constants are, and each
// row's scenario or test there.
func TestReasons(t *testing.T) {
	rows := map[Reason]bool{}
	for _, r := range ReasonRows() {
		rows[r.Word] = true
		if !produced(t, r.Test) {
			t.Errorf("%s: there is no %s", r.Word, r.Test)
		}
	}
	for name, word := range reasonConsts(t) {
		if !rows[word] && unseen[word] == "" {
			t.Errorf("%s (%q) is not in the table of reasons", name, word)
		}
	}
	limits, err := os.ReadFile("../sched/limit_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range limitTable() {
		if !strings.Contains(string(limits), r.name+"=") {
			t.Errorf("TestLimits has no case for %s", r.name)
		}
	}
	want := reasonsText()
	if *rewrite {
		if err := os.WriteFile(reasonsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if now, err := os.ReadFile(reasonsFile); err != nil || string(now) != want {
		t.Errorf("%v: %s is stale: go test ./cluster -run TestReasons -rewrite", err, reasonsFile)
	}
}

// produced reports whether a scenario or test exists.
func produced(t *testing.T, name string) bool {
	if file, title, ok := strings.Cut(name, "/"); ok {
		text, err := os.ReadFile("../sched/testdata/scenarios/" + file + ".txt")
		return err == nil && strings.Contains("\n"+string(text), "\n== "+title+"\n")
	}
	pkg, test, _ := strings.Cut(name, ".")
	files, err := filepath.Glob("../" + pkg + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}

// reasonConsts reads the constants of type Reason from job.go.
func reasonConsts(t *testing.T) map[string]Reason {
	f, err := parser.ParseFile(token.NewFileSet(), "job.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Reason{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := v.Type.(*ast.Ident); ok && id.Name == "Reason" && len(v.Values) == 1 {
			out[v.Names[0].Name] = Reason(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`))
		}
		return true
	})
	if len(out) < 20 {
		t.Fatalf("job.go has only %d reasons", len(out))
	}
	return out
}

func reasonsText() string {
	var b strings.Builder
	b.WriteString("# Reasons of pending and ended jobs\n\n" +
		"`squeue` (%r, %R) and `scontrol show job` show one of these words as the reason of a job. `muster why JOB`\n" +
		"(or `scontrol -d show job JOB`) prints all causes with numbers, the jobs that hold the resources and until\n" +
		"when, and the changes that would start the job sooner. `None` means that the scheduler has not considered\n" +
		"the job yet. This page is generated: `go test ./cluster -run TestReasons -rewrite`.\n")
	for _, ended := range []bool{false, true} {
		b.WriteString(map[bool]string{false: "\n## Pending jobs\n", true: "\n## Ended jobs\n"}[ended])
		b.WriteString("\n| reason | meaning | remedy | test |\n|---|---|---|---|\n")
		for _, r := range ReasonRows() {
			if r.Ended == ended {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Word, r.Means, r.Do, r.Test)
			}
		}
	}
	b.WriteString("\n## Limits\n\nLimits apply with `AccountingStorageEnforce=limits`. A job that waits for a limit does not delay others.\n" +
		"`sacctmgr show assoc` and `sacctmgr show qos` list the limits. sched.TestLimits has a case for each.\n\n| limit | reasons | what is limited | remedy |\n|---|---|---|---|\n")
	for _, r := range LimitRows() {
		words := make([]string, len(r.Words))
		for i, w := range r.Words {
			words[i] = string(w)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Name, strings.Join(words, ", "), r.Means, r.Do)
	}
	return b.String()
}
