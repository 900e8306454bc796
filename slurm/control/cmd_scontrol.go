// Package control is what operators and owners change, and scontrol shows: scontrol and scancel. It stands on package
// show for how a job or a node is written, and knows nothing of submitting. Begin with cmd_scontrol.go, whose table of
// verbs leads to the files scontrol_*.go.
package control

import (
	"bufio"
	"cmp"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
)

// ScontrolOptions are the options of scontrol, which are fields of a control.
var ScontrolOptions = []opt.Option[control]{
	{Long: "all", Short: 'a', On: opt.Scontrol, Env: "scontrol=SCONTROL_ALL",
		Help: "hidden partitions too", Set: func(c *control, _ string) error { c.all = true; return nil }},
	{Long: "details", Short: 'd', On: opt.Scontrol, Help: "more details in show",
		Set: func(c *control, _ string) error { c.details = true; return nil }},
	{Long: "federation", On: opt.Scontrol, Help: "jobs of all clusters of the federation in one list",
		Set: func(c *control, _ string) error { c.fed.Federation = true; return nil }},
	{Long: "future", Short: 'F', On: opt.Scontrol, Help: "nodes in state FUTURE too",
		Set: func(c *control, _ string) error { c.future = true; return nil }},
	{Long: "hide", On: opt.Scontrol, Help: "no hidden partitions",
		Set: func(c *control, _ string) error { c.all = false; return nil }},
	{Long: "json", Arg: opt.Optional, On: opt.Scontrol, Meta: "version", Newer: true,
		Help: "print JSON: v0.0.42 to v0.0.45, or list",
		Set:  func(c *control, v string) error { return c.data.JSON(v) }},
	{Long: "yaml", Arg: opt.Optional, On: opt.Scontrol, Meta: "version", Newer: true, Help: "print YAML, as --json",
		Set: func(c *control, v string) error { return c.data.Yaml(v) }},
	{Long: "local", On: opt.Scontrol, Help: "this cluster only, also with FederationParameters=fed_display",
		Set: func(c *control, _ string) error { c.fed.Local = true; return nil }},
	{Long: "clusters", Short: 'M', Arg: opt.Required, On: opt.Scontrol, Env: "scontrol=SLURM_CLUSTERS",
		Meta: "names", Help: "clusters to act on",
		Set: func(c *control, v string) error { return opt.SetClusters(v, &c.clusters) }},
	{Long: "cluster", Arg: opt.Required, On: opt.Scontrol, Alias: "clusters"},
	{Long: "oneliner", Short: 'o', On: opt.Scontrol, Help: "one line for each record",
		Set: func(c *control, _ string) error { c.oneLine = true; return nil }},
	{Long: "quiet", Short: 'Q', On: opt.Scontrol, Help: "no messages but errors",
		Set: func(c *control, _ string) error { c.quiet = true; return nil }},
	{Long: "sibling", On: opt.Scontrol, Help: "jobs of the federation at each cluster that has them",
		Set: func(c *control, _ string) error { c.fed.Sibling = true; return nil }},
	{Long: "uid", Short: 'u', Arg: opt.Required, On: opt.Scontrol, Meta: "user",
		Ignored: "commands are always the caller's", Set: func(*control, string) error { return nil }},
	{Long: "verbose", Short: 'v', On: opt.Scontrol, Help: "more messages",
		Set: func(*control, string) error { return nil }},
	{Long: "version", Short: 'V', On: opt.Scontrol, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", Short: 'h', On: opt.Scontrol, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Scontrol, Group: opt.HelpGroup, Help: "print a short help"},
}

// verbs lists the commands. It is a function because they refer to each other.
func verbs() []verb {
	return servedVerbs()
}

// ScontrolVerbs are the names of the verbs that do something.
func ScontrolVerbs() (names []string) {
	for _, v := range servedVerbs() {
		names = append(names, v.name)
	}
	return names
}

// servedVerbs are those that do something.
func servedVerbs() []verb {
	return append(append(adminVerbs(), settings()...), []verb{
		{"show", 2, 1, (*control).show},
		{"hold", 3, 1, func(c *control, a []string) int { return c.hold(a, cluster.HeldAdmin) }},
		{"uhold", 2, 1, func(c *control, a []string) int { return c.hold(a, cluster.HeldUser) }},
		{"holdu", 5, 1, func(c *control, a []string) int { return c.hold(a, cluster.HeldUser) }},
		{"release", 3, 1, func(c *control, a []string) int { return c.hold(a, cluster.NotHeld) }},
		{"requeue", 3, 1, func(c *control, a []string) int { return c.requeue(a, false) }},
		{"requeuehold", 8, 1, func(c *control, a []string) int { return c.requeue(a, true) }},
		{"suspend", 2, 1, func(c *control, a []string) int { return c.suspend(a, false) }},
		{"resume", 3, 1, func(c *control, a []string) int { return c.suspend(a, true) }},
		{"update", 1, 1, (*control).update},
		{"create", 2, 1, (*control).create},
		{"delete", 3, 1, (*control).remove},
		{"ping", 3, 0, (*control).ping},
		{"token", 3, 0, token},
		{"listjobs", 5, 0, listJobs},
		{"liststeps", 5, 0, listSteps},
		{"write", 2, 1, (*control).write},
		{"version", 4, 0, func(c *control, args []string) int {
			code := 0
			if len(args) > 0 {
				code = c.complain("too many arguments for version keyword")
			}
			_, _ = c.out.WriteString("slurm-wlm " + front.SlurmVersion + "\n")
			return code
		}},
		{"reconfigure", 3, 0, (*control).reconfigure},
		{"top", 3, 1, (*control).top},
		{"help", 2, 0, func(c *control, _ []string) int {
			for _, v := range verbs() {
				_, _ = c.out.WriteString("     " + v.name + "\n")
			}
			return 0
		}},
		{"getaddrs", 4, 1, getAddrs}, {"power", 2, 1, power},
		{"reboot", 3, 0, (*control).reboot}, {"cancel_reboot", 3, 0, (*control).cancelReboot},
	}...)
}

func (c *control) unsupported([]string) int {
	return c.complain("scontrol: error: Requested operation not supported on this system")
}

// Scontrol shows and changes what the servers hold.
func Scontrol(sys *front.Sys, argv []string) int {
	c := &control{sys: sys, out: bufio.NewWriterSize(sys.Stdout, 1<<16)}
	defer func() { _ = c.out.Flush() }()
	rest, code := front.ParseQuery(sys, opt.Scontrol, ScontrolOptions, c, flagsAsWords(argv))
	if code >= 0 {
		return code
	}
	if _, code := sys.OwnCluster(c.clusters); code >= 0 {
		return code
	}
	c.times = show.TimeFormat(sys)
	if len(rest) > 0 {
		return c.command(rest)
	}
	return interactive(c)
}

// command runs one command; its name may be cut short and written in any case.
func (c *control) command(words []string) int {
	name := strings.ToLower(words[0])
	for _, v := range verbs() {
		if name != v.name && !(len(name) >= v.least && strings.HasPrefix(v.name, name)) {
			continue
		}
		if len(words)-1 < v.args {
			return c.complain(tooFew(words[0]))
		}
		return v.run(c, words[1:])
	}
	return c.complain("invalid keyword: " + words[0])
}

// tooFew is what a command without what it acts on is told.
func tooFew(word string) string {
	if word == "update" || word == "create" || word == "delete" {
		return "too few arguments for " + word + " keyword"
	}
	return "too few arguments for keyword:" + word
}

// entity is a thing that can be shown. least is how much of the name must be written.
type entity struct {
	name  string
	least int
	run   func(c *control, arg string) int
	data  bool // it is told in JSON too
}

func entities() []entity {
	return []entity{
		{"config", 3, (*control).showConfig, true},
		{"hostlist", 5, func(c *control, a string) int { return c.hosts(a, hostlist.Compress) }, false},
		{"hostlistsorted", 9, func(c *control, a string) int { return c.hosts(a, hostlist.CompressSorted) }, false},
		{"hostnames", 5, func(c *control, a string) int {
			return c.hosts(a, func(n []string) string { return strings.Join(n, "\n") })
		}, false},
		{"jobs", 1, (*control).showJobs, true},
		{"nodes", 1, (*control).showNodes, true},
		{"partitions", 1, (*control).showPartitions, true},
		{"reservations", 1, (*control).showReservations, true},
		{"steps", 2, (*control).showSteps, true},
		{"topology", 1, (*control).showTopology, false},
		{"topoconf", 5, func(c *control, _ string) int {
			return refused("muster config show prints the topology with the whole configuration")(c, nil)
		}, false},
		{"licenses", 1, (*control).showLicenses, true},
		{"burstbuffer", 2, func(c *control, _ string) int { return showBurst(c) }, false},
		{"federation", 3, func(c *control, _ string) int { return showFederation(c) }, false},
		{"slurmd", 2, showSlurmd, false},
		{"daemons", 1, func(c *control, _ string) int { return c.showDaemons() }, false},
		{"aliases", 2, (*control).showAliases, false},
	}
}

func (c *control) show(args []string) int {
	name, arg, given := strings.Cut(args[0], "=")
	name = strings.ToLower(name)
	if !given && len(args) > 1 {
		arg = args[1]
	}
	switch name {
	case "hostname":
		name = "hostnames"
	case "jobid":
		name = "jobs"
	case "nodename":
		name = "nodes"
	case "partitionname":
		name = "partitions"
	case "reservationname":
		name = "reservations"
	}
	if front.IsKey(name, 3, "assoc_mgr") {
		return showAssocMgr(c, args[1:])
	}
	if name == "bbstat" || name == "dwstat" {
		return showBurstStatus(c, args[1:])
	}
	for _, e := range entities() {
		if name == e.name || len(name) >= e.least && strings.HasPrefix(e.name, name) {
			if c.data.On && !e.data {
				return noData(c, "show "+e.name)
			}
			if len(args) > 2 && e.name != "hostlist" {
				return c.complain("too many arguments for keyword:show")
			}
			return e.run(c, arg)
		}
	}
	return c.complain("invalid entity:" + args[0] + " for keyword:show ")
}

// hosts folds or unfolds a host list; no daemon is needed.
func (c *control) hosts(arg string, f func([]string) string) int {
	if arg == "" {
		arg = cmp.Or(c.sys.Getenv("SLURM_NODELIST"), c.sys.Getenv("SLURM_JOB_NODELIST"))
	}
	if arg == "" {
		_ = c.complain("scontrol: error: host list is empty")
		return 0
	}
	if path.IsAbs(arg) {
		text, err := c.sys.ReadFile(arg, front.MaxHostFile)
		if err != nil {
			return c.complain("scontrol: error: " + front.PlainError(err))
		}
		arg = strings.Join(strings.Fields(strings.ReplaceAll(string(text), ",", " ")), ",")
	}
	names, err := hostlist.Expand(arg)
	if err != nil {
		return c.complain("Invalid hostlist: " + arg)
	}
	_, _ = c.out.WriteString(f(names) + "\n")
	return 0
}

// showTopology is scontrol show topology [NODE].
func (c *control) showTopology(arg string) int {
	conf, err := c.cluster()
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_topo error", err)
	}
	topo := conf.Config.Topology
	if blocks := conf.Config.Blocks; len(blocks) > 0 {
		return c.showBlocks(blocks, conf.Config.BlockSizes, arg)
	}
	if len(topo) == 0 {
		_, _ = c.out.WriteString("No topology information available\n")
		return 0
	}
	found := false
	for _, s := range topo {
		nodes := switchNodes(topo, s, 0)
		if arg != "" && arg != s.Name && !slices.Contains(nodes, cluster.NodeName(arg)) {
			continue
		}
		found = true
		text := "SwitchName=" + s.Name + " Level=" + strconv.Itoa(switchLevel(topo, s, 0)) + " LinkSpeed=1"
		if len(nodes) > 0 {
			text += " Nodes=" + front.NodeText(nodes)
		}
		if len(s.Switches) > 0 {
			text += " Switches=" + hostlist.Compress(s.Switches)
		}
		_, _ = c.out.WriteString(text + "\n")
	}
	if !found {
		return c.complain("Topology information for " + arg + " not found")
	}
	return 0
}

