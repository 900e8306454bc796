package control

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
	"dev.muster/slurm/values"
)

const (
	createResvError = "Error creating the reservation"
	updateResvError = "Error updating the reservation"
	deleteResvError = "delete_reservation"
	coresOfAll      = "CoreCnt counts for all nodes together, TRESPerNode for each: use TRESPerNode=cpu=N,..."
	noSigns         = "The +=/-= notation is not supported when updating "
	purgeDefault    = 5 * time.Minute
)

// resvEdit is a reservation that is being made or changed.
type resvEdit struct {
	cluster.Reservation
	c        *control
	now      time.Time
	duration time.Duration
	exists   bool          // it is being changed
	count    int           // how many nodes this command asks for; 0: it does not say
	skip     bool          // its next time
	tres     bool          // this command has said TRES= or TRESPerNode=
	plain    bool          // the complaint says all: Slurm adds nothing to it
	flagged  bool          // this command has said flags
	longer   time.Duration // by how much it is to be longer, or shorter
	why      []string      // why muster refuses what Slurm does not
	unknown  string        // refuses users or groups that there are not, after all else
}

// resvKey is a row: the names of a key, and what it does. A set function answers with a complaint.
type resvKey struct {
	names string
	set   func(*resvEdit, front.Setting) string
}

// resvKeys is a function: other front-ends pay nothing for it at start.
func resvKeys() []resvKey {
	return []resvKey{
		{"starttime", func(e *resvEdit, s front.Setting) string {
			return e.when(&e.Start, s, "start")
		}},
		{"endtime", func(e *resvEdit, s front.Setting) string {
			return e.when(&e.End, s, "end")
		}},
		{"duration", (*resvEdit).setDuration},
		{"maxstartdelay", (*resvEdit).setDelay},
		{"nodes", (*resvEdit).setNodes},
		{
			"nodecnt nodecount",
			func(e *resvEdit, s front.Setting) string { return e.setCount(s.Value, "Invalid node count ") },
		},
		{"corecnt corecount", (*resvEdit).setCores},
		{"tres", (*resvEdit).setTRES}, {"trespernode", (*resvEdit).setTRES},
		{"users", func(e *resvEdit, s front.Setting) string {
			names, not, bad := e.edit(e.Users, e.UsersNot, s)
			e.Users, e.UsersNot = names, not
			for _, n := range names {
				if _, ok := front.LookupUser(n); !ok {
					e.unknown = "Invalid user id"
				}
			}
			return bad
		}},
		{"groups", (*resvEdit).setGroups},
		{"accounts", func(e *resvEdit, s front.Setting) (bad string) {
			e.Accounts, e.AccountsNot, bad = e.edit(e.Accounts, e.AccountsNot, s)
			return bad
		}},
		{"qos", func(e *resvEdit, s front.Setting) (bad string) {
			e.QOS, e.QOSNot, bad = e.edit(e.QOS, e.QOSNot, s)
			return bad
		}},
		{"allowedpartitions", func(e *resvEdit, s front.Setting) (bad string) {
			e.Partitions, e.PartitionsNot, bad = e.edit(e.Partitions, e.PartitionsNot, s)
			return bad
		}},
		{"flags", (*resvEdit).setFlags},
		{"partitionname", func(e *resvEdit, s front.Setting) string {
			if e.Partition = s.Value; s.Value == "" && !e.exists {
				e.unknown = "Invalid partition name specified"
			}
			return ""
		}},
		{"skip", func(e *resvEdit, s front.Setting) string {
			e.skip = s.Value == "" || s.Value == "1"
			return ""
		}},
		{"licenses", func(e *resvEdit, s front.Setting) string {
			e.Licenses = s.Value
			return ""
		}},
		{"features", func(e *resvEdit, s front.Setting) string {
			if e.Features = s.Value; e.exists { // it has its nodes
				e.unknown = "Requested operation not supported on this system"
			}
			return ""
		}},
	}
}

// resvKeysElse are Slurm's other keys: they are refused by name, with what there is in their place.
var resvKeysElse = [...]struct{ key, instead string }{
	{"burstbuffer", "there are no burst buffers"}, {"region", "there is no BlueGene"},
	{"watts", "there is no power cap"},
}

func (e *resvEdit) when(to *time.Time, s front.Setting, word string) string {
	t, pos, ok := values.ParseWhen(s.Value, e.now)
	if !ok {
		e.c.complain("Invalid time specification (pos=" + strconv.Itoa(pos) + "): " + s.Value)
		return "Invalid " + word + " time " + s.Text
	}
	*to = t
	return ""
}

