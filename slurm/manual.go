package slurm

import (
	"dev.muster/slurm/control"
	"dev.muster/slurm/cron"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/report"
	"dev.muster/slurm/sacctmgr"
	"dev.muster/slurm/show"
	"dev.muster/slurm/stage"
	"dev.muster/slurm/submit"
)

// Page is what a manual and a shell's completion tell of a front-end.
type Page struct {
	Name, Summary string
	Operands      string // what follows the name
	Options       []opt.Entry
	Words         []string // commands that it takes
	Sections      []Section
}

// Pages are those of all front-ends, out of the tables that they read their command lines by.
func Pages() (list []Page) {
	for _, f := range frontEnds() {
		p := Page{Name: f.name, Summary: f.summary}
		p.Operands, p.Options = described(f.name)
		p.Sections = sections(f.name)
		switch f.name {
		case "scontrol":
			p.Words = control.ScontrolVerbs()
		case "sacctmgr":
			p.Words = sacctmgr.Verbs()
		}
		list = append(list, p)
	}
	return list
}

func described(name string) (operands string, options []opt.Entry) {
	switch name {
	case "sbatch":
		return submitPage(opt.Sbatch)
	case "srun":
		return submitPage(opt.Srun)
	case "salloc":
		return submitPage(opt.Salloc)
	case "scancel":
		return queryPage(opt.Scancel, control.ScancelOptions)
	case "squeue":
		return queryPage(opt.Squeue, show.SqueueOptions)
	case "sinfo":
		return queryPage(opt.Sinfo, show.SinfoOptions)
	case "scontrol":
		return queryPage(opt.Scontrol, control.ScontrolOptions)
	case "sacct":
		return queryPage(opt.Sacct, report.SacctOptions)
	case "sacctmgr":
		return queryPage(opt.Sacctmgr, sacctmgr.Options)
	case "sprio":
		return queryPage(opt.Sprio, report.SprioOptions)
	case "sshare":
		return queryPage(opt.Sshare, report.SshareOptions)
	case "sreport":
		return queryPage(opt.Sreport, report.SreportOptions)
	case "sdiag":
		return queryPage(opt.Sdiag, report.SdiagOptions)
	case "seff":
		return queryPage(opt.Seff, report.SeffOptions)
	case "sbcast":
		return queryPage(opt.Sbcast, stage.SbcastOptions)
	case "sattach":
		return queryPage(opt.Sattach, stage.SattachOptions)
	case "sgather":
		return queryPage(opt.Sgather, stage.SgatherOptions)
	case "sstat":
		return queryPage(opt.Sstat, report.SstatOptions)
	case "strigger":
		return queryPage(opt.Strigger, control.StriggerOptions)
	case "scrontab":
		return queryPage(opt.Scrontab, cron.ScrontabOptions)
	}
	return "", nil
}

func submitPage(prog opt.Prog) (string, []opt.Entry) {
	return "[OPTIONS...] " + front.Operands(prog), submit.ParserFor(prog).Describe()
}

func queryPage[T any](prog opt.Prog, rows []opt.Option[T]) (string, []opt.Entry) {
	p := &opt.Parser[T]{Prog: prog, Rows: [][]opt.Option[T]{rows}}
	return front.Operands(prog), p.Describe()
}
