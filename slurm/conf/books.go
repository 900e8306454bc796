package conf

import (
	"cmp"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// retentionKeys say how long records are kept, and whether they are archived.
var retentionKeys = [...]struct {
	key     string
	kind    cluster.RecordKind
	archive bool
}{
	{"purgeeventafter", cluster.EventRecords, false}, {"archiveevents", cluster.EventRecords, true},
	{"purgejobafter", cluster.JobRecords, false}, {"archivejobs", cluster.JobRecords, true},
	{"purgeresvafter", cluster.ResvRecords, false}, {"archiveresvs", cluster.ResvRecords, true},
	{"purgestepafter", cluster.StepRecords, false}, {"archivesteps", cluster.StepRecords, true},
	{"purgetxnafter", cluster.TxnRecords, false}, {"archivetxn", cluster.TxnRecords, true},
	{"purgeusageafter", cluster.UsageRecords, false},
}

// dbdNeedless are the keys of slurmdbd.conf that there is nothing to do for: each server keeps the history itself.
const dbdNeedless = " authtype authinfo authalttypes authaltparameters commitdelay dbdaddr dbdbackuphost dbdhost dbdport debugflags debuglevel debuglevelsyslog " +
	"defaultqos logfile logtimeformat maxquerytimerange messagetimeout parameters pidfile plugindir slurmuser storagebackuphost storagehost storageloc storageparameters " +
	"storagepass storageport storagetype storageuser tcptimeout "

// dbdElsewhere says what stands for the keys of slurmdbd.conf that do something else here.
var dbdElsewhere = [...]struct{ keys, why string }{
	{"purgesuspendafter archivesuspend", "pauses are part of the jobs' records: see PurgeJobAfter and ArchiveJobs"},
	{
		"archiveusage",
		"sums of use follow from records of jobs: see ArchiveJobs; reports do not reach back beyond PurgeUsageAfter",
	},
	{"privatedata trackwckey", "put it into slurm.conf"},
	{"archivejobscript archivejobenv purgejobscriptafter purgejobenvafter",
		"scripts and environments are kept and purged with their jobs: see PurgeJobAfter and ArchiveJobs"},
	{"allownodefacct", "every user of an account has a default account"},
	{"allresourcesabsolute", "licenses are counts in slurm.conf: see Licenses"},
	{"communicationparameters", "put it into slurm.conf"},
	{"disablearchivecommands", "only administrators can archive"},
	{"disablecoorddbd", "coordinators keep their rights: remove them with sacctmgr delete coordinator"},
	{"disablerollups", "reports are summed from the records when they are asked for: nothing is rolled up"},
	{"hashplugin tlstype tlsparameters", "members and servers speak TLS with certificates of the cluster's own"},
	{"maxpurgelimit", "purging works in bounded steps"},
	{"storagepassscript", "each server keeps the history itself: there is no password"},
	{"trackslurmctlddown", "down times of servers are not charged: each server keeps the history itself"},
}

// dbdLine reads a line of slurmdbd.conf.
func (r *reader) dbdLine(file string, n int, ps []pair) {
	for _, p := range ps {
		i := slices.IndexFunc(dbdElsewhere[:],
			func(e struct{ keys, why string }) bool { return slices.Contains(strings.Fields(e.keys), p.key) })
		switch {
		case r.retention(file, n, p), strings.Contains(dbdNeedless, " "+p.key+" "):
		case i >= 0:
			r.note(file, n, "%s has no effect: %s", p.typed, dbdElsewhere[i].why)
		default:
			r.note(file, n, "%s "+noKey+"slurmdbd.conf", p.typed)
		}
	}
}

// retention reads a key about how long history is kept, and reports whether it is one.
func (r *reader) retention(file string, n int, p pair) bool {
	keep := &r.cfg.Retention
	if p.key == "archivedir" {
		keep.Dir = p.value
		return true
	}
	if p.key == "archivescript" {
		keep.Script = p.value
		return true
	}
	for _, k := range retentionKeys {
		if k.key != p.key {
			continue
		}
		i := slices.IndexFunc(keep.Rules, func(rule cluster.RetainRule) bool { return rule.Kind == k.kind })
		if i < 0 {
			i, keep.Rules = len(keep.Rules), append(keep.Rules, cluster.RetainRule{Kind: k.kind})
		}
		if k.archive {
			if err := yes(&keep.Rules[i].Archive, p.key, p.value); err != nil {
				r.note(file, n, "%v; ignored", err)
			}
			return true
		}
		age, ok := cluster.ParseAge(p.value)
		if ok {
			keep.Rules[i].Age = age
			return true
		}
		r.note(file, n, "%s=%s: want a number of months, or of hours or days as 48hours or 30days; ignored", p.key,
			p.value)
		return true
	}
	return false
}

// settleRetention leaves the rules that have an age, in one order, and a folder for their archives.
func (r *reader) settleRetention() {
	keep := &r.cfg.Retention
	keep.Rules = slices.DeleteFunc(keep.Rules, func(rule cluster.RetainRule) bool { return rule.Age.N == 0 })
	slices.SortFunc(keep.Rules, func(a, b cluster.RetainRule) int { return cmp.Compare(a.Kind, b.Kind) })
	if len(keep.Rules) == 0 {
		*keep = cluster.Retention{}
	} else {
		keep.Dir = cmp.Or(keep.Dir, "/tmp") // as in Slurm
	}
}

// settleJobComp checks how ends of jobs are to be recorded.
func (r *reader) settleJobComp() {
	c := &r.cfg.JobComp
	kind := strings.TrimPrefix(strings.ToLower(c.Kind), "jobcomp/")
	switch {
	case kind == "" || kind == "none":
		*c = cluster.JobComp{}
		return
	case kind != "filetxt" && kind != "script":
		r.notes = append(r.notes,
			"JobCompType="+c.Kind+" has no effect: muster has jobcomp/filetxt and jobcomp/script; --notify sends events to a URL, sacct has all of it")
		*c = cluster.JobComp{}
		return
	case kind == "filetxt":
		c.Loc = cmp.Or(c.Loc, "/var/log/slurm_jobcomp.log") // as in Slurm
	case c.Loc == "":
		r.notes = append(r.notes, "JobCompType=jobcomp/script has no effect without JobCompLoc, the path of the script")
		*c = cluster.JobComp{}
		return
	}
	c.Kind = kind
}
