package adopt

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// Share is what an association, or a QOS, has used by one line of a command of Slurm.
type Share struct {
	Account, User, Partition, QOS string

	Used cluster.Spent
	line int64
}

// Label names whose usage it is.
func (s *Share) Label() string {
	if s.QOS != "" {
		return "QOS " + s.QOS
	}
	return assocLabel(&cluster.Association{Account: s.Account, User: s.User, Partition: s.Partition})
}

// maxShares bounds the associations and QOS of one output.
const maxShares = maxAssocs

// ReadShares reads what sshare -a -l -P printed, or scontrol show assoc_mgr.
func ReadShares(in io.Reader) ([]*Share, error) {
	r := &shareReader{lines: bufio.NewScanner(in)}
	r.lines.Buffer(nil, 1<<20)
	for r.lines.Scan() {
		r.n++
		if err := r.line(r.lines.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.n, err)
		}
		if len(r.out) > maxShares {
			return nil, fmt.Errorf("it has more than %d associations", maxShares)
		}
	}
	if err := r.lines.Err(); err != nil {
		return nil, err
	}
	if r.out == nil {
		return nil, errShares
	}
	return r.out, nil
}

// errShares says that a file is something else.
var errShares = errors.New("it is not the output of sshare -a -l -P or of scontrol show assoc_mgr")

type shareReader struct {
	lines *bufio.Scanner
	n     int64
	head  []string // of sshare
	out   []*Share
}

func (r *shareReader) line(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case r.head != nil:
		return r.row(text)
	case strings.Contains(text, "|"):
		return r.heads(text)
	}
	return r.words(text)
}

// heads reads the names of the fields of sshare.
func (r *shareReader) heads(text string) error {
	r.head = strings.Split(text, "|")
	for _, field := range [...]string{"Account", "User", "RawUsage"} {
		if !slices.Contains(r.head, field) {
			return fmt.Errorf("the field %s is missing: use sshare -a -l -P", field)
		}
	}
	return nil
}

// row reads a line of sshare.
func (r *shareReader) row(text string) error {
	cells := strings.Split(text, "|")
	if len(cells) != len(r.head) {
		return fmt.Errorf("it has %d fields, not %d", len(cells), len(r.head))
	}
	cell := func(name string) string {
		if i := slices.Index(r.head, name); i >= 0 {
			return strings.TrimSpace(cells[i])
		}
		return ""
	}
	used, err := usageOf(cell("RawUsage"))
	r.out = append(r.out, &Share{
		Account:   cell("Account"),
		User:      cell("User"),
		Partition: cell("Partition"),
		Used:      cluster.Spent{Raw: used},
		line:      r.n,
	})
	return err
}

// words reads a line of scontrol: a record begins with ClusterName= or QOS=, other lines belong to the last one.
func (r *shareReader) words(text string) (err error) {
	set := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		set[key] = value
	}
	name := func(key string) string { text, _, _ := strings.Cut(set[key], "("); return text }
	switch {
	case strings.HasPrefix(text, "ClusterName="):
		r.out = append(r.out, &Share{
			Account:   set["Account"],
			User:      name("UserName"),
			Partition: set["Partition"],
			line:      r.n,
		})
	case strings.HasPrefix(text, "QOS="):
		r.out = append(r.out, &Share{QOS: name("QOS"), line: r.n})
	}
	if len(r.out) == 0 {
		return nil
	}
	used := &r.out[len(r.out)-1].Used
	raw, ofAssoc := set["UsageRaw/Norm/Efctv"]
	qosRaw, ofQOS := set["UsageRaw"]
	if ofAssoc || ofQOS {
		raw, _, _ = strings.Cut(cmp.Or(raw, qosRaw), "/")
		used.Raw, err = usageOf(raw)
	}
	if wall, ok := set["GrpWall"]; ok && err == nil {
		used.Wall, err = usedMinutes(wall)
	}
	if list, ok := set["GrpTRESMins"]; ok && err == nil {
		used.TRES, err = usedTRES(list)
	}
	return err
}

// usageOf reads a number that is not negative.
func usageOf(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= 1e18) {
		return 0, fmt.Errorf("%.40q is not a usage", text)
	}
	return n, nil
}

// usedMinutes reads what is used of a limit in minutes, as N(12.5) or 100(12.5), in seconds.
func usedMinutes(text string) (float64, error) {
	_, text, _ = strings.Cut(text, "(")
	n, err := usageOf(strings.TrimSuffix(text, ")"))
	return 60 * n, err
}

// usedTRES reads what is used of resources. Billing is not one of them.
func usedTRES(text string) ([]cluster.Amount, error) {
	out := []cluster.Amount{}
	for item := range strings.SplitSeq(text, ",") {
		name, count, _ := strings.Cut(item, "=")
		n, err := usedMinutes(count)
		if err != nil {
			return nil, err
		}
		if n > 0 && name != "billing" {
			out = append(out, cluster.Amount{TRES: name, N: n})
		}
	}
	return out, nil
}

// SharesReport is what became of usage.
type SharesReport struct {
	Lines   int `json:"lines"` // of associations and QOS
	Set     int `json:"set"`
	Refused int `json:"refused"`
}

// SetShares sets the usage of the associations and QOS of a cluster. Users come first and the accounts behind those
// below them, so that each has exactly what it had in the end.
func (a *Accounts) SetShares(list []*Share, have Have) (SharesReport, error) {
	w := &adding{
		Accounts: a,
		known:    indexOf(have),
	}
	report := SharesReport{Lines: len(list)}
	var entries []*Entry
	seen := map[string]bool{}
	for _, s := range list {
		c := w.known.usage(s)
		why := ""
		switch {
		case c == nil:
			why = "muster does not have it"
		case seen[s.Label()]:
			why = "there is another line about it: use sshare -a -l -P -m, which shows partitions"
		}
		seen[s.Label()] = true
		if why == "" {
			entries = append(entries, &Entry{place{"shares", s.line}, *c})
			continue
		}
		if err := w.refuse(Refused{Table: "shares", Row: s.line, Name: s.Label(), Why: why}); err != nil {
			return report, err
		}
	}
	slices.SortStableFunc(entries, func(a, b *Entry) int { return cmp.Compare(w.known.depth(b), w.known.depth(a)) })
	for _, e := range entries {
		w.list = append(w.list, pending{e, &report.Set})
		report.Set++
		if len(w.list) == batchChanges {
			if err := w.flush(); err != nil {
				return report, err
			}
		}
	}
	err := w.flush()
	report.Refused = w.report.Refused
	return report, err
}

// usage returns the change that sets a usage, nil if the cluster lacks the record.
func (x *index) usage(s *Share) *cluster.Change {
	c := &cluster.Change{Usage: &s.Used}
	if s.QOS != "" {
		c.QOS = x.qos[s.QOS]
	} else {
		c.Assoc = x.assocs[s.Account+"\x00"+s.User+"\x00"+s.Partition]
	}
	if c.QOS == nil && c.Assoc == nil {
		return nil
	}
	return c
}

// depth is how far down an association is, with users below all accounts.
func (x *index) depth(e *Entry) (n int) {
	if e.Assoc == nil {
		return 0
	}
	if e.Assoc.User != "" {
		return maxDepth + 1
	}
	for a := e.Assoc; a != nil && n < maxDepth; a = x.byID[a.Parent] {
		n++
	}
	return n
}
