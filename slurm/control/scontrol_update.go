package control

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/conf"
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
	if len(args) > 1 && strings.EqualFold(args[0], "job") { // update job 42 ...
		args = append([]string{args[0] + "=" + args[1]}, front.Paired(args[2:])...)
	}
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

// jobComplaints are Slurm's words for values of keys that it does not take; %s is the value.
var jobComplaints = [...]struct{ key, text string }{
	{"deadline", badTime},
	{"delayboot", "scontrol: error: Invalid DelayBoot value"},
	{"endtime", badTime},
	{"starttime", badTime},
	{"mailtype", "Invalid MailType: %s"},
	{"numnodes", `scontrol: error: Invalid numeric value "%s" for requested node count.`},
	{"nice", "scontrol: error: Nice value out of range (+/- 2147483645). Value ignored"},
	{"numcpus", "scontrol: error: Invalid NumCPUs value: %s"},
	{"priority", "scontrol: error: Invalid Priority value: %s"},
	{"timelimit", "scontrol: error: Invalid TimeLimit value"},
}

// complaint is what is said of a value that the key does not take.
func (k *jobKey) complaint(s front.Setting) []string {
	for _, c := range jobComplaints {
		if slices.Contains(strings.Fields(k.names), c.key) {
			return []string{strings.ReplaceAll(c.text, "%s", s.Value)}
		}
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
// returns false for a value it can not read.
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
	{"gpus tres-per-job tresperjob", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		list, ok := values.ParseGPUs(v.Value)
		p.PerJob = &list
		return ok
	}},
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
		if yes, ok := values.FlagArg(v.Value); ok && yes {
			share = cluster.ShareOver
		}
		p.Sharing = &share
		return true
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
		return err == nil
	}},
	{"timelimit", setLimit},
	{"timemin", func(p *cluster.Patch, v front.Setting, _ time.Time) bool {
		d, ok := values.ParseTimeLimit(v.Value)
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

func setHostNames(to **[]cluster.NodeName, v string) bool {
	names := []cluster.NodeName{}
	*to = &names
	return v == "" || front.SetNodes(&names, v) == nil
}

// nodeActions are the words of update node state=.
var nodeActions = [...]struct {
	word   string
	action cluster.NodeAction
}{{"drain", cluster.NodeDrain}, {"draining", cluster.NodeDrain}, {"drained", cluster.NodeDrain},
	{"down", cluster.NodeSetDown}, {"fail", cluster.NodeFail},
	{"failing", cluster.NodeFail}, {"resume", cluster.NodeResume}, {"undrain", cluster.NodeResume},
	{"idle", cluster.NodeResume}, {"power_up", cluster.NodePowerUp}, {"power_down", cluster.NodePowerDown},
	{"power_down_asap", cluster.NodePowerDown}, {"power_down_force", cluster.NodePowerDownForce}}

// updateNode changes nodes.
func (c *control) updateNode(who front.Setting, rest []front.Setting) int {
	u := nodeUpdate{}
	for _, s := range append([]front.Setting{who}, rest...) {
		switch {
		case s.Bare:
			return c.complain(misread+s.Text+aborted, updateError+noError)
		case s == who:
		case front.IsKey(s.Key, 1, "state") && strings.EqualFold(s.Value, "cancel_reboot"):
			return c.cancelReboot([]string{who.Value})
		default:
			if wrong := u.take(s); wrong != nil {
				return c.complain(wrong...)
			}
		}
	}
	if u.lacksReason() {
		return c.complain("You must specify a reason when DOWNING or DRAINING a node. Request denied")
	}
	if len(rest) == 0 {
		return c.complain(noChanges)
	}
	var err error
	if u.set.Nodes, err = c.nodeList(who.Value); err != nil {
		return c.failed(err, "", updateError)
	}
	if !c.featuresOf(&u.set, u.available, u.active) {
		return c.complain("slurm_update error: Active features not subset of available features")
	}
	err = c.setNodes(u.set)
	if u.idle && front.IsKind(err, cluster.ErrNodeState) {
		return 0
	}
	if err != nil {
		return c.failed(err, "", updateError)
	}
	return 0
}

// nodeUpdate is what a command line changes of nodes.
type nodeUpdate struct {
	set               cluster.NodeSet
	idle              bool // they are to be idle, which they may be already
	available, active *[]string
}

// take takes one setting, and says what is wrong with it.
func (u *nodeUpdate) take(s front.Setting) (wrong []string) {
	v := s.Value
	switch {
	case front.IsKey(s.Key, 1, "state"):
		return u.takeState(s)
	case front.IsKey(s.Key, 3, "reason"):
		v = strings.Trim(v, `"'`)
		u.set.Reason = &v
	case front.IsKey(s.Key, 3, "availablefeatures", "features"):
		u.available = listOf(v)
	case front.IsKey(s.Key, 3, "activefeatures"):
		u.active = listOf(v)
	case front.IsKey(s.Key, 3, "topology"):
		v = v[strings.LastIndexByte(v, ':')+1:] // TOPOLOGY:NAME
		u.set.Topology = &v
	case front.IsKey(s.Key, 3, "weight"):
		if !setInt(&u.set.Weight, v) {
			return []string{"Invalid input: " + s.Text, "Request aborted"}
		}
	case front.IsKey(s.Key, 3, "comment"):
		u.set.Comment = &v
	case front.IsKey(s.Key, 3, "extra"):
		u.set.Extra = &v
	case front.IsKey(s.Key, 5, "nodeaddr"):
		u.set.Addr = &v
	case front.IsKey(s.Key, 5, "nodehostname"):
		u.set.Host = &v
	default:
		return []string{"Update of this parameter is not supported: " + s.Text, "Request aborted"}
	}
	return nil
}

func (u *nodeUpdate) takeState(s front.Setting) (wrong []string) {
	word := strings.ToLower(s.Value)
	if word == "future" || word == "noresp" {
		return []string{
			"Invalid input: " + s.Text,
			"Request aborted",
			"muster sees by itself which nodes are there and answer; drain a node, or set it down, to keep jobs off it",
		}
	}
	for _, a := range nodeActions {
		if a.word == word {
			u.set.Action = a.action
			u.idle = word == "idle"
			return nil
		}
	}
	return []string{
		"Invalid input: " + s.Text,
		"Request aborted",
		"Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN",
		"Not all states are valid given a node's prior state",
	}
}

// lacksReason reports whether nodes are taken out of service without a word why.
func (u *nodeUpdate) lacksReason() bool {
	if u.set.Reason != nil && *u.set.Reason != "" {
		return false
	}
	switch u.set.Action {
	case cluster.NodeDrain, cluster.NodeSetDown, cluster.NodeFail:
		return true
	}
	return false
}

// listOf reads a list, which may be empty: then there is to be none of what it lists.
func listOf(v string) *[]string {
	list := append([]string{}, front.SplitList(v)...)
	return &list
}

// featuresOf sets which features nodes have, and which of them are active; false: these are more than what is
// available.
func (c *control) featuresOf(set *cluster.NodeSet, available, active *[]string) bool {
	set.Features, set.Active = available, active
	if active == nil {
		return true
	}
	within := func(have []string) bool {
		return !slices.ContainsFunc(*active, func(f string) bool { return !slices.Contains(have, f) })
	}
	if available != nil {
		return within(*available)
	}
	resp, _ := front.Call(c.sys, api.ListNodes, api.NodeQuery{Names: set.Nodes}) // an error is met again by the change itself
	for _, n := range resp.Nodes {
		if !within(n.Inventory.Available()) {
			return false
		}
	}
	return true
}

// setNodes changes nodes. Of a list not all of which can be resumed those are that can, and the last error says
// that some were not.
func (c *control) setNodes(set cluster.NodeSet) error {
	_, err := front.Call(c.sys, api.SetNodes, set)
	if set.Action != cluster.NodeResume || len(set.Nodes) < 2 || !front.IsKind(err, cluster.ErrNodeState) {
		return err
	}
	for _, n := range set.Nodes {
		one := set
		one.Nodes = []cluster.NodeName{n}
		if _, e := front.Call(c.sys, api.SetNodes, one); e != nil {
			err = e
		}
	}
	return err
}

// deref is what p points at; nil: nothing.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// partitionWords applies keys to a partition. It answers with a complaint, lines of text.
func partitionWords(p *cluster.Partition, list []front.Setting) []string {
	for _, s := range list {
		key := s.Key
		switch {
		case s.Bare:
			return []string{misread + s.Text + aborted}
		case key == "partitionname" || key == "partition":
			p.Name = s.Value
			continue
		case key == "allocnodes" && strings.EqualFold(s.Value, "all"):
			continue // they are
		}
		if err := conf.PartitionKey(p, conf.FullPartitionKey(key), s.Value); err != nil {
			if strings.HasSuffix(err.Error(), "has no effect yet") {
				return []string{
					"scontrol: error: Update of this parameter is not supported: " + s.Text + "\n",
					"scontrol: error: Request aborted",
				}
			}
			help := "Request aborted"
			if key == "oversubscribe" || key == "shared" {
				help = "Acceptable OverSubscribe values are NO, EXCLUSIVE, YES:#, and FORCE:#"
			}
			return []string{misread + s.Text, "scontrol: error: " + help}
		}
	}
	return nil
}

// setPartition stores a partition.
func (c *control) setPartition(p cluster.Partition, what string) int {
	if _, err := front.Call(c.sys, api.SetPartition, cluster.PartitionSet{Partition: p}); err != nil {
		return c.failed(err, "", what)
	}
	return 0
}

// updatePartition changes one partition.
func (c *control) updatePartition(who front.Setting, rest []front.Setting) int {
	old, err := c.partition(who.Value)
	p := deref(old)
	if bad := partitionWords(&p, append([]front.Setting{who}, rest...)); bad != nil {
		return c.complain(append(bad, updateError+noError)...)
	}
	switch {
	case len(rest) == 0:
		return c.complain(noChanges)
	case err != nil:
		return c.failed(err, "", updateError)
	case old == nil:
		return c.complain(updateError + badPartition)
	}
	return c.setPartition(p, updateError)
}

// partition is one of the configuration; nil: there is none.
func (c *control) partition(name string) (*cluster.Partition, error) {
	r, err := c.cluster()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.Config.Partitions, func(p cluster.Partition) bool { return p.Name == name })
	if i < 0 {
		return nil, nil
	}
	return &r.Config.Partitions[i], nil
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
	p := cluster.Partition{State: cluster.PartitionUp}
	if bad := partitionWords(&p, list); bad != nil {
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
