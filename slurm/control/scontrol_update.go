package control

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/jobfield"
	"dev.muster/slurm/values"
)

// updates are what can be changed, by the keys that name it. Earlier rows win: those of later ones are keys of theirs.
func updates() []struct {
	keys []string
	run  func(c *control, who front.Setting, rest []front.Setting) int
} {
	return []struct {
		keys []string
		run  func(c *control, who front.Setting, rest []front.Setting) int
	}{
		{[]string{"jobid", "job", "jobidname"}, (*control).updateJob},
		{[]string{"jobname"}, (*control).updateJob},
		{[]string{"reservation", "reservationname", "res", "resname"}, (*control).updateReservation},
		{[]string{"partitionname", "partition"}, (*control).updatePartition},
		{[]string{"nodename", "node"}, (*control).updateNode},
		{[]string{"stepid"}, (*control).updateStep},
		{
			[]string{"slurmctlddebug"},
			func(c *control, _ front.Setting, _ []front.Setting) int { return c.unsupported(nil) },
		},
	}
}

// update is scontrol update KEY=VALUE... The words are read before anything is asked for.
func (c *control) update(args []string) int {
	args = values.PairedWords(args)
	list := front.Words(args)
	named := list
	if list[0].Bare {
		named = list[:1]
	}
	for _, u := range updates() {
		i := slices.IndexFunc(named,
			func(s front.Setting) bool { return slices.Contains(u.keys, s.Key) && (!s.Bare || list[0].Bare) })
		if i >= 0 {
			return u.run(c, list[i], slices.Delete(slices.Clone(list), i, i+1))
		}
	}
	return c.complain("No valid entity in update command",
		`Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or "SlurmctldDebug"`)
}

// jobKey is a row: the names of a key of update job, and what it does to the patch.
type jobKey struct {
	names string // blank-separated; the first is whole
	set   func(p *cluster.Patch, v front.Setting, now time.Time) bool
}

const badTime = "Invalid time specification (pos=0): %s"

// jobComplaint is Slurm's words for a value that a key does not take; %s is the value, %j the job.
type jobComplaint struct{ key, text string }

var jobComplaints = [...]jobComplaint{
	{"deadline", badTime},
	{"delayboot", "scontrol: error: Invalid DelayBoot value"},
	{"dependency", "Job dependency problem for job %j"},
	{"endtime", badTime},
	{"gres", "Invalid generic resource (gres) specification for job %j"},
	{"gpus", "Invalid Trackable RESource (TRES) specification for job %j"},
	{"starttime", badTime},
	{"mailtype", "Invalid MailType: %s"},
	{"numnodes", `scontrol: error: Invalid numeric value "%s" for requested node count.`},
	{"nice", "scontrol: error: Nice value out of range (+/- 2147483645). Value ignored"},
	{"timelimit", "scontrol: error: Invalid TimeLimit value"},
	{"timemin", "scontrol: error: Invalid TimeMin value"},
}

// jobWords is how Slurm spells keys when it complains.
const jobWords = "ArrayTaskThrottle Contiguous CoreSpec CPUsPerTask MinCPUsNode MinMemoryCPU MinMemoryNode " +
	"MinTmpDiskNode NumCPUs NumTasks OverSubscribe Priority Requeue SiteFactor Switches ThreadSpec"

// complaint is what is said of a value that the key does not take.
func (k *jobKey) complaint(who, s front.Setting) []string {
	names := strings.Fields(k.names)
	own := slices.IndexFunc(jobComplaints[:], func(c jobComplaint) bool { return c.key == names[0] })
	if own >= 0 {
		return []string{strings.NewReplacer("%s", s.Value, "%j", who.Value).Replace(jobComplaints[own].text)}
	}
	words := strings.Fields(jobWords)
	spelt := slices.IndexFunc(words, func(w string) bool { return slices.Contains(names, strings.ToLower(w)) })
	if spelt >= 0 {
		return []string{"scontrol: error: Invalid " + words[spelt] + " value: " + s.Value}
	}
	return []string{"scontrol: error: Invalid " + s.Key + " value: " + s.Value, "Request aborted"}
}

// maxPriority is the highest priority that can be set by hand.
const maxPriority = 1<<32 - 3

