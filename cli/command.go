package cli

import (
	"dev.muster/slurm"
	"dev.muster/slurm/front"
	"dev.muster/slurm/lua"
	"dev.muster/slurm/submit"
)

// Command is one of Slurm's commands that is to call the site's cli_filter.lua; words begin with its name.
func Command(words []string) int {
	haveLua()
	sys := front.RealSys(words[0])
	sys.Dial, sys.Args = front.DialLocal, words
	return slurm.Main(words, sys)
}

// haveLua has this process run cli_filter.lua itself.
func haveLua() {
	submit.OpenScript = func(text string, say func(level, line string)) (front.SiteScript, error) {
		script, err := lua.NewCLI(text, say)
		if err != nil {
			return nil, err
		}
		return script, nil
	}
}
