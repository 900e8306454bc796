package manual

import (
	"fmt"
	"path"

	"dev.muster/packaging"
	"dev.muster/slurm"
)

// Files are the manuals and the completion of muster and of the front-ends, below a prefix; of the wrappers there is
// one manual for all.
func Files(muster Page) (list []packaging.File) {
	pages := []Page{muster}
	for _, p := range slurm.Pages() {
		pages = append(pages, Page{Page: p})
	}
	for i := range pages {
		p := &pages[i]
		list = append(list, file(path.Join("share/man/man1", p.Name+".1"), p.man()),
			file(path.Join("share/bash-completion/completions", p.Name), p.bash()),
			file(path.Join("share/zsh/site-functions", "_"+p.Name), p.zsh()),
			file(path.Join("share/fish/vendor_completions.d", p.Name+".fish"), p.fish()))
	}
	wrappers := slurm.WrapperPages()
	for i := range wrappers {
		list = append(list, wrapperFiles(&wrappers[i])...)
	}
	for _, t := range topics() {
		p := Page{Page: t.Page}
		name := fmt.Sprintf("share/man/man%d/%s.%[1]d", t.Chapter, p.Name)
		list = append(list, file(name, p.manual(t.Chapter, t.About)))
	}
	return list
}

// file is one of them.
func file(name, text string) packaging.File { return packaging.File{Path: name, Text: text} }