// jobKeys are the keys of update job. Those of which a row of jobfield says all come behind the others.
func jobKeys() []jobKey {
	list := slices.Clone(ownJobKeys)
	for i := range jobfield.Rows {
		row := &jobfield.Rows[i]
		if row.Key != "" && row.Changes() && !hasKey(list, row.Key) {
			list = append(list, jobKey{row.Key, keySetter(row)})
		}
	}
	return list
}

// hasKey reports whether one of the keys has a name.
func hasKey(list []jobKey, name string) bool {
	return slices.ContainsFunc(list, func(k jobKey) bool { return slices.Contains(strings.Fields(k.names), name) })
}

// keySetter sets the field of a row.
func keySetter(row *jobfield.Row) func(*cluster.Patch, front.Setting, time.Time) bool {
	switch row.Form {
	case jobfield.Count:
		return func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
			return setInt(jobfield.Change[int](row, p), v.Value)
		}
	case jobfield.Flag:
		return func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
			return setBool(jobfield.Change[bool](row, p), v.Value)
		}
	}
	return func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		*jobfield.Change[string](row, p) = &v.Value
		return true
	}
}

// ownJobKeys are keys whose values are read in ways of their own, or that have more than one name. A set function
// returns false for a value it cannot read.
var ownJobKeys = []jobKey{
	{"account", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setName(&p.Account, v.Value) }},
	{
		"admincomment",
		func(p *cluster.Patch, v front.Setting, _ time.Time) bool { p.AdminComment = &v.Value; return true },
	},
	{
		"arraytaskthrottle",
		func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setInt(&p.ArrayLimit, v.Value) },
	},
	// Not clusterfeatures is what its beginning stands for.
	{"clusters", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { p.Clusters = &v.Value; return true }},
	{
		"cpuspertask cpus/task",
		func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setInt(&p.CPUsPerTask, v.Value) },
	},
	{"cpuspertres", setCPUsPerTRES},
	{"deadline", func(p *cluster.Patch, v front.Setting, now time.Time) bool {
		return setPoint(&p.Deadline, v.Value, now)
	}},
	{"delayboot", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		d, ok := values.ParseTimeLimit(v.Value)
		p.DelayBoot = &d
		return ok
	}},
	{"dependency", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		d := cluster.Depends{}
		ok := v.Value == ""
		if !ok {
			d, ok = values.ParseDepends(v.Value)
		}
		p.Depends = &d
		return ok
	}},
	{"endtime", func(p *cluster.Patch, v front.Setting, now time.Time) bool { return setPoint(&p.End, v.Value, now) }},
	{
		"excnodelist",
		func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setHostNames(&p.Exclude, v.Value) },
	},
	{
		"gres tres-per-node trespernode",
		func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setGRESList(&p.PerNode, v.Value) },
	},
	{"gpus tres-per-job tresperjob", setGPUs},
	{"jobname name", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { p.Name = &v.Value; return true }},
	{"mailuser", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { p.MailUser = &v.Value; return true }},
	{"mailtype", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		list, ok := values.ParseMailTypes(v.Value)
		if p.MailType = list; len(list) == 0 {
			p.MailType = []string{"NONE"}
		}
		return ok
	}},
	{"minmemorycpu", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		return setMemory(&p.Mem, cluster.MemPerCPU, v.Value)
	}},
	{"minmemorynode", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		return setMemory(&p.Mem, cluster.MemPerNode, v.Value)
	}},
	{"mintmpdisknode", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		m, ok := values.ParseMem(v.Value)
		n := int64(m)
		p.TmpMB = &n
		return ok
	}},
	{"nice", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		n, err := values.ParseNice(v.Value, !v.Bare)
		p.Nice = &n
		return err == nil
	}},
	{
		"nodelist reqnodelist",
		func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setHostNames(&p.NodeList, v.Value) },
	},
	{"numcpus", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		lo, _, _ := strings.Cut(v.Value, "-")
		return setInt(&p.Tasks, lo) && *p.Tasks > 0
	}},
	{"numnodes reqnodes", setNodeCount},
	{
		"numtasks reqprocs",
		func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setInt(&p.Tasks, v.Value) },
	},
	{"oversubscribe shared", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		share := cluster.ShareExclusive
		yes, ok := values.FlagArg(v.Value)
		if yes {
			share = cluster.ShareOver
		}
		p.Sharing = &share
		return ok || v.Value == ""
	}},
	{"corespec", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setSpec(&p.CoreSpec, v.Value) }},
	{
		"threadspec",
		func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setSpec(&p.ThreadSpec, v.Value) },
	},
	{"partition", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		p.Partitions = strings.Split(v.Value, ",")
		return true
	}},
	{"prefer", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { p.Prefer = &v.Value; return true }},
	{"priority", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		n, err := strconv.ParseUint(v.Value, 10, 32)
		k := uint32(n)
		p.Priority = &k
		return err == nil && n <= maxPriority
	}},
	{"qos", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setName(&p.QOS, v.Value) }},
	{"requeue", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { return setBool(&p.Requeue, v.Value) }},
	{resetAccrue, func(p *cluster.Patch, _ front.Setting, _ time.Time) bool { p.ResetAccrue = true; return true }},
	{
		"reservationname",
		func(p *cluster.Patch, v front.Setting, _ time.Time) bool { p.Reservation = &v.Value; return true },
	},
	{"sitefactor adminprio", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		n, err := strconv.Atoi(v.Value)
		p.Site = &n
		return err == nil && n >= -values.MaxNice && n <= values.MaxNice
	}},
	{
		"starttime eligibletime begintime",
		func(p *cluster.Patch, v front.Setting, now time.Time) bool { return setPoint(&p.Begin, v.Value, now) },
	},
	{"stdin", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { p.Stdin = &v.Value; return true }},
	{"stdout", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { p.Stdout = &v.Value; return true }},
	{"stderr", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { p.Stderr = &v.Value; return true }},
	{"switches", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		n, _, err := values.ParseSwitches(v.Value)
		p.Switches = &n
		return err == nil || v.Value == "" || v.Value == "0" // none
	}},
	{"wait-for-switch", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		n, err := strconv.ParseUint(v.Value, 10, 31)
		d := time.Duration(n) * time.Second
		p.SwitchWait = &d
		return err == nil
	}},
	{"timelimit", setLimit},
	{"timemin", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		d, ok := values.ParseTimeLimit(v.Value)
		if d == cluster.Unlimited {
			d = 0 // none
		}
		p.LimitMin = &d
		return ok
	}},
	{"workdir", func(p *cluster.Patch, v front.Setting, _ time.Time) bool { p.WorkDir = &v.Value; return true }},
}

