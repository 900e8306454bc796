// Command muster-pmix is the PMIx server of a step's tasks on one node: the part of package pmi
// that needs cgo. It is no program for people: make build embeds it in muster, which runs it as
// muster internal pmix.
package main

import (
	"os"

	"dev.muster/pmi/pmix"
)

func main() { os.Exit(pmix.Main()) }