func (e *resvEdit) setDuration(s front.Setting) string {
	d, ok := values.ParseTimeLimit(s.Value)
	if !ok || d <= 0 {
		return "Invalid duration " + s.Text
	}
	d = min(d, 365*24*time.Hour)
	way := map[byte]time.Duration{'+': 1, '-': -1}[s.Sign]
	if way != 0 && e.exists {
		e.longer = way * d
	} else {
		e.duration = d
	}
	return ""
}

// setDelay reads MaxStartDelay, to the second; 0 takes it away.
func (e *resvEdit) setDelay(s front.Setting) string {
	key, _, _ := strings.Cut(s.Text, "=")
	if s.Sign != 0 {
		return noSigns + strings.TrimRight(key, "+-")
	}
	d, ok := opt.ParseSpan(s.Value)
	if !ok {
		return "Invalid duration " + s.Text
	}
	e.MaxStartDelay = d
	return ""
}

func (e *resvEdit) setNodes(s front.Setting) string {
	if s.Sign != 0 {
		return noSigns + "nodes"
	}
	names, err := e.c.nodeList(s.Value)
	if err != nil || len(names) == 0 {
		return "Invalid node names " + s.Value
	}
	e.Nodes, e.Count, e.CPUs, e.Flags = names, 0, nil, e.Flags&^cluster.ResvAllNodes|cluster.ResvSpecNodes
	if strings.EqualFold(s.Value, "ALL") {
		e.Flags |= cluster.ResvAllNodes
	}
	return ""
}

// refuse is a complaint to which nothing is added.
func (e *resvEdit) refuse(text string) string {
	e.plain = true
	return text
}

func (e *resvEdit) setCount(value, bad string) string {
	n, err := strconv.Atoi(value)
	if err != nil || n <= 0 {
		return e.refuse(bad + value)
	}
	e.count = n
	return ""
}

// counted settles NODES= and NODECNT= in one command, in whichever order: nodes by name make a new reservation; of
// one that there is, the number says how many of its nodes stay, or how many it gets.
func (e *resvEdit) counted() {
	if e.count > 0 && (e.exists || len(e.Nodes) == 0) {
		e.Count, e.CPUs, e.Flags = e.count, nil, e.Flags&^cluster.ResvAllNodes
		if e.exists {
			e.Flags &^= cluster.ResvPartNodes
		} else if e.Flags&cluster.ResvAnyNodes != 0 {
			e.unknown = "Requested reservation is invalid"
		}
	}
}

// setCores reads N,N,...
func (e *resvEdit) setCores(s front.Setting) string {
	if s.Sign != 0 {
		return noSigns + "corecnt"
	}
	var cores []int
	for _, word := range front.SplitList(s.Value) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return e.refuse("Invalid core count " + word)
		}
		cores = append(cores, n)
	}
	if cores != nil && e.PerNode && !e.exists {
		return coresOfAll
	}
	if cores != nil {
		e.Cores, e.CPUs = cores, nil
	}
	return ""
}

// setTRES reads TRES=, or TRESPerNode=.
func (e *resvEdit) setTRES(s front.Setting) string {
	perNode := strings.HasPrefix(s.Key, "tresp")
	if s.Sign != 0 {
		return noSigns + front.Choose(perNode, "trespernode", "tres")
	}
	r, bad := values.ParseReservedTRES(s.Value, perNode)
	sameGPUs := perNode == e.PerNode && slices.Equal(r.GPUs, e.GRES)
	switch {
	case e.tres:
		return e.refuse("Parameter " + s.Text + " specified more than once")
	case bad != "":
		return e.refuse(bad)
	case e.exists && (perNode || r.GPUs != nil) && !sameGPUs:
		return "GPUs of a reservation cannot be changed: " + s.Text + "; delete it and create another"
	case perNode && !e.exists && len(e.Cores) > 0:
		return coresOfAll
	}
	e.tres = true
	e.count, e.Licenses = cmp.Or(r.Nodes, e.count), cmp.Or(r.Licenses, e.Licenses)
	if r.Cores != nil {
		e.Cores, e.CPUs = r.Cores, nil
	}
	if r.GPUs != nil {
		e.GRES = r.GPUs
	}
	e.PerNode = e.PerNode || perNode
	return ""
}

func (e *resvEdit) setGroups(s front.Setting) string {
	names, not, bad := edit(e.Groups, false, s)
	if not {
		return "groups cannot be denied"
	}
	e.Groups, e.GIDs = names, nil
	for _, n := range names {
		gid, ok := front.LookupGroup(n)
		if !ok {
			e.unknown = "Invalid group id"
		}
		e.GIDs = append(e.GIDs, gid)
	}
	return bad
}