// showLicenses is scontrol show licenses [NAME].
func (c *control) showLicenses(arg string) int {
	conf, err := c.cluster()
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_licenses error", err)
	}
	if c.data.On {
		rows := slices.DeleteFunc(show.LicenseRows(conf),
			func(l show.LicenseRow) bool { return arg != "" && arg != l.Name })
		return show.WriteLicenses(c.out, c.view(conf.Now), &c.data, rows)
	}
	_, _ = c.out.WriteString(licenseText(conf, arg, c.oneLine))
	return 0
}

// showBlocks writes the blocks, those of a node or of a name if one is given.
func (c *control) showBlocks(blocks []cluster.Block, sizes []int, arg string) int {
	found := false
	for k, b := range blocks {
		if arg != "" && arg != b.Name && !slices.Contains(b.Nodes, cluster.NodeName(arg)) {
			continue
		}
		found = true
		_, _ = c.out.WriteString("BlockName=" + b.Name + " BlockIndex=" + strconv.Itoa(k) + " Nodes=" + front.NodeText(b.Nodes) + " BlockSize=" + strconv.Itoa(sizes[0]) + "\n")
	}
	if !found {
		return c.complain("Topology information for " + arg + " not found")
	}
	return 0
}

// maxSwitchDepth ends the walk through a tree that has a circle in it.
const maxSwitchDepth = 32

