package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/wire"
)

// The audit trail's text for each kind of command.

// auditWord names the job, component or tasks that a reference means.
func (r Ref) auditWord() string {
	switch {
	case !r.Tasks.Empty():
		return fmt.Sprintf("job %d_[%s]", r.Job, r.Tasks)
	case r.Part > 0:
		return fmt.Sprintf("job %d+%d", r.Job, r.Part-1)
	}
	return fmt.Sprintf("job %d", r.Job)
}

// auditOwner returns the user of the job that a reference means.
func auditOwner(t *tables, r Ref) string {
	j, ok := t.Job(r.Job)
	if !ok {
		return ""
	}
	return "user=" + j.Spec.User
}

func (c *Submit) audit(t *tx) (a Audit) {
	if c.Spec.UID == t.by.UID { // the job itself shows who submitted it
		return a
	}
	return Audit{Action: "job submit", Object: "job " + c.Spec.Name, New: "user=" + c.Spec.User}
}

func (c *UpdateJob) audit(t *tx) Audit {
	a := Audit{Action: "job update", Object: c.Ref.auditWord(), Old: auditOwner(t.tables, c.Ref)}
	now, err := fieldsOf(&c.Patch)
	if err != nil {
		return a
	}
	was := []string{a.Old}
	if j, ok := t.Job(c.Ref.Job); ok {
		before := map[string]string{
			"priority":   fmt.Sprint(j.Priority),
			"limit":      auditLimit(j.Limit),
			"nice":       fmt.Sprint(j.Spec.Nice),
			"account":    j.Spec.Account,
			"qos":        j.Spec.QOS,
			"partitions": strings.Join(j.Spec.Partitions, ","),
		}
		for _, k := range slices.Sorted(maps.Keys(before)) {
			if _, changed := now[k]; changed {
				was = append(was, k+"="+before[k])
			}
		}
	}
	a.Old = strings.TrimSpace(strings.Join(was, " "))
	a.New = auditText(now)
	return a
}

// auditText words fields, sorted by their names.
func auditText(now map[string]wire.RawMessage) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(now)) {
		text := strings.Trim(string(now[k]), `"`)
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil && slices.Contains([]string{"limit", "limit_min", "limit_delta"}, k) {
			text = auditLimit(time.Duration(n))
		}
		out = append(out, k+"="+text)
	}
	return strings.Join(out, " ")
}

func auditLimit(d time.Duration) string {
	if d == Unlimited {
		return "unlimited"
	}
	return d.String()
}

func (c *HoldJobs) audit(t *tx) Audit {
	a := Audit{Action: "job hold", Object: c.Ref.auditWord(), Old: auditOwner(t.tables, c.Ref)}
	switch c.Hold {
	case NotHeld:
		a.Action = "job release"
	case HeldAdmin:
		a.New = "by administrator"
	case HeldUser:
		a.New = "by user"
	}
	return a
}

func (c *Requeue) audit(t *tx) Audit {
	a := Audit{Action: "job requeue", Object: c.Ref.auditWord(), Old: auditOwner(t.tables, c.Ref)}
	if c.Hold {
		a.New = "held"
	}
	return a
}

func (c *Suspend) audit(t *tx) Audit {
	a := Audit{Action: "job suspend", Object: c.Ref.auditWord(), Old: auditOwner(t.tables, c.Ref)}
	if c.Resume {
		a.Action = "job resume"
	}
	return a
}

func (c *Cancel) audit(t *tx) Audit {
	a := Audit{Action: "job cancel", Object: c.Ref.auditWord(), Old: auditOwner(t.tables, c.Ref)}
	if c.Sig != 0 {
		a.Action = "job signal"
		a.New = fmt.Sprintf("signal=%d", c.Sig)
	}
	if c.Step != nil {
		a.Object += fmt.Sprintf(", step %d", *c.Step)
	}
	return a
}

func (c *TopJobs) audit(t *tx) Audit {
	var names []string
	for _, r := range c.Refs[:min(len(c.Refs), auditNames)] {
		names = append(names, r.auditWord())
	}
	return Audit{Action: "job top", Object: auditList("", names, len(c.Refs))}
}

// auditNames is how many names of a list are shown.
const auditNames = 16

// auditList words the first names of a list of n.
func auditList[S ~string](what string, names []S, n int) string {
	var b strings.Builder
	b.WriteString(what)
	for i, name := range names[:min(len(names), auditNames)] {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(string(name))
	}
	if n > auditNames {
		fmt.Fprintf(&b, " and %d more", n-auditNames)
	}
	return b.String()
}

func auditNodes(names []NodeName) string { return auditList("node ", names, len(names)) }

