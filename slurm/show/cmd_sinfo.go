package show

import (
	"bufio"
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// infoOptions is what sinfo's line and variables ask for.
type infoOptions struct {
	format, long, sort      string
	states                  []*nodeWord
	allStates               bool // of states a node must have each
	parts                   []string
	nodes                   []cluster.NodeName
	every                   time.Duration
	clusters                string
	perNode, wide, noHeader bool
	reasons, summary, exact bool
	dead, responding        bool
	future                  bool
	reservations            bool
	data                    data.Ask
	hidden, raw             bool
	fed                     front.FedAsk
	placed                  bool // the clusters of a federation are shown
}

// Asked is what --json and --yaml say.
func (o *infoOptions) Asked() *data.Ask { return &o.data }

// SinfoOptions are the options of sinfo.
var SinfoOptions = []opt.Option[infoOptions]{
	{
		Long: "all", Short: 'a', On: opt.Sinfo, Env: "ALL", Help: "hidden partitions too",
		Set: func(o *infoOptions, _ string) error { o.hidden = true; return nil },
	},
	{Long: "clusters", Short: 'M', Arg: opt.Required, On: opt.Sinfo, Env: "sinfo=SLURM_CLUSTERS",
		Meta: "names", Help: "clusters to ask",
		Set: func(o *infoOptions, v string) error { return opt.SetClusters(v, &o.clusters) }},
	{Long: "cluster", Arg: opt.Required, On: opt.Sinfo, Alias: "clusters"},
	{
		Long: "dead", Short: 'd', On: opt.Sinfo, Help: "only nodes that do not respond",
		Set: func(o *infoOptions, _ string) error { o.dead = true; return nil },
	},
	{
		Long: "exact", Short: 'e', On: opt.Sinfo, Help: "a line for each configuration of nodes",
		Set: func(o *infoOptions, _ string) error { o.exact = true; return nil },
	},
	{Long: "federation", On: opt.Sinfo, Env: "FEDERATION", Help: "all clusters of the federation in one list",
		Set: func(o *infoOptions, _ string) error { o.fed.Federation = true; return nil }},
	{Long: "format", Short: 'o', Arg: opt.Required, On: opt.Sinfo, Env: "FORMAT", Meta: "format",
		Help: "what to show, as %[[.]width]letter",
		Set:  func(o *infoOptions, v string) error { o.format, o.long = v, ""; return nil }},
	{Long: "Format", Short: 'O', Arg: opt.Required, On: opt.Sinfo, Meta: "fields",
		Help: "what to show, as name[:[.]width],...",
		Set:  func(o *infoOptions, v string) error { o.format, o.long = "", v; return nil }},
	{Long: "future", On: opt.Sinfo, Newer: true, Help: "nodes in state FUTURE too",
		Set: func(o *infoOptions, _ string) error { o.future = true; return nil }},
	{Long: "helpFormat", On: opt.Sinfo, Newer: true, Group: opt.HelpGroup, Help: "list the fields of -O",
		Set: func(*infoOptions, string) error { return longNames(infoColumns) }},
	{Long: "helpformat", On: opt.Sinfo, Newer: true, Group: opt.HelpGroup, Help: "list the letters of -o",
		Set: func(*infoOptions, string) error { return shortNames(infoColumns) }},
	{Long: "helpstate", On: opt.Sinfo, Newer: true, Group: opt.HelpGroup, Help: "list the states of -t",
		Set: func(*infoOptions, string) error { return opt.Answer(knownNodeStates()...) }},
	{
		Long: "hide", On: opt.Sinfo, Help: "no hidden partitions",
		Set: func(o *infoOptions, _ string) error { o.hidden = false; return nil },
	},
	{Long: "iterate", Short: 'i', Arg: opt.Required, On: opt.Sinfo, Meta: "seconds", Help: "repeat after this time",
		Set: func(o *infoOptions, v string) error { return setEvery(&o.every, v) }},
	{Long: "json", Arg: opt.Optional, On: opt.Sinfo, Meta: "version",
		Help: "print JSON: v0.0.42 to v0.0.45, or list", Set: func(o *infoOptions,
			v string) error {
			return o.data.JSON(v)
		}},
	{Long: "yaml", Arg: opt.Optional, On: opt.Sinfo, Meta: "version", Help: "print YAML, as --json",
		Set: func(o *infoOptions, v string) error { return o.data.Yaml(v) }},
	{
		Long: "list-reasons", Short: 'R', On: opt.Sinfo, Help: "why nodes are out of service",
		Set: func(o *infoOptions, _ string) error { o.reasons = true; return nil },
	},
	{Long: "local", On: opt.Sinfo, Env: "LOCAL", Help: "this cluster only, also with FederationParameters=fed_display",
		Set: func(o *infoOptions, _ string) error { o.fed.Local = true; return nil }},
	{
		Long: "long", Short: 'l', On: opt.Sinfo, Help: "more columns",
		Set: func(o *infoOptions, _ string) error { o.wide = true; return nil },
	},
	{
		Long: "noconvert", On: opt.Sinfo, Help: "memory in mebibytes",
		Set: func(o *infoOptions, _ string) error { o.raw = true; return nil },
	},
	{
		Long: "Node", Short: 'N', On: opt.Sinfo, Help: "a line for each node and partition",
		Set: func(o *infoOptions, _ string) error { o.perNode = true; return nil },
	},
	{Long: "nodes", Short: 'n', Arg: opt.Required, On: opt.Sinfo, Meta: "nodes", Help: "only these nodes",
		Set: func(o *infoOptions, v string) error {
			if v == "" { // a filter of none, which nothing passes
				o.nodes = []cluster.NodeName{""}
				return nil
			}
			return front.SetNodes(&o.nodes, v)
		}},
	{
		Long: "noheader", Short: 'h', On: opt.Sinfo, Help: "no line of headers",
		Set: func(o *infoOptions, _ string) error { o.noHeader = true; return nil },
	},
	{Long: "partition", Short: 'p', Arg: opt.Required, On: opt.Sinfo, Env: "PARTITION", Meta: "names",
		Help: "only these partitions",
		Set: func(o *infoOptions, v string) error {
			o.parts = front.SplitList(v)
			if len(o.parts) == 0 { // a filter of none, which nothing passes
				o.parts = []string{""}
			}
			return nil
		}},
	{
		Long: "reservation", Short: 'T', On: opt.Sinfo, Help: "reservations",
		Set: func(o *infoOptions, _ string) error { o.reservations = true; return nil },
	},
	{
		Long: "responding", Short: 'r', On: opt.Sinfo, Help: "only nodes that respond",
		Set: func(o *infoOptions, _ string) error { o.responding = true; return nil },
	},
	{Long: "sort", Short: 'S', Arg: opt.Required, On: opt.Sinfo, Env: "SORT", Meta: "fields",
		Help: "letters to sort by, - before one for the other direction",
		Set:  func(o *infoOptions, v string) error { o.sort = v; return nil }},
	{
		Long: "states", Short: 't', Arg: opt.Required, On: opt.Sinfo, Meta: "states",
		Help: "only nodes in these states", Set: setInfoStates,
	},
	{
		Long: "summarize", Short: 's', On: opt.Sinfo, Help: "one line for each partition",
		Set: func(o *infoOptions, _ string) error { o.summary = true; return nil },
	},
	{Long: "verbose", Short: 'v', On: opt.Sinfo, Help: "tell what is asked for",
		Set: func(*infoOptions, string) error { return nil }},
	{Long: "version", Short: 'V', On: opt.Sinfo, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", On: opt.Sinfo, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Sinfo, Group: opt.HelpGroup, Help: "print a short help"},
}

// validNodeStates is what sinfo says that it knows.
const validNodeStates = "unknown,down,idle,allocated,?,mixed,future,drain,drained,draining,no_respond,reserved,perfctrs,cloud,completing," +
	"powering_down,powered_down,power_down,powering_up,fail,maint,reboot,reboot^,unknown"

// knownNodeStates are the states that -t knows.
func knownNodeStates() (words []string) {
	for i := range nodeFilters {
		words = append(words, nodeFilters[i].long)
	}
	return words
}

// setInfoStates reads states with commas between them, of which a node has one, or with & or +, of which it has all.
// With ~ before it a state is one that a node does not have.
func setInfoStates(o *infoOptions, v string) error {
	v = strings.ReplaceAll(v, "+", "&")
	o.states, o.allStates = nil, strings.Contains(v, "&")
	if v == "" {
		o.states = append(o.states, nil)
	}
	for _, w := range strings.FieldsFunc(v, func(c rune) bool { return c == ',' || c == '&' }) {
		w, not := strings.CutPrefix(strings.ToLower(w), "~")
		i := slices.IndexFunc(nodeFilters[:], func(f nodeWord) bool { return f.short == w || f.long == w })
		switch {
		case w == "all":
			return nil
		case i >= 0:
			o.states = append(o.states, filterOf(&nodeFilters[i], not))
		case strings.Contains(unknownNodeWords, w+","):
			o.states = append(o.states, nil)
		default:
			return &opt.UsageError{
				Code:  opt.CodeError,
				Lines: []string{"error: Bad state string: \"" + w + "\"", "error: valid states: " + validNodeStates},
			}
		}
	}
	return nil
}

// filterOf is a state, or all others.
func filterOf(f *nodeWord, not bool) *nodeWord {
	if !not {
		return f
	}
	others := *f
	others.is = func(state int) bool { return !f.is(state) }
	return &others
}

// Sinfo lists partitions and nodes.
func Sinfo(sys *front.Sys, argv []string) int {
	var o infoOptions
	_, code := front.ParseQuery(sys, opt.Sinfo, SinfoOptions, &o, argv)
	if code >= 0 {
		return code
	}
	given := onLine(opt.Sinfo, SinfoOptions, argv)
	if slices.Contains(given, "long") && (slices.Contains(given, "format") || slices.Contains(given, "Format")) {
		sys.Say("%s", mixedFormats)
		return 1
	}
	if both := o.settleParts(given); both != "" {
		return sys.Fail("Conflicting options, %s, specified. Please choose one or the other.", both)
	}
	if !o.data.On && !sys.Once() && sys.Tells(front.Told) {
		front.TellAsked(sys.Stdout, "\n", o.asked(sys, argv), o.shown(sys, argv))
	}
	if o.reservations {
		if o.dated(sys) {
			_, _ = sys.Stdout.Write([]byte(time.Now().Local().Format(dateLine)))
		}
		return infoReservations(sys, !o.noHeader)
	}
	for {
		if code := infoOnce(sys, &o); code != 0 || o.every == 0 || sys.Once() {
			return code
		}
		time.Sleep(o.every)
	}
}

// settleParts has --all of the line go before the variable for --partition. It returns what excludes each other.
func (o *infoOptions) settleParts(given []string) (both string) {
	all := slices.Contains(given, "all")
	parts := slices.Contains(given, "partition")
	switch {
	case all && parts:
		return "-a and -p"
	case all:
		o.parts = nil
	case parts:
		return ""
	case o.hidden && len(o.parts) > 0:
		return "SINFO_ALL and SINFO_PARTITION"
	}
	return ""
}

// dateLine is what stands above a table that is dated.
const dateLine = "Mon Jan 02 15:04:05 2006\n"

// dated reports whether the date stands above the table.
func (o *infoOptions) dated(s *front.Sys) bool {
	return (o.wide || o.every > 0 || s.Tells(front.Told)) && !o.noHeader
}

// infoOnce asks and prints once.
func infoOnce(s *front.Sys, o *infoOptions) int {
	out := bufio.NewWriterSize(s.Stdout, 1<<16)
	defer out.Flush()
	own, code := s.OwnCluster(o.clusters)
	if code >= 0 {
		return code
	}
	resp, err := front.Call(s, api.ListNodes, api.NodeQuery{
		Names: slices.Compact(slices.Sorted(slices.Values(o.nodes))), Listed: o.listed(),
	})
	var e *api.Error
	if errors.As(err, &e) && e.Kind == cluster.ErrAccess { // Slurm hides nodes alone
		return LoadFailed(s, "slurm_load_node", err)
	}
	if err != nil {
		return LoadFailed(s, "slurm_load_partitions", err)
	}
	v := &View{Sys: s, Now: resp.Now, Raw: o.raw, TimeFmt: TimeFormat(s)}
	if own != "" && !o.noHeader && !o.data.On {
		_, _ = out.WriteString(s.ClusterHead(own))
	}
	cells := o.cells(v, resp)
	if o.fed.Wants(o.clusters, resp.Federal) {
		if all := federalCells(o, v, resp); all != nil {
			o.placed, cells = true, all
		}
	}
	if o.data.On {
		return writeInfo(out, v, &o.data, cells, &resp)
	}
	f, bad := o.infoFormat(cells)
	for _, x := range bad {
		if o.long != "" {
			s.Say("error: Invalid job format specification: %s", x)
		} else {
			_, _ = s.Stderr.Write([]byte("Invalid node format specification: " + x + "\n"))
		}
	}
	rows := o.group(cells, &f)
	sort := o.sort
	switch {
	case sort != "":
	case o.perNode:
		sort = "N"
	default:
		sort = "#P,-t"
	}
	sortRows(rows, infoColumns, infoOrders[:], strings.ReplaceAll(sort, "#P", "\x01"))
	if o.dated(s) {
		_, _ = out.WriteString(v.Now.Local().Format(dateLine))
	}
	f.Table(out, !o.noHeader, rows)
	return 0
}

// listed reports whether hidden partitions are left out: one that is named may be hidden.
func (o *infoOptions) listed() bool { return !o.hidden && len(o.parts) == 0 }

// cells pairs each partition with each of its nodes that the options leave, one node a row; a
// partition that shows none has a row without.
func (o *infoOptions) cells(v *View, resp api.NodesResponse) (cells []InfoRow) {
	byName := make(map[cluster.NodeName]*api.NodeInfo, len(resp.Nodes))
	for i := range resp.Nodes {
		byName[resp.Nodes[i].Name] = &resp.Nodes[i]
	}
	for i := range resp.Partitions {
		p := &resp.Partitions[i]
		if len(o.parts) > 0 && !slices.Contains(o.parts, p.Name) {
			continue
		}
		before := len(cells)
		if p.All {
			for k := range resp.Nodes {
				if o.keeps(&resp.Nodes[k]) {
					cells = append(cells, InfoRow{v, p, i, []*api.NodeInfo{&resp.Nodes[k]}})
				}
			}
		} else {
			for _, name := range p.Nodes {
				if n := byName[name]; n != nil && o.keeps(n) {
					cells = append(cells, InfoRow{v, p, i, []*api.NodeInfo{n}})
				}
			}
		}
		if len(cells) == before && !o.perNode && !o.reasons {
			cells = append(cells, InfoRow{v: v, Part: p, index: i})
		}
	}
	return cells
}

// hides reports whether a node of a state is left out that no option names.
func (o *infoOptions) hides(state int) bool {
	return Hidden(state) && !(o.future && state&stateBaseMask == baseFuture)
}

func (o *infoOptions) keeps(n *api.NodeInfo) bool {
	answers := n.Up && !n.Quiet
	is := func(f *nodeWord) bool { return f != nil && f.is(NodeState(n)) }
	isNot := func(f *nodeWord) bool { return !is(f) }
	switch {
	case o.dead && answers, o.responding && !answers, o.reasons && n.Reason == "":
		return false
	case len(o.states) == 0:
		return len(o.nodes) > 0 || !o.hides(NodeState(n))
	case o.allStates:
		return !slices.ContainsFunc(o.states, isNot)
	}
	return slices.ContainsFunc(o.states, is)
}

// parting are the columns in which rows differ that are not put together.
func (o *infoOptions) parting(f *format.Format[InfoRow]) (parts []*format.Column[InfoRow]) {
	over := gathered
	if o.exact || o.perNode {
		over = gatheredExact
	}
	for _, c := range f.Columns() {
		if c.Code == 0 || !strings.Contains(over, string(c.Code)) {
			parts = append(parts, c)
		}
	}
	if !o.exact {
		return parts
	}
	for i := range infoColumns {
		if c := &infoColumns[i]; c.Code == 'c' || c.Code == 'm' || c.Code == 'd' {
			parts = append(parts, c)
		}
	}
	return parts
}

// rowKey appends what is alike in rows that are put together.
func (o *infoOptions) rowKey(key []byte, c *InfoRow, parts []*format.Column[InfoRow]) []byte {
	key = append(append(key, c.v.Place...), 0)
	for _, col := range parts {
		key = append(append(key, col.Of(c)...), 0)
	}
	if o.perNode && c.first() != nil { // one row in each of its partitions
		key = append(append(key, c.first().Name...), 0)
		key = append(key, c.Part.Name...)
	}
	return key
}

// group puts together what shows the same in all fields that speak of one node or partition.
func (o *infoOptions) group(cells []InfoRow, f *format.Format[InfoRow]) []InfoRow {
	parts := o.parting(f)
	// A partition without nodes to show has a row only where its name is shown.
	named := slices.ContainsFunc(f.Columns(),
		func(c *format.Column[InfoRow]) bool { return c.Code == 'P' || c.Code == 'R' })
	type member struct {
		row  int
		node *api.NodeInfo
	}
	index, has := map[string]int{}, make(map[member]bool, len(cells)) // a node may come by several partitions
	var rows []InfoRow
	var key []byte
	for _, c := range cells {
		if c.first() == nil && !named {
			continue
		}
		key = o.rowKey(key[:0], &c, parts)
		i, old := index[string(key)]
		at := member{i, c.first()}
		switch {
		case !old:
			at.row, index[string(key)] = len(rows), len(rows)
			rows = append(rows, c)
		case at.node != nil && !has[at]:
			rows[i].Nodes = append(rows[i].Nodes, at.node)
		}
		has[at] = true
	}
	return rows
}

// infoFormat chooses the format; some widths depend on what is shown.
func (o *infoOptions) infoFormat(cells []InfoRow) (format.Format[InfoRow], []string) {
	if o.long != "" {
		if strings.EqualFold(o.long, "all") {
			return format.Parse(infoColumns, allInfoFields, "")
		}
		return format.ParseLong(infoColumns, o.long)
	}
	if o.format != "" {
		return format.Parse(infoColumns, o.format, allInfoFields)
	}
	part, node := len("PARTITION"), len("NODELIST")
	for _, c := range cells {
		part = max(part, len(c.Part.Name)+front.BoolInt(c.Part.Default))
		if n := c.first(); n != nil {
			node = max(node, len(n.Name))
		}
	}
	return format.Parse(infoColumns, o.defaultFormat(part, strconv.Itoa(node)), "")
}

// defaultFormat is what is shown where nothing was said of that; part and node are the widths of the names.
func (o *infoOptions) defaultFormat(part int, node string) string {
	p := strconv.Itoa(part)
	switch {
	case o.summary:
		return "%" + p + "P %.5a %.10l %.16F %N"
	case o.perNode && o.wide:
		return "%" + node + "N %.6D %." + p + "P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
	case o.perNode:
		return "%" + node + "N %.6D %." + p + "P %6t"
	case o.reasons && o.wide:
		return "%20E %12U %19H %6t %N"
	case o.reasons:
		return "%20E %9u %19H %N"
	case o.wide:
		return "%" + p + "P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
	}
	return "%" + p + "P " + front.Choose(o.placed, "%8V ", "") + "%.5a %.10l %.6D %.6t %N"
}

var infoOrders = [...]order[InfoRow]{
	{'\x01', func(a, b *InfoRow) int { return cmp.Compare(a.index, b.index) }},
	{'P', func(a, b *InfoRow) int { return cmp.Compare(a.Part.Name, b.Part.Name) }},
	{'t', compareStates}, {'T', compareStates},
	{'D', func(a, b *InfoRow) int { return cmp.Compare(len(a.Nodes), len(b.Nodes)) }},
	{'N', compareNames}, {'n', compareNames},
	{'c', func(a, b *InfoRow) int {
		return firstNumber(a, b, func(n *api.NodeInfo) int { return n.Inventory.CPUs })
	}},
	{'m', func(a, b *InfoRow) int {
		return firstNumber(a, b, func(n *api.NodeInfo) int { return int(n.Inventory.MemMB) })
	}},
	{'d', func(a, b *InfoRow) int {
		return firstNumber(a, b, func(n *api.NodeInfo) int { return int(n.Inventory.TmpMB) })
	}},
	{'w', func(a, b *InfoRow) int {
		return firstNumber(a, b, func(n *api.NodeInfo) int { return n.Inventory.Weight })
	}},
	{'l', func(a, b *InfoRow) int { return cmp.Compare(MaxTime(a.Part.MaxTime), MaxTime(b.Part.MaxTime)) }},
	{'p', func(a, b *InfoRow) int { return cmp.Compare(a.Part.PriorityTier, b.Part.PriorityTier) }},
}

func firstNumber(a, b *InfoRow, f func(*api.NodeInfo) int) int {
	value := func(r *InfoRow) int {
		if n := r.first(); n != nil {
			return f(n)
		}
		return -1
	}
	return cmp.Compare(value(a), value(b))
}

func compareStates(a, b *InfoRow) int {
	return firstNumber(a, b, NodeState)
}

func compareNames(a, b *InfoRow) int {
	x, y := a.first(), b.first()
	if x == nil || y == nil {
		return cmp.Compare(len(a.Nodes), len(b.Nodes))
	}
	return cluster.CompareNodes(x.Name, y.Name)
}

// writeInfo prints the groups of nodes, and besides the nodes, as Slurm 22.05 does.
func writeInfo(out *bufio.Writer, v *View, k *data.Ask, cells []InfoRow, resp *api.NodesResponse) int {
	var o infoOptions
	f, _ := format.Parse(infoColumns, "%P%T%f%E", "")
	return v.Sys.Answer(k, out, v.Config().Config.ClusterName, data.Own(data.Each("nodes", &NodeTable,
		NodeRows(resp, nil))),
		data.Each("sinfo", &SinfoTable, o.group(cells, &f)))
}