// setLimit reads a time limit, or by how much it is to be longer or shorter.
func setLimit(p *cluster.Patch, v front.Setting, _ time.Time) bool {
	text, sign := v.Value, v.Sign
	if sign == 0 && text != "" && (text[0] == '+' || text[0] == '-') && text != "-1" {
		sign, text = text[0], text[1:]
	}
	d, ok := values.ParseTimeLimit(text)
	switch sign {
	case '+':
		p.LimitDelta = d
	case '-':
		p.LimitDelta = -d
	default:
		d, ok = values.ParseNewLimit(text)
		p.Limit = &d
	}
	return ok
}

// setNodeCount reads a number of nodes, the most being left as it is, or a range; none: any number.
func setNodeCount(p *cluster.Patch, v front.Setting, _ time.Time) bool {
	lo, hi, err := 1, 0, error(nil)
	least, most, ranged := strings.Cut(v.Value, "-")
	if v.Value != "" {
		lo, err = values.NodeNumber(least, ranged)
	}
	if ranged && err == nil {
		hi, err = values.NodeNumber(most, false)
	}
	if p.MinNodes = &lo; ranged || v.Value == "" {
		p.MaxNodes = &hi
	}
	return err == nil
}

// setCPUsPerTRES reads the CPUs of each GPU, as gres:gpu:2 or gres/gpu=2; nothing takes it back.
func setCPUsPerTRES(p *cluster.Patch, v front.Setting, _ time.Time) bool {
	text := v.Value
	for _, prefix := range []string{"gres:", "gres/", "gpu:", "gpu="} {
		text = strings.TrimPrefix(text, prefix)
	}
	if v.Value == "" {
		text = "0"
	}
	return (text != v.Value || v.Value == "") && setInt(&p.CPUsPerGPU, text)
}

// setName reads the name of an account or a QOS, which know no case.
func setName(to **string, v string) bool {
	name := strings.ToLower(v)
	*to = &name
	return true
}