func (c *NodeSet) audit(t *tx) Audit {
	a := Audit{Action: "node " + string(c.Action), Object: auditNodes(c.Nodes)}
	if c.Action == "" {
		a.Action = "node update"
	}
	now, err := fieldsOf(c)
	if err != nil {
		return a
	}
	delete(now, "nodes")
	delete(now, "action")
	a.New = auditText(now)
	if len(c.Nodes) != 1 {
		return a
	}
	n, ok := t.nodes.Get(c.Nodes[0])
	switch {
	case ok && n.Drain:
		a.Old = "drained reason=" + n.Reason
	case ok && n.Reason != "":
		a.Old = "reason=" + n.Reason
	}
	return a
}

func (c *NodeCreate) audit(*tx) Audit {
	var names []NodeName
	for i := range c.Nodes[:min(len(c.Nodes), auditNames)] {
		names = append(names, c.Nodes[i].Name)
	}
	return Audit{Action: "node create", Object: auditList("node ", names, len(c.Nodes))}
}

func (c *NodeDelete) audit(*tx) Audit {
	return Audit{Action: "node delete", Object: auditNodes(c.Nodes)}
}

func (c *NodeReboot) audit(*tx) Audit {
	a := Audit{Action: "node reboot", Object: auditNodes(c.Nodes), New: c.Reason}
	if c.Cancel {
		a.Action = "node cancel_reboot"
	}
	return a
}

func (c *BurninDone) audit(*tx) Audit {
	return Audit{Action: "node burnin", Object: "node " + string(c.Node), New: fmt.Sprintf("parts=%d", len(c.Parts))}
}

func (c *SwapNode) audit(t *tx) Audit {
	r := Ref{Job: c.Job}
	return Audit{Action: "job swap", Object: r.auditWord(), Old: auditOwner(t.tables, r),
		New: "without=" + string(c.Node) + " why=" + c.Why}
}

// auditDiff words the fields in which two records differ; a nil record has none.
func auditDiff(old, now any) (was, is string) {
	before, err1 := fieldsOf(old)
	after, err2 := fieldsOf(now)
	if err1 != nil || err2 != nil {
		return "", ""
	}
	for k, v := range before {
		if string(after[k]) == string(v) {
			delete(before, k)
			delete(after, k)
		}
	}
	return auditText(before), auditText(after)
}

func (c *ReservationPut) audit(t *tx) Audit {
	a := Audit{Action: "reservation create", Object: "reservation " + c.Name}
	if !c.Update {
		_, a.New = auditDiff(nil, &c.Reservation)
		return a
	}
	a.Action = "reservation update"
	if old, ok := t.resvs.Get(c.Name); ok {
		a.Old, a.New = auditDiff(old, &c.Reservation)
	}
	return a
}

func (c *ReservationDrop) audit(t *tx) Audit {
	a := Audit{Action: "reservation delete", Object: "reservation " + c.Name}
	if old, ok := t.resvs.Get(c.Name); ok {
		a.Old, _ = auditDiff(old, nil)
	}
	return a
}

func (c *PartitionSet) audit(t *tx) Audit {
	a := Audit{Action: "partition create", Object: "partition " + c.Partition.Name}
	old, there := t.Partition(c.Partition.Name)
	switch {
	case c.Delete:
		a.Action = "partition delete"
	case there:
		a.Action = "partition update"
		a.Old, a.New = auditDiff(old, &c.Partition)
	default:
		_, a.New = auditDiff(nil, &c.Partition)
	}
	return a
}

// audit names the fields that change; muster config log and muster config diff have the values.
func (c *Configure) audit(t *tx) Audit {
	a := Audit{Action: strings.TrimSpace("config " + c.How), Object: "configuration"}
	if c.Config == nil {
		return a
	}
	was, err := configDiff(t.config, c.Config)
	if err == nil {
		a.New = "fields=" + strings.Join(slices.Sorted(maps.Keys(was)), ",")
	}
	return a
}

// audit names the records; sacctmgr list transactions has their values.
func (c *ChangeAccounts) audit(t *tx) Audit {
	a := Audit{Action: "accounts change"}
	var names []string
	for i := range c.Changes[:min(len(c.Changes), auditNames)] {
		kind, where, _, _ := c.Changes[i].record(t)
		if c.Changes[i].Delete {
			kind = "-" + kind
		}
		names = append(names, kind+" "+where)
	}
	a.Object = auditList("", names, len(c.Changes))
	return a
}

func (c *TokenPut) audit(*tx) Audit {
	k := &c.Token
	return Audit{
		Action: "jointoken create",
		Object: "join token " + k.ID,
		New: fmt.Sprintf("role=%s uses=%d expires=%s", k.Role, k.Uses,
			k.Expires.UTC().Format("2006-01-02T15:04:05Z")),
	}
}

