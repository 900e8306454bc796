package mcphost

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of the search for modules.
const (
	maxModuleFolders = 200
	maxModules       = 100
)

// modules lists the environment modules that MODULEPATH names, without running anything.
func modules() (list []string) {
	folders := 0
	for dir := range strings.SplitSeq(os.Getenv("MODULEPATH"), ":") {
		if dir == "" {
			continue
		}
		top, _ := os.ReadDir(dir)
		for _, name := range top {
			if folders++; folders > maxModuleFolders || len(list) >= maxModules {
				return list
			}
			if strings.HasPrefix(name.Name(), ".") {
				continue
			}
			if !name.IsDir() {
				list = append(list, strings.TrimSuffix(name.Name(), ".lua"))
				continue
			}
			versions, _ := os.ReadDir(filepath.Join(dir, name.Name()))
			for _, v := range versions[:min(len(versions), maxModules)] {
				if !strings.HasPrefix(v.Name(), ".") {
					list = append(list, name.Name()+"/"+strings.TrimSuffix(v.Name(), ".lua"))
				}
			}
		}
	}
	slices.Sort(list)
	return list
}