func (e *resvEdit) setFlags(s front.Setting) string {
	if s.Sign == 0 && !e.flagged && !e.exists { // flags of one that there is are added to
		e.Flags, e.PurgeAfter = e.Flags&(cluster.ResvSpecNodes|cluster.ResvAllNodes), 0
	}
	e.flagged = true
	for word := range strings.SplitSeq(s.Value, ",") {
		sign := s.Sign
		if w, ok := strings.CutPrefix(word, "-"); ok {
			word, sign = w, '-'
		}
		if word = strings.TrimPrefix(word, "+"); !e.flag(word, sign) {
			e.why = refusal("flag", word)
			return "Error parsing flags " + strings.Trim(string(s.Sign), "\x00") + s.Value
		}
	}
	return ""
}

// leastFlag is how many letters of a flag scontrol takes for the whole of it.
const leastFlag = 3

// flag sets or clears one.
func (e *resvEdit) flag(word string, sign byte) bool {
	name, value, valued := strings.Cut(strings.ToUpper(word), "=")
	if len(name) >= leastFlag && strings.HasPrefix(show.PurgeWord, name) {
		e.PurgeAfter = purgeDefault
		if valued {
			d, ok := values.ParseTimeLimit(value)
			if !ok {
				return false
			}
			e.PurgeAfter = d
		}
		if sign == '-' {
			e.PurgeAfter = 0
		}
		return true
	}
	name = strings.TrimSuffix(name, "_ALLOC") // STATIC_ALLOC
	i := slices.IndexFunc(show.ResvFlags[:],
		func(f show.ResvFlag) bool {
			return f.Word == name || len(name) >= leastFlag && strings.HasPrefix(f.Word, name)
		})
	said := cluster.ResvAllNodes | cluster.ResvSpecNodes // by nodes=
	switch {
	case word == "":
	case i < 0 || show.ResvFlags[i].Flag&said != 0:
		return false
	case sign == '-' && show.ResvFlags[i].Flag == cluster.ResvFirstCores: // as in Slurm: its cores stay what they are
		return false
	case sign == '-':
		e.Flags &^= show.ResvFlags[i].Flag
	default:
		e.Flags |= show.ResvFlags[i].Flag
	}
	return true
}

// edit is the function of that name; but -a,-b takes names from the list of a reservation that there is, as in Slurm.
func (e *resvEdit) edit(old []string, not bool, s front.Setting) (names []string, denied bool, bad string) {
	if e.exists && s.Sign == 0 && strings.HasPrefix(s.Value, "-") {
		s.Sign = '-'
		s.Value = strings.ReplaceAll(s.Value[1:], ",-", ",")
	}
	return edit(old, not, s)
}

// edit reads a list of names: new ones, more, or fewer. A - before names denies them.
func edit(old []string, not bool, s front.Setting) (names []string, denied bool, bad string) {
	for _, n := range front.SplitList(s.Value) {
		n, minus := strings.CutPrefix(n, "-")
		if len(names) > 0 && minus != denied {
			return old, not, "names to allow and names to deny cannot be mixed: " + s.Value
		}
		names, denied = append(names, n), minus
	}
	switch s.Sign {
	case '+':
		names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(old, n) })
		return append(slices.Clone(old), names...), not, ""
	case '-':
		if len(old) == 0 { // name-=x denies, if nothing was allowed
			return names, true, ""
		}
		return slices.DeleteFunc(slices.Clone(old), func(n string) bool { return slices.Contains(names, n) }), not, ""
	}
	return names, denied, ""
}

// signedKeys are the keys that += and -= change; the others say themselves what is wrong with that, or refuse it.
const signedKeys = namesKeys +
	" flags duration starttime endtime nodes corecnt corecount tres trespernode maxstartdelay"

// namesKeys are those that say who may use a reservation.
const namesKeys = "users groups accounts qos allowedpartitions"

// misplaced complains about a setting whose form its key does not take.
func misplaced(key resvKey, s front.Setting, earlier []front.Setting) (bad string, plain bool) {
	names := strings.Fields(key.names)
	word, _, _ := strings.Cut(s.Text, "=")
	again := func(o front.Setting) bool { return front.IsKey(o.Key, 3, names...) }
	switch {
	case s.Sign != 0 && !slices.Contains(strings.Fields(signedKeys), names[0]):
		return noSigns + strings.TrimRight(word, "+-"), false
	case slices.Contains(strings.Fields(namesKeys), names[0]) && slices.ContainsFunc(earlier, again):
		return "Parameter " + s.Text + " specified more than once", true
	}
	return "", false
}

