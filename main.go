// Command muster is a workload manager for GPU clusters in one binary: server, client and, under
// the names of Slurm's commands, everything a user types. Its front-ends end in package early, its own
// commands are those of package cli, and what it starts itself is the table below.
package main

import (
	"context"
	"fmt"
	"os"

	"dev.muster/agent/container/imagehelper"
	"dev.muster/agent/supervisor"
	"dev.muster/agent/userfile"
	"dev.muster/cli"
	"dev.muster/cli/mcphost"
	"dev.muster/cli/nodetest"
	_ "dev.muster/early" // front-ends end in its init, before anything else of this file is initialized
	"dev.muster/gpu"
	"dev.muster/gpu/nvml"
	"dev.muster/pmi/pmix"
	"dev.muster/ui/page"
)

// program is one that muster runs as a process of its own: muster internal NAME WORDS. With other words it
// is no program, and the command line is one of muster's commands, or a mistake.
type program struct {
	name string
	fits func(words []string) bool
	run  func(words []string) int
}

func programs() []program {
	return []program{
		{"supervisor", func(w []string) bool { return len(w) == 2 && w[0] == "--dir" },
			func(w []string) int { return exitOf("muster supervisor:", supervisor.Main(context.Background(), w[1])) }},
		{"userfile", func(w []string) bool { return len(w) == 0 }, func([]string) int { return userfile.Serve() }},
		{"gpu-helper", always, func(w []string) int { return gpu.HelperMain(w, library()) }},
		{"pmix", func(w []string) bool { return len(w) == 0 }, func([]string) int { return pmix.Main() }},
		{"burnin", always, nodetest.Here},
		{"burnin-fabric", func(w []string) bool { return len(w) == 0 }, nodetest.FabricHere},
		{"sql", func(w []string) bool { return len(w) == 0 }, mcphost.SQLMain},
		{"burst", func(w []string) bool { return len(w) == 0 }, cli.BurstHere},
		{"image", always, imagehelper.Main},
		{"task", func(w []string) bool { return len(w) > 0 },
			func(w []string) int { return supervisor.TaskMain(os.Args[:3], w) }},
		{"command", func(w []string) bool { return len(w) > 0 }, cli.Command},
		{"cast", func(w []string) bool { return len(w) == 0 || w[0] == "then" }, cli.CastHere},
		{"pmi", func(w []string) bool { return len(w) == 0 }, cli.ServePMI},
		{"names", func(w []string) bool { return len(w) > 0 }, cli.Names},
		{"connect", func(w []string) bool { return len(w) == 1 }, cli.Connect},
		{"reach", func(w []string) bool { return len(w) == 1 }, cli.Reach},
		{"files", func(w []string) bool { return len(w) == 1 },
			func(w []string) int { return exitOf("muster:", cli.WriteFiles(w[0])) }},
	}
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "internal" {
		for _, p := range programs() {
			if words := os.Args[3:]; p.name == os.Args[2] && p.fits(words) {
				os.Exit(p.run(words))
			}
		}
	}
	os.Exit(cli.Main(os.Args, page.New))
}

func always([]string) bool { return true }

// exitOf prints why a program failed, and returns its exit code.
func exitOf(name string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, name, err)
	return 1
}

// library is what the GPU helper asks, nil in a program that was built without it.
func library() func() gpu.Source {
	if nvml.Built {
		return nvml.Open
	}
	return nil
}