func switchLevel(topo []cluster.Switch, s cluster.Switch, depth int) int {
	level := 0
	for _, sub := range topo {
		if depth < maxSwitchDepth && slices.Contains(s.Switches, sub.Name) {
			level = max(level, 1+switchLevel(topo, sub, depth+1))
		}
	}
	return level
}

func switchNodes(topo []cluster.Switch, s cluster.Switch, depth int) []cluster.NodeName {
	nodes := slices.Clone(s.Nodes)
	for _, sub := range topo {
		if depth < maxSwitchDepth && slices.Contains(s.Switches, sub.Name) {
			nodes = append(nodes, switchNodes(topo, sub, depth+1)...)
		}
	}
	return nodes
}

// write is scontrol write batch_script ID [FILE], or config [FILE].
func (c *control) write(args []string) int {
	what := strings.ToLower(args[0])
	if len(what) > 1 && strings.HasPrefix("config", what) {
		return writeConfig(c, args[1:])
	}
	if !strings.HasPrefix("batch_script", what) || len(what) < 1 {
		return c.complain("invalid write argument:" + args[0])
	}
	if len(args) < 2 {
		return c.complain("too few arguments for keyword:write")
	}
	t, ok := front.ParseTarget(args[1])
	if !ok {
		return c.complain("scontrol: error: Invalid job id specified")
	}
	id := t.Ref.Job
	if !t.Ref.Tasks.Empty() || t.Ref.Part > 0 {
		if resp, err := front.Call(c.sys, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{t.Ref}}); err == nil && len(resp.Jobs) > 0 {
			id = resp.Jobs[0].ID
		}
	}
	resp, err := front.Call(c.sys, api.JobScript, api.ScriptRequest{Job: id})
	if err != nil {
		text, _ := front.ErrorText(err)
		return c.complain("scontrol: error: job script retrieval failed: " + text)
	}
	name := "slurm-" + front.UintText(uint32(id)) + ".sh"
	if len(args) > 2 {
		name = args[2]
	}
	if name == "-" {
		_, _ = c.out.Write(resp.Script)
		return 0
	}
	if err := os.WriteFile(name, resp.Script, 0o700); err != nil {
		return c.complain("scontrol: error: failed to open file `" + name + "`: " + front.PlainError(err))
	}
	_, _ = c.out.WriteString("batch script for job " + args[1] + " written to " + name + "\n")
	return 0
}