// read applies the settings; it answers with a complaint.
func (e *resvEdit) read(list []front.Setting) string {
	keys := resvKeys()
	for n, s := range list {
		i := slices.IndexFunc(keys, func(k resvKey) bool { return front.IsKey(s.Key, 3, strings.Fields(k.names)...) })
		switch {
		case s.Bare && s.Key != "skip":
			return "Misformatted parameter '" + s.Text + "', most options have a parameter after '='"
		case i < 0:
			for _, k := range resvKeysElse {
				if front.IsKey(s.Key, 3, k.key) {
					return s.Text + " is not supported by muster: " + k.instead
				}
			}
			return "Unknown parameter " + s.Text
		}
		if bad, plain := misplaced(keys[i], s, list[:n]); bad != "" {
			e.plain = plain
			return bad
		}
		if bad := keys[i].set(e, s); bad != "" {
			return bad
		}
	}
	ends := e.Start.Add(e.duration)
	switch {
	case e.duration > 0 && !e.exists && !e.End.IsZero() && !e.End.Equal(ends):
		return "StartTime + Duration does not equal EndTime"
	case e.duration > 0:
		e.End = ends
	}
	e.End = e.End.Add(e.longer)
	e.counted()
	return ""
}

// incomplete tells what a new reservation lacks.
func (e *resvEdit) incomplete() string {
	partOnly := e.Flags&cluster.ResvPartNodes != 0 && (e.Flags&cluster.ResvAllNodes == 0 || e.Partition == "")
	switch {
	case e.Start.IsZero():
		return "A start time must be given"
	case e.End.IsZero():
		return "An end time or duration must be given"
	case e.End.Before(e.Start):
		return "Start time cannot be after end time"
	case len(e.Nodes)+e.Count+len(e.Cores)+len(e.GRES) == 0 && e.Flags&cluster.ResvPartNodes == 0 && e.Licenses == "":
		return "CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified"
	case e.IsForNobody():
		return "Either Users/Groups, AllowedPartitions, QOS and/or Accounts must be specified"
	case len(e.Users) > 0 && len(e.GIDs) > 0:
		return "Users and Groups are mutually exclusive.  You can have one or the other, but not both"
	case partOnly:
		return "PART_NODES flag requires specifying a Partition and ALL nodes"
	}
	return ""
}

// createReservation is scontrol create reservation KEY=VALUE...
func (c *control) createReservation(list []front.Setting) int {
	e := &resvEdit{c: c, now: time.Now()}
	list = slices.DeleteFunc(slices.Clone(list), func(s front.Setting) bool {
		named := front.IsKey(s.Key, 3, "reservationname")
		if named {
			e.Name = s.Value
		}
		return named
	})
	bad := cmp.Or(e.read(list), e.incomplete())
	if all := cluster.ResvAllNodes; e.Flags&all != 0 && e.Partition != "" { // those of the partition
		e.Flags = e.Flags&^all | cluster.ResvPartNodes
	}
	if bad != "" {
		lines := []string{"scontrol: error: " + bad + front.Choose(e.plain, "", ".  No reservation created.")}
		return c.complain(append(lines, e.why...)...)
	}
	if e.unknown != "" {
		return c.complain(createResvError + ": " + e.unknown)
	}
	if e.Start.Before(e.now.Add(-time.Minute)) {
		return c.complain(createResvError + ": Invalid time specified")
	}
	made, err := front.Call(c.sys, api.PutReservation, cluster.ReservationPut{Reservation: e.Reservation})
	if err != nil {
		code := c.failed(err, "", createResvError)
		if front.IsKind(err, cluster.ErrResvBusy) {
			_, _ = c.out.WriteString("Note, unless nodes are directly requested a reservation must exist in a single partition.\n" +
				"If no partition is requested the default partition is assumed.\n")
		}
		return code
	}
	_, _ = c.out.WriteString("Reservation created: " + made.Name + "\n")
	return 0
}