func setInt(to **int, v string) bool {
	n, err := strconv.Atoi(v)
	*to = &n
	return err == nil && n >= 0
}

// setSpec reads how many cores or threads a job leaves of its nodes; below 0 or * what the nodes keep.
func setSpec(to **int, v string) bool {
	if v == "*" {
		v = "-1"
	}
	n, err := strconv.Atoi(v)
	*to = &n
	return err == nil
}

func setBool(to **bool, v string) bool {
	yes, ok := values.FlagArg(v)
	*to = &yes
	return ok
}

func setPoint(to **time.Time, v string, now time.Time) bool {
	t, _, ok := values.ParseWhen(v, now)
	*to = &t
	return ok
}

func setMemory(to **cluster.Mem, per cluster.MemPer, v string) bool {
	mb, ok := values.ParseMem(v)
	*to = &cluster.Mem{Per: per, MB: mb}
	return ok
}

func setGRESList(to **[]cluster.GRES, v string) bool {
	list := []cluster.GRES{}
	ok := v == ""
	if !ok {
		list, ok = values.ParseGRES(v)
	}
	*to = &list
	return ok
}

// setGPUs reads the GPUs of a job: 4, h100:4, or as --gres writes them.
func setGPUs(p *cluster.Patch, v front.Setting, _ time.Time) bool {
	text := v.Value
	for _, prefix := range []string{"gres:", "gres/", "gpu:", "gpu="} {
		text = strings.TrimPrefix(text, prefix)
	}
	list, ok := values.ParseGPUs(text)
	p.PerJob = &list
	return ok && (text == "" || strings.ContainsAny(text, "0123456789"))
}

func setHostNames(to **[]cluster.NodeName, v string) bool {
	names := []cluster.NodeName{}
	*to = &names
	return v == "" || front.SetNodes(&names, v) == nil
}

// deref is what p points at; nil: nothing.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// create is scontrol create partition=NAME ..., reservation[name=NAME] ... and nodename=LIST ...
func (c *control) create(args []string) int {
	first := front.Words(args[:1])[0]
	if strings.HasPrefix(first.Key, "node") {
		return c.createNodes(args)
	}
	if first.Bare && front.IsKey(first.Key, 3, "reservationname") { // create reservation ...
		args = args[1:]
	}
	list := front.Words(args)
	i := slices.IndexFunc(list, func(s front.Setting) bool { return s.Key == "partitionname" || s.Key == "partition" })
	switch {
	case front.IsKey(first.Key, 3, "reservationname") || i < 0 && slices.ContainsFunc(list,
		func(s front.Setting) bool { return front.IsKey(s.Key, 3, "reservationname") }):
		return c.createReservation(list)
	case i < 0:
		return c.complain("scontrol: error: Invalid creation entity: " + first.Text)
	}
	p := cluster.Partition{State: cluster.PartitionUp, PartitionLimits: cluster.PartitionLimits{MinNodes: 1}}
	if bad, _ := partitionWords(&p, list); bad != nil {
		return c.complain(bad...)
	}
	switch old, err := c.partition(p.Name); {
	case err != nil:
		return c.failed(err, "", createPartError)
	case old != nil:
		return c.complain(createPartError + badPartition)
	}
	return c.setPartition(p, createPartError)
}

// remove is scontrol delete partition=NAME or nodename=LIST.
func (c *control) remove(args []string) int {
	word := args[0]
	if len(args) > 1 && !strings.Contains(word, "=") {
		word += "=" + args[1]
	}
	list, bad := front.Settings([]string{word})
	if bad != "" {
		return c.complain("scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'")
	}
	switch s := list[0]; s.Key {
	case "partitionname", "partition":
		_, err := front.Call(c.sys, api.SetPartition, cluster.PartitionSet{
			Partition: cluster.Partition{Name: s.Value}, Delete: true,
		})
		if err != nil {
			return c.failed(err, "", "delete_partition "+word)
		}
		return 0
	case "nodename", "node":
		return c.deleteNodes(s.Value, args[0])
	case "reservation", "reservationname":
		if _, err := front.Call(c.sys, api.DropReservation, cluster.ReservationDrop{Name: s.Value}); err != nil {
			return c.failed(err, "", deleteResvError+" "+args[0])
		}
		return 0
	}
	return c.complain("Invalid deletion entity: " + word)
}
