package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pathTable lists the functions that pass paths to the kernel. docs/changing.md explains its columns.
const pathTable = "docs/paths.tsv"

// pathRooms are the folders whose packages the table covers: those that run as root or on behalf of users.
var pathRooms = []string{"agent/", "cast/", "packaging/"}

// kernelCalls are the calls of package unix and package syscall that take a path.
const kernelCalls = "Open Openat Openat2 OpenByHandleAt Creat Stat Lstat Fstatat Statx Access Faccessat Faccessat2 " +
	"Mkdir Mkdirat Mknod Mknodat Mkfifo Mkfifoat Unlink Unlinkat Rmdir Rename Renameat Renameat2 Link Linkat " +
	"Symlink Symlinkat Readlink Readlinkat Chmod Fchmodat Chown Lchown Fchownat Utimes UtimesNano UtimesNanoAt " +
	"Truncate Chdir Chroot PivotRoot Mount Unmount OpenTree MoveMount MountSetattr Statfs ForkExec StartProcess " +
	"Exec Getxattr Lgetxattr Setxattr Lsetxattr Removexattr Lremovexattr Listxattr Llistxattr InotifyAddWatch"

// pathCalls are the functions that take a path, by their package.
var pathCalls = map[string][]string{
	"os": strings.Fields("Open OpenFile OpenInRoot Create CreateTemp MkdirTemp ReadFile WriteFile ReadDir Stat " +
		"Lstat Mkdir MkdirAll Remove RemoveAll Rename Link Symlink Readlink Chmod Chown Lchown Chtimes Truncate " +
		"Chdir OpenRoot DirFS CopyFS StartProcess"),
	"os/exec":                   strings.Fields("Command CommandContext LookPath"),
	"path/filepath":             strings.Fields("Walk WalkDir Glob EvalSymlinks"),
	"syscall":                   strings.Fields(kernelCalls),
	"golang.org/x/sys/unix":     strings.Fields(kernelCalls),
	"dev.muster/durable":        strings.Fields("Write WriteFile Swap Rename"),
	"dev.muster/agent/userfile": strings.Fields("Open OpenRegular Stat"),
}

// The words of the table's columns.
var (
	pathChoosers   = []string{"daemon", "kernel", "site", "user", "job", "image", "peer"}
	pathIdentities = []string{"daemon", "user process", "user thread", "helper"}
	// pathStrangers choose paths that root must not resolve.
	pathStrangers = []string{"user", "job", "image", "peer"}
)

// pathRow is a row of the table.
type pathRow struct{ function, calls, chooser, identity, how string }

// pathHead is the first row of the table.
var pathHead = pathRow{"function", "calls", "chosen by", "identity", "how"}

// TestTidyPaths compares the table with the source: no function calls the kernel with a path unless the table tells
// who chooses that path and whose rights count.
func TestTidyPaths(t *testing.T) {
	b, err := os.ReadFile(pathTable)
	if err != nil {
		t.Fatal(err)
	}
	rows, complaints := readPathRows(string(b))
	complaints = append(complaints, checkPathRows(rows, findPathCalls(t))...)
	for _, c := range complaints {
		t.Errorf("%s: %s", pathTable, c)
	}
}

// findPathCalls lists the calls of each function that the table covers.
func findPathCalls(t *testing.T) map[string]string {
	found := map[string]map[string]bool{}
	goFiles(t, func(name string, f *ast.File, _ *token.FileSet) {
		name = filepath.ToSlash(name)
		covered := func(room string) bool { return strings.HasPrefix(name, room) }
		if !strings.HasSuffix(name, "_test.go") && slices.ContainsFunc(pathRooms, covered) {
			addPathCalls(found, path.Dir(name), f)
		}
	})
	return joinCalls(found)
}

func joinCalls(found map[string]map[string]bool) map[string]string {
	calls := map[string]string{}
	for function, names := range found {
		calls[function] = strings.Join(slices.Sorted(maps.Keys(names)), ",")
	}
	return calls
}

// addPathCalls adds the calls in a file of the package pkg to found. A function that is passed on counts as called.
func addPathCalls(found map[string]map[string]bool, pkg string, f *ast.File) {
	imported := importNames(f)
	for _, d := range f.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || !slices.Contains(pathCalls[imported[x.Name]], sel.Sel.Name) {
				return true
			}
			function := pkg + "." + declName(d, n.Pos())
			if found[function] == nil {
				found[function] = map[string]bool{}
			}
			found[function][path.Base(imported[x.Name])+"."+sel.Sel.Name] = true
			return true
		})
	}
}

// importNames maps the names of a file's imports to their paths.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		what, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(what)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = what
	}
	return names
}

// declName names the function, or the variable, in whose declaration pos is.
func declName(d ast.Decl, pos token.Pos) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		return receiverName(d.Recv.List[0].Type) + "." + d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && v.Pos() <= pos && pos < v.End() {
				return v.Names[0].Name
			}
		}
	}
	return "?"
}

func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return "(*" + receiverName(e.X) + ")"
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// readPathRows reads the table, and complains about rows that cannot be read.
func readPathRows(text string) (rows []pathRow, complaints []string) {
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		cells := strings.Split(line, "\t")
		if len(cells) != 5 || slices.Contains(cells, "") {
			complaints = append(complaints, fmt.Sprintf("line %d: want five columns, none of them empty", i+1))
			continue
		}
		rows = append(rows, pathRow{cells[0], cells[1], cells[2], cells[3], cells[4]})
	}
	if len(rows) == 0 || rows[0] != pathHead {
		return rows, append(complaints, "the first row must name the columns")
	}
	rows = rows[1:]
	if !slices.IsSortedFunc(rows, func(a, b pathRow) int { return strings.Compare(a.function, b.function) }) {
		complaints = append(complaints, "the rows must be sorted by function (LC_ALL=C sort)")
	}
	return rows, complaints
}

