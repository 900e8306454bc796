package slurm

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/submit"
	"golang.org/x/tools/go/packages"
)

// onlyShown are the fields that do nothing but to be told again: by squeue, scontrol and sacct, or to programs of
// the site.
var onlyShown = map[string]string{
	"JobSpec.AllocSid":               "of the submitting shell",
	"JobSpec.MCSLabel":               "a label; --exclusive=mcs is refused",
	"JobFlags.Reboot":                "refused; jobs of earlier versions may have it",
	"Remarks.Power":                  "its use is noted",
	"JobTimes.InactiveLimit":         "its use is noted",
	"SchedulingPolicy.BackfillDepth": "of earlier versions, whose logs have it",
	"Partition.NodesText":            "Nodes, as written",
	"Switch.NodesText":               "Nodes, as written",
	"Block.NodesText":                "Nodes, as written",
	"Association.Comment":            "a comment",
	"Remarks.Extra":                  "text of the user's own",
}

// settersAndShows are how the files begin whose reading of a field does not count: they read options and
// configurations, or show them.
var settersAndShows = []string{
	"slurm/submit/options_", "slurm/submit/setters.go", "slurm/values/", "slurm/submit/finish", "slurm/conf/",
	"slurm/control/scontrol_", "slurm/sacctmgr/", "slurm/report/sacct_", "slurm/imported/", "slurm/show/squeue_columns.go",
	"slurm/show/job_data.go", "slurm/show/part_data.go", "slurm/show/node_data.go", "slurm/show/jobview.go",
	"slurm/show/reservation.go", "slurm/show/books.go", "cli/lint.go",
	"cluster/spec_bytes.go", // counts bytes
}

// setByUsers are the structs that options, configurations, scontrol and sacctmgr fill.
var setByUsers = []any{
	cluster.JobSpec{}, cluster.StepSpec{}, cluster.Layout{}, submit.ClientOptions{},
	cluster.Config{}, cluster.Partition{}, cluster.PriorityConfig{}, cluster.PreemptConfig{},
	cluster.PowerConfig{}, cluster.Constrain{}, cluster.Enforce{}, cluster.GRESLine{},
	cluster.Switch{}, cluster.Block{}, cluster.HealthCheck{}, cluster.Unkillable{}, cluster.JobComp{},
	cluster.Patch{}, cluster.Reservation{}, cluster.Limit{}, cluster.Account{}, cluster.User{},
	cluster.Association{}, cluster.QOS{},
}

// TestFieldsAreRead: whatever an option, a key of the configuration or a field of scontrol and sacctmgr sets is
// read by something that acts, or only told again and known to be.
func TestFieldsAreRead(t *testing.T) {
	readers := fieldReaders(t)
	for _, typ := range withSections(setByUsers) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Anonymous || f.Name == "_" {
				continue
			}
			name := typ.Name() + "." + f.Name
			read := slices.ContainsFunc(readers[name], acts)
			if typ == reflect.TypeFor[submit.ClientOptions]() { // what becomes of them is worked out there
				read = read || slices.ContainsFunc(readers[name], finishes)
			}
			if isPatch(typ) && f.Tag.Get("rule") == "" {
				read = true // it replaces the field of JobSpec of its name: see TestPatchFields
			}
			if why, known := onlyShown[name]; !read && !known {
				t.Errorf("%s is set and nothing reads it: refuse its option, say that it is ignored, or name it among those that are told again",
					name)
			} else if known && why == "" {
				t.Errorf("%s: say why", name)
			} else if known && read {
				t.Errorf("%s is read by %v: it is more than shown", name, readers[name])
			}
		}
	}
}

// withSections are the types of values, and those of the structs that they embed.
func withSections(values []any) (all []reflect.Type) {
	for _, v := range values {
		all = append(all, reflect.TypeOf(v))
	}
	for i := 0; i < len(all); i++ {
		for k := range all[i].NumField() {
			f := all[i].Field(k)
			if f.Anonymous && f.Type.Kind() == reflect.Struct && !slices.Contains(all, f.Type) {
				all = append(all, f.Type)
			}
		}
	}
	return all
}

// acts reports whether what a file reads may change what is done.
func acts(file string) bool {
	const compares = "slurm/sacctmgr/sacctmgr.go" // says what is there already
	return file == compares || !slices.ContainsFunc(settersAndShows,
		func(p string) bool { return strings.HasPrefix(file, p) })
}

func finishes(file string) bool { return strings.HasPrefix(file, "slurm/submit/finish") }

// fieldReaders are the files that read each field, Type.Field: selectors of that field that nothing is assigned to.
func fieldReaders(t *testing.T) map[string][]string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
		packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo
	pkgs, err := packages.Load(&packages.Config{Mode: mode, Dir: root}, "./...")
	if err != nil || len(pkgs) == 0 {
		t.Fatal(len(pkgs), "packages", err)
	}
	names := map[string]string{} // of fields by where they are declared, which all packages agree on
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			t.Fatalf("%s: %v", p.PkgPath, p.Errors)
		}
		scope := p.Types.Scope()
		for _, name := range scope.Names() {
			if s, ok := scope.Lookup(name).Type().Underlying().(*types.Struct); ok {
				for f := range s.Fields() {
					names[placeOf(p.Fset, f)] = name + "." + f.Name()
				}
			}
		}
	}
	out := map[string][]string{}
	for _, p := range pkgs {
		for _, file := range p.Syntax {
			path, _ := filepath.Rel(root, p.Fset.Position(file.Pos()).Filename)
			for _, f := range fieldsRead(p, file) {
				if name := names[placeOf(p.Fset, f)]; name != "" && !slices.Contains(out[name], path) {
					out[name] = append(out[name], path)
				}
			}
		}
	}
	return out
}

func placeOf(fset *token.FileSet, f types.Object) string {
	at := fset.Position(f.Pos())
	return fmt.Sprintf("%s:%d:%s", at.Filename, at.Line, f.Name())
}

// fieldsRead are the fields that a file reads. Code that copies a struct field by field reads none.
func fieldsRead(p *packages.Package, file *ast.File) (out []types.Object) {
	set := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return n.Name.Name != "Brief"
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				markSet(set, l)
			}
		case *ast.SelectorExpr:
			if s := p.TypesInfo.Selections[n]; s != nil && s.Kind() == types.FieldVal && !set[n] {
				out = append(out, s.Obj())
			}
		}
		return true
	})
	return out
}

// markSet marks the fields that an assignment to x sets, or sets a part of.
func markSet(set map[ast.Node]bool, x ast.Expr) {
	for {
		switch e := x.(type) {
		case *ast.SelectorExpr:
			set[e] = true
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		default:
			return
		}
	}
}

// TestOptionRows: each option sets something, or says when it is used that it has no effect, and why.
func TestOptionRows(t *testing.T) {
	for _, rows := range submit.ParserFor(opt.Sbatch).Rows {
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

// isPatch reports whether a struct holds fields of a patch.
func isPatch(typ reflect.Type) bool {
	return typ == reflect.TypeFor[cluster.Patch]() || typ == reflect.TypeFor[cluster.PatchMore]()
}
