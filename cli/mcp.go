package cli

import (
	"dev.muster/cli/manual"
	"dev.muster/cli/mcp"
	"dev.muster/slurm"
	"dev.muster/slurm/front"
)

// toolWorld is what agents' tools need of muster's commands.
func toolWorld() *mcp.World {
	return &mcp.World{
		Version: front.Version,
		Manual:  manualText,
		Lint:    func(s *front.Sys) { runLint(s, []string{"-"}) },
	}
}

// manualText returns a manual page as plain text, or the list of pages.
func manualText(name string) (string, bool) {
	var pages []manual.Page
	for _, p := range slurm.Pages() {
		pages = append(pages, manual.Page{Page: p})
	}
	for _, c := range app(nil).Commands {
		if !slurm.IsCommand(c.Name) {
			pages = append(pages, nativePage(c))
		}
	}
	return manual.Find(pages, name)
}