func (c *control) hold(args []string, h cluster.Hold) int {
	if h == cluster.HeldAdmin && c.sys.UID != 0 {
		h = cluster.HeldUser
	}
	return c.each(args, holdError, func(r cluster.Ref) error {
		_, err := front.Call(c.sys, api.HoldJob, cluster.HoldJobs{Ref: r, Hold: h})
		return err
	})
}

func (c *control) requeue(args []string, hold bool) int {
	special := false
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		k, v, ok := strings.Cut(a, "=")
		if ok && strings.EqualFold(k, "state") {
			special = strings.EqualFold(v, "specialexit")
			return true
		}
		return !ok && strings.EqualFold(a, "incomplete")
	})
	return c.each(args, "slurm_requeue error", func(r cluster.Ref) error {
		if r.Part > 1 {
			return cluster.Errorf(cluster.Invalid, cluster.ErrJobID, "only the leader can be requeued")
		}
		_, err := front.Call(c.sys, api.RequeueJob, cluster.Requeue{Ref: r, Hold: hold, SpecialExit: special})
		return err
	})
}

func (c *control) suspend(args []string, resume bool) int {
	return c.each(args, "slurm_suspend_job error", func(r cluster.Ref) error {
		_, err := front.Call(c.sys, api.SuspendJob, cluster.Suspend{Ref: r, Resume: resume})
		if front.IsKind(err, cluster.ErrJobID) { // Slurm's own words for an id that is none
			return cluster.Errorf(cluster.NotFound, "", "Unexpected message received")
		}
		return err
	})
}