func (c *TokenRevoke) audit(*tx) Audit {
	return Audit{Action: "jointoken revoke", Object: "join token " + c.ID}
}

func (c *MemberJoin) audit(t *tx) Audit {
	m := &c.Member
	a := Audit{
		Action: "member join",
		Object: "member " + m.Name,
		By:     "join token " + c.Token,
		Origin: c.From,
		New:    fmt.Sprintf("role=%s addr=%s", m.Role, m.Addr),
	}
	if old, ok := t.joined.Get(m.Name); ok {
		a.Old = fmt.Sprintf("role=%s addr=%s", old.Role, old.Addr)
	}
	return a
}

func (c *MemberRevoke) audit(t *tx) Audit {
	a := Audit{Action: "member revoke", Object: "member " + c.Name}
	if old, ok := t.joined.Get(c.Name); ok {
		a.Old = fmt.Sprintf("role=%s addr=%s", old.Role, old.Addr)
	}
	return a
}

func (c *PeerPut) audit(*tx) Audit {
	if s := c.Peer.Slurm; s != nil {
		return Audit{
			Action: "peer put",
			Object: "cluster " + c.Peer.Name,
			New:    fmt.Sprintf("slurm bin=%s conf=%s host=%s", s.Bin, s.Conf, s.Host),
		}
	}
	return Audit{
		Action: "peer put",
		Object: "cluster " + c.Peer.Name,
		New:    fmt.Sprintf("urls=%s root=%t", c.Peer.URLs, c.Peer.Root),
	}
}

func (c *PeerDrop) audit(*tx) Audit {
	return Audit{Action: "peer remove", Object: "cluster " + c.Name}
}

func (c *FederationPut) audit(*tx) Audit {
	var names []string
	for i := range c.Record.Members {
		names = append(names, c.Record.Members[i].Name)
	}
	return Audit{
		Action: "federation change",
		Object: "federation " + c.Record.Name,
		New:    auditList("members=", names, len(names)),
	}
}

func (c *JWTKey) audit(*tx) Audit {
	a := Audit{Action: "token rotate", Object: "key " + c.Key.ID}
	if c.Cut {
		a.New = "all tokens ended"
	}
	return a
}

func (c *JWTEnd) audit(*tx) Audit {
	a := Audit{Action: "token end", Object: "tokens of " + c.User}
	switch {
	case c.Token != "":
		a.Object = "token " + c.Token + " of " + c.User
	case c.User == "":
		a.Object = "all tokens"
	}
	return a
}

func (c *SessionEnd) audit(*tx) Audit {
	return Audit{Action: "page logout", Object: "page session"}
}

func (c *Retain) audit(*tx) Audit {
	return Audit{Action: "history archive", Object: "history", New: fmt.Sprintf("rules=%d dir=%s", len(c.Rules), c.Dir)}
}

func (c *LoadHistory) audit(*tx) Audit {
	return Audit{Action: "history load", Object: "history", New: fmt.Sprintf("records=%d", len(c.Records))}
}

// audit shows the beginning and the end of an import.
func (c *ImportHistory) audit(*tx) Audit {
	if c.From > 0 && !c.Import.Over {
		return Audit{}
	}
	i := &c.Import
	return Audit{Action: "history import", Object: "cluster " + i.Cluster,
		New: fmt.Sprintf("source=%s passed=%d over=%t", i.Source, i.Passed, i.Over)}
}

func (c *AmendJobs) audit(*tx) Audit {
	var names []string
	for _, j := range c.Jobs[:min(len(c.Jobs), auditNames)] {
		names = append(names, fmt.Sprintf("job %d", j.ID))
	}
	a := Audit{Action: "history amend", Object: auditList("", names, len(c.Jobs))}
	if now, err := fieldsOf(&c.Amendment); err == nil {
		a.New = auditText(now)
	}
	return a
}

func (c *CrontabPut) audit(*tx) Audit {
	a := Audit{Action: "crontab set", Object: fmt.Sprintf("crontab of uid %d", c.UID)}
	if c.Text == "" {
		a.Action = "crontab remove"
		return a
	}
	a.New = fmt.Sprintf("jobs=%d", len(c.Jobs))
	return a
}

func (c *TriggerSet) audit(*tx) Audit {
	return Audit{Action: "trigger set", Object: "trigger", New: "program=" + c.Trigger.Program}
}

func (c *TriggerClear) audit(*tx) Audit {
	return Audit{Action: "trigger clear", Object: fmt.Sprintf("trigger %d", c.ID)}
}