// checkPathRows compares rows with the calls of each function, and checks each row.
func checkPathRows(rows []pathRow, calls map[string]string) (complaints []string) {
	rest := maps.Clone(calls)
	for _, r := range rows {
		have, ok := rest[r.function]
		switch {
		case !ok:
			complaints = append(complaints, r.function+" has two rows, or takes no path anymore: remove the row")
		case have != r.calls:
			complaints = append(complaints, r.function+" now calls "+have+
				": look at the new calls, correct the row, and check who chooses their paths")
		}
		delete(rest, r.function)
		if fault := r.check(); fault != "" {
			complaints = append(complaints, r.function+": "+fault)
		}
	}
	for _, function := range slices.Sorted(maps.Keys(rest)) {
		complaints = append(complaints, fmt.Sprintf("%s calls %s: add a row; say who chooses the path (%s), "+
			"whose rights count (%s), and how the path is resolved", function, rest[function],
			strings.Join(pathChoosers, ", "), strings.Join(pathIdentities, ", ")))
	}
	return complaints
}

// check says what is wrong with a row, "" if nothing is.
func (r *pathRow) check() string {
	stranger := slices.Contains(pathStrangers, r.chooser)
	guarded := strings.HasPrefix(r.how, "below ") || strings.HasPrefix(r.how, "in root's ")
	switch {
	case !slices.Contains(pathChoosers, r.chooser):
		return "unknown chooser: " + r.chooser + "; use " + strings.Join(pathChoosers, ", ")
	case !slices.Contains(pathIdentities, r.identity):
		return "unknown identity: " + r.identity + "; use " + strings.Join(pathIdentities, ", ")
	case stranger && r.identity == "daemon" && !guarded:
		return "the daemon must not resolve a path that the " + r.chooser + " chooses; open it in a process of the " +
			"user (userfile.Pool), on a thread of the user (userfile.Apart), below an open folder (os.Root), or in a " +
			"folder that only root can write, and begin the column \"how\" with \"below\" or \"in root's\""
	case stranger && strings.Contains(r.calls, "unix.Openat2") && !mayOpenat2(r.function):
		return "paths of others are opened by package userfile: it has the flags and the fallback"
	}
	return ""
}

// mayOpenat2 reports whether a function may call openat2(2) itself for paths that a user chooses.
func mayOpenat2(function string) bool {
	return strings.HasPrefix(function, "agent/userfile.") || function == "agent/container.openPath"
}

// TestTidyPathsReports has the checker report what the table must not keep quiet about.
func TestTidyPathsReports(t *testing.T) {
	const source = `package x

import (
	"os"

	sys "golang.org/x/sys/unix"
)

type tail struct{}

func (*tail) follow(name string) { _, _ = os.Open(name); _ = sys.Unlink(name) }

var read = os.ReadFile

func harmless(f *os.File) { f.Stat() }
`
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]bool{}
	addPathCalls(found, "agent/x", f)
	calls := joinCalls(found)
	if len(calls) != 2 {
		t.Errorf("found %v, want the calls of two functions", calls)
	}
	const (
		follow = "agent/x.(*tail).follow\tos.Open,unix.Unlink\t"
		read   = "agent/x.read\tos.ReadFile\tdaemon\tdaemon\tits own state\n"
	)
	for _, c := range []struct{ name, rows, want string }{
		{"complete", follow + "user\tuser process\ta task's own\n" + read, ""},
		{"guarded", follow + "user\tdaemon\tbelow an open folder\n" + read, ""},
		{"missing", read, "agent/x.(*tail).follow calls os.Open,unix.Unlink: add a row"},
		{"changed", "agent/x.(*tail).follow\tos.Open\tsite\tdaemon\tx\n" + read, "now calls os.Open,unix.Unlink"},
		{"stale", follow + "site\tdaemon\tx\n" + read + "agent/x.was\tos.Open\tsite\tdaemon\tx\n", "remove the row"},
		{"unguarded", follow + "job\tdaemon\tO_NOFOLLOW\n" + read, "the daemon must not resolve a path that the job"},
		{"chooser", follow + "somebody\tdaemon\tx\n" + read, "unknown chooser: somebody"},
		{"identity", follow + "user\tsomebody\tx\n" + read, "unknown identity: somebody"},
		{"unsorted", read + follow + "site\tdaemon\tx\n", "sorted"},
		{"empty cell", follow + "site\tdaemon\t\n" + read, "five columns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			head := strings.Join([]string{pathHead.function, pathHead.calls, pathHead.chooser, pathHead.identity,
				pathHead.how}, "\t") + "\n"
			rows, complaints := readPathRows(head + c.rows)
			got := strings.Join(append(complaints, checkPathRows(rows, calls)...), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("complaints %q, want %q", got, c.want)
			}
		})
	}
}

// TestTidyPathsOpenat2 has one package open what users name.
func TestTidyPathsOpenat2(t *testing.T) {
	for function, want := range map[string]bool{"agent/userfile.resolve": true, "agent/container.openPath": true,
		"agent/tail.open": false} {
		r := pathRow{function, "unix.Openat2", "user", "user thread", "openat2"}
		if got := r.check() == ""; got != want {
			t.Errorf("%s may call openat2: %v, want %v", function, got, want)
		}
	}
}
