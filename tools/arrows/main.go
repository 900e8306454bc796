// Command arrows reads how the files of each package stand on each other, and holds that to a limit: in the best order
// of its files, fewer than a fifth of the arrows between them may run up, from a file to one above it.
//
// An arrow leads from a file to another one that declares something it names: a function, a method, a type, a variable
// or a constant of the package. Names are resolved by the type checker; fields and tests are not counted.
//
//	go run ./arrows ROOT                what is over the limit, exit code 1 if anything is
//	go run ./arrows -up ROOT [PATTERN…] each arrow that runs up, with the names, and the order of the files
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

// share is the limit: of so many arrows fewer than one may run up.
const share = 5

func main() {
	up := flag.Bool("up", false, "print each arrow that runs up, and the order of the files")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: arrows [-up] ROOT [PATTERN…]")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Args()[1:], *up); err != nil {
		fmt.Fprintln(os.Stderr, "arrows:", err)
		os.Exit(1)
	}
}

func run(root string, patterns []string, up bool) error {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	list, err := packages.Load(&packages.Config{
		Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports,
	}, patterns...)
	if err != nil {
		return err
	}
	over := 0
	for _, p := range list {
		if len(p.Errors) > 0 {
			return fmt.Errorf("%s: %w", p.PkgPath, p.Errors[0])
		}
		if judge(p, up) {
			over++
		}
	}
	if over > 0 {
		return errors.New("move what files share to the lower one; -up lists the arrows")
	}
	return nil
}

// judge prints a package that is over the limit, or all that runs up in it, and reports whether it is over.
func judge(p *packages.Package, up bool) bool {
	g := graphOf(p)
	order := g.order()
	back := g.back(order)
	over := len(back)*share >= g.arrows && len(back) > 0
	if over || up {
		fmt.Printf("%s: %d of %d arrows between files run up\n", p.PkgPath, len(back), g.arrows)
	}
	if !up {
		return over
	}
	fmt.Println("  from the ground:", strings.Join(order, " "))
	for _, a := range back {
		fmt.Printf("  %s -> %s: %s\n", a.from, a.to, strings.Join(g.names(a), " "))
	}
	return over
}
