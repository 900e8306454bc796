package slurm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/opt"
)

// onlyShown are the fields that do nothing but to be told again: by squeue, scontrol and sacct, or to programs of the site.
var onlyShown = map[string]string{
	"JobSpec.AllocSid": "of the submitting shell", "JobSpec.MCSLabel": "a label; --exclusive=mcs is refused",
	"Layout.GPUFreq": "GPUs keep the clocks that they have; its use is noted", "Layout.BurstBuffer": "there is no burst buffer; shown as in Slurm without its plugin",
}

// settersAndShows are the files whose reading of a field does not count.
var settersAndShows = []string{"options_", "setters.go", "finish", "values", "scontrol_show.go", "squeue_columns.go", "queryjson.go", "sacct_columns.go", "jobview.go", "lint.go"}

// TestOptionsAreRead: whatever an option sets is read by something that acts, or only told again and known to be.
func TestOptionsAreRead(t *testing.T) {
	readers := fieldReaders(t, "..")
	for _, of := range []any{cluster.JobSpec{}, cluster.StepSpec{}, cluster.Layout{}, ClientOptions{}} {
		typ := reflect.TypeOf(of)
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Anonymous {
				continue
			}
			read := slices.ContainsFunc(readers[f.Name], func(file string) bool {
				return !slices.ContainsFunc(settersAndShows, func(p string) bool { return strings.HasPrefix(file, "slurm/"+p) }) ||
					typ == reflect.TypeFor[ClientOptions]() && strings.HasPrefix(file, "slurm/finish")
			})
			name := typ.Name() + "." + f.Name
			if why, known := onlyShown[name]; !read && !known {
				t.Errorf("%s is set and nothing reads it: refuse its option, say that it is ignored, or name it among those that are told again", name)
			} else if known && why == "" {
				t.Errorf("%s: say why", name)
			}
		}
	}
}

// fieldReaders are the files that read a field of each name: selectors that nothing is assigned to.
func fieldReaders(t *testing.T, root string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		set := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok {
				for _, l := range a.Lhs {
					set[l] = true
				}
			}
			if s, ok := n.(*ast.SelectorExpr); ok && !set[s] {
				name, _ := filepath.Rel(root, path)
				out[s.Sel.Name] = append(out[s.Sel.Name], name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOptionRows: each option sets something, or says when it is used that it has no effect, and why.
func TestOptionRows(t *testing.T) {
	for _, rows := range parserFor(opt.Sbatch).Rows {
		for _, row := range rows {
			switch {
			case row.Alias != "" || row.Group == opt.HelpGroup || row.Long == "version":
			case row.Set == nil && row.Ignored == "":
				t.Errorf("--%s sets nothing and does not say that it is ignored", row.Long)
			case row.Ignored != "" && len(strings.Fields(row.Ignored)) < 2:
				t.Errorf("--%s is ignored because of %q: say why", row.Long, row.Ignored)
			}
		}
	}
}