// updateReservation is scontrol update reservationname=NAME KEY=VALUE...
func (c *control) updateReservation(who front.Setting, list []front.Setting) int {
	resp, err := front.Call(c.sys, api.ListReservations, api.ReservationQuery{})
	e := &resvEdit{c: c, now: time.Now(), exists: true}
	i := slices.IndexFunc(resp.Reservations, func(r cluster.Reservation) bool { return r.Name == who.Value })
	if i >= 0 {
		e.Reservation = resp.Reservations[i]
	}
	span := e.End.Sub(e.Start)
	switch bad := e.read(list); {
	case bad != "":
		lines := []string{"scontrol: error: " + bad + front.Choose(e.plain, "", ".  No reservation update."),
			updateError + noError}
		return c.complain(append(lines, e.why...)...)
	case who.Value == "":
		return c.complain("scontrol: error: Reservation must be given.  No reservation update.")
	case err == nil && i < 0:
		err = cluster.Errorf(cluster.NotFound, cluster.ErrReservation, "there is no reservation %s", who.Value)
	}
	if err != nil {
		c.failed(err, "", updateResvError)
		return c.failed(err, "", updateError)
	}
	if e.unknown != "" {
		return c.complain(updateResvError+": "+e.unknown, updateError+": "+e.unknown)
	}
	moved := func(word string) bool {
		return slices.ContainsFunc(list, func(s front.Setting) bool { return front.IsKey(s.Key, 3, word) })
	}
	if moved("starttime") && !moved("endtime") && !moved("duration") {
		e.End = e.Start.Add(span)
	}
	why := ""
	switch {
	case e.IsForNobody():
		why = "Reservation request lacks users, groups or accounts"
	case len(e.Users) > 0 && len(e.GIDs) > 0:
		why = "Reservations can't have users and groups specified, only one or the other"
	}
	if why != "" {
		return c.complain(updateResvError+": "+why, updateError+": "+why)
	}
	if _, err := front.Call(c.sys, api.PutReservation, cluster.ReservationPut{Reservation: e.Reservation, Update: true, Skip: e.skip}); err != nil {
		c.failed(err, "", updateResvError)
		return c.failed(err, "", updateError)
	}
	_, _ = c.out.WriteString("Reservation updated.\n")
	return 0
}

// showReservations is scontrol show reservations [NAME].
func (c *control) showReservations(name string) int {
	resp, err := front.Call(c.sys, api.ListReservations, api.ReservationQuery{})
	if err != nil {
		return c.failed(err, "", "slurm_load_reservations error")
	}
	if c.data.On {
		rows := slices.DeleteFunc(show.ResvRows(&resp),
			func(r show.ResvRow) bool { return name != "" && r.Name != name })
		return show.WriteReservations(c.out, c.view(resp.Now), &c.data, rows)
	}
	shown := 0
	for i := range resp.Reservations {
		if r := &resp.Reservations[i]; name == "" || r.Name == name {
			shown++
			c.reservationRecord(r, resp.Now, resp.Cores[i], resp.CPUs[i], resp.CoreIDs[r.Name])
		}
	}
	switch {
	case shown > 0:
		return 0
	case name != "":
		_, _ = c.out.WriteString("Reservation " + name + " not found\n")
		return 1
	}
	_, _ = c.out.WriteString(show.NoReservations)
	return 0
}

func (c *control) reservationRecord(r *cluster.Reservation, now time.Time, cores, cpus int, coreIDs []cluster.IDSet) {
	o := c.record()
	o.line("ReservationName=", r.Name, " StartTime=", stamp(c, r.Start, ""), " EndTime=",
		stamp(c, r.End, ""), " Duration=", format.Padded(r.End.Sub(r.Start)))
	o.line("Nodes=", show.HostList(r.Nodes), " NodeCnt=", strconv.Itoa(len(r.Nodes)), " CoreCnt=", strconv.Itoa(cores), " Features=", format.Null(r.Features),
		" PartitionName=", format.Null(r.Partition), " Flags=", show.ResvText(r))
	for i, ids := range coreIDs {
		o.line("  NodeName=", string(r.Nodes[i]), " CoreIDs=", ids.String())
	}
	o.line("TRES=", format.Null(format.ReservationTRES(r, cpus)))
	if len(r.QOS)+len(r.Partitions) > 0 {
		o.line("AllowedPartitions=", format.Signed(r.Partitions, r.PartitionsNot), " QOS=", format.Signed(r.QOS, r.QOSNot))
	}
	o.line("Users=", format.Signed(r.Users, r.UsersNot), " Groups=", format.Signed(r.Groups, false), " Accounts=", format.Signed(r.Accounts, r.AccountsNot),
		" Licenses=", format.Null(r.Licenses), " State=", show.ResvState(r, now), " BurstBuffer=(null) Watts=n/a")
	o.line("MaxStartDelay=", front.Choose(r.MaxStartDelay == 0, "(null)", format.Padded(r.MaxStartDelay)))
	c.print(o)
}