// showSlurmd is scontrol show slurmd [NODE]: what a node's daemon found and runs.
func showSlurmd(c *control, arg string) int {
	names := c.nodesHere()
	if arg != "" {
		list, err := hostlist.Expand(arg)
		if err != nil {
			return c.complain("Node " + arg + " not found")
		}
		names = front.NodeNames(list)
	}
	return writeSlurmd(&show.View{Sys: c.sys, TimeFmt: c.times}, c.out, names)
}

// showDaemons tells which of Slurm's daemons this machine's one stands for.
func (c *control) showDaemons() int {
	text := "slurmctld "
	if len(c.nodesHere()) > 0 {
		text += "slurmd "
	}
	_, _ = c.out.WriteString(text + "\n")
	return 0
}

// showAliases tells the node names of this machine, or of the host that is named.
func (c *control) showAliases(arg string) int {
	names := c.nodesHere()
	if arg != "" {
		names = nil
		if resp, err := front.Call(c.sys, api.ListNodes, api.NodeQuery{}); err == nil {
			for _, n := range resp.Nodes {
				if n.Inventory.Host == arg || string(n.Name) == arg {
					names = append(names, n.Name)
				}
			}
		}
	}
	if len(names) > 0 {
		_, _ = c.out.WriteString(front.NodeText(names) + "\n")
	}
	return 0
}

// top moves a user's jobs before the user's others, in the order given.
func (c *control) top(args []string) int {
	list, words, bad := c.refs(args)
	if bad != "" || len(list) == 0 {
		return c.complain("Invalid job id specified for job " + strings.Join(args, ","))
	}
	var q cluster.TopJobs
	for _, t := range list {
		q.Refs = append(q.Refs, t.Ref)
	}
	if _, err := front.Call(c.sys, api.TopJobs, q); err != nil {
		text, _ := front.ErrorText(err)
		return c.complain(text + " for job " + strings.Join(words, ","))
	}
	return 0
}
