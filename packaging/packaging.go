// Package packaging brings muster onto machines: what a server gives to those that have nothing but curl, what an
// installation consists of, and how it is made, changed and removed.
package packaging

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed install.sh
var script string

//go:embed config/muster.env
var envFile string

// Notices are the licenses of the software that muster's programs contain (tools/notices).
//
//go:embed NOTICES
var Notices string

//go:embed systemd/*.service
var units embed.FS

// hardening restricts a server that runs no jobs.
//
//go:embed systemd/server-hardening.conf
var hardening string

// Unit is a unit of systemd.
type Unit struct {
	Name string
	Text string
}

// Units by names that guides for Slurm use.
var slurmUnits = []string{"slurmctld.service", "slurmd.service", "slurmdbd.service"}

// mungeUnit is put where there is none.
const mungeUnit = "munge.service"

// Units are the units for a binary at a path, in the order of their names.
func Units(bin string) (list []Unit, err error) {
	names, err := fs.Glob(units, "systemd/*.service")
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		text, err := units.ReadFile(n)
		if err != nil {
			return nil, err
		}
		list = append(list, Unit{
			Name: strings.TrimPrefix(n, "systemd/"), Text: strings.ReplaceAll(string(text), "@BIN@", bin),
		})
	}
	return list, nil
}

// Environment is the file with the options of a daemon.
func Environment(options string) (string, error) {
	if strings.ContainsAny(options, "\n\r\"'\\$`#;") {
		return "", fmt.Errorf("options %q: a file of systemd cannot hold them as they are; edit the file by hand",
			options)
	}
	return strings.ReplaceAll(envFile, "@OPTIONS@", options), nil
}
