package sacctmgr

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/wire"
)

// archive is sacctmgr archive dump and archive load.
func (m *manager) archive(args []string) int {
	if len(args) > 0 {
		switch word := strings.ToLower(args[0]); {
		case front.IsKey(word, 1, "dump"):
			return m.archiveDump(args[1:])
		case front.IsKey(word, 1, "load"):
			return m.archiveLoad(args[1:])
		}
	}
	return m.wrong("No valid entity in archive command", `Input line must include, "Dump", or "load"`)
}

// ArchiveKind is what archive dump calls a kind of records: word has it written into a file, "purge"+purge says how
// old it becomes.
type ArchiveKind struct {
	Kind        cluster.RecordKind
	Word, purge string
}

// ArchiveKinds are the kinds of records that go out of history.
func ArchiveKinds() []ArchiveKind {
	return []ArchiveKind{{cluster.EventRecords, "events", "eventafter"},
		{cluster.JobRecords, "jobs", "jobafter"}, {cluster.ResvRecords, "reservations", "resvafter"},
		{cluster.StepRecords, "steps", "stepafter"}, {cluster.TxnRecords, "txn", "txnafter"},
		{cluster.UsageRecords, "usage", "usageafter"}}
}

// archiveAsked reads the words of archive dump.
func (m *manager) archiveAsked(args []string) (c cluster.Retain, code int) {
	archived := map[cluster.RecordKind]bool{}
	for _, a := range args {
		key, value, isSet := strings.Cut(a, "=")
		key = strings.ToLower(key)
		kind, known := archiveKind(key, isSet)
		switch {
		case isSet && front.IsKey(key, 1, "directory"):
			c.Dir = value
		case isSet && front.IsKey(key, 2, "script"):
			c.Script = value
		case ofPauses(key):
			return c, m.wrong(" " + a + ": pauses are part of the jobs' records: see Jobs and PurgeJobAfter=")
		case !known:
			return c, m.wrong(" Unknown option: " + a + ": archive dump knows Events, Jobs, Reservations, Steps, TXN, Directory=, Script= and PurgeEventAfter=, PurgeJobAfter=, PurgeResvAfter=, PurgeStepAfter=, PurgeTXNAfter=, PurgeUsageAfter=")
		case !isSet:
			archived[kind.Kind] = true
		default:
			age, ok := cluster.ParseAge(value)
			if !ok {
				return c, m.wrong(fmt.Sprintf(" Invalid value for %s (%s): it is a number of months, or of hours or days as 48hours or 30days",
					key, value))
			}
			c.Rules = append(c.Rules, cluster.RetainRule{Kind: kind.Kind, Age: age})
		}
	}
	if c.Rules == nil && len(archived) > 0 {
		return c, m.wrong(" Nothing is archived that does not go: say after what time, as with PurgeJobAfter=")
	}
	for i := range c.Rules {
		c.Rules[i].Archive = archived[c.Rules[i].Kind]
	}
	return c, 0
}

// archiveKind is the kind of records that a word names, or of which a setting says how old they become. Usage
// is not archived.
func archiveKind(key string, isSet bool) (ArchiveKind, bool) {
	purge, isPurge := strings.CutPrefix(key, "purge")
	for _, k := range ArchiveKinds() {
		switch {
		case isSet && isPurge && front.IsKey(purge, 1, k.purge):
			return k, true
		case !isSet && front.IsKey(key, 2, k.Word):
			return k, k.Kind != cluster.UsageRecords
		}
	}
	return ArchiveKind{}, false
}

// ofPauses reports whether a key is of the pauses of jobs.
func ofPauses(key string) bool {
	if strings.HasPrefix(key, "purges") {
		return front.IsKey(key, 7, "purgesuspendafter")
	}
	return len(key) > 1 && strings.HasPrefix("suspend", key)
}

// archiveDump has what is too old written into files and taken out of history, now.
func (m *manager) archiveDump(args []string) int {
	c, code := m.archiveAsked(args)
	if code != 0 {
		return code
	}
	if !m.immediate {
		m.tell(" This may result in loss of accounting database records (if Purge* options enabled).")
		if !m.agreed() {
			m.tell(" Changes Discarded")
			return 0
		}
	}
	resp, err := front.Call(m.sys, api.ArchiveHistory, c)
	if err != nil {
		return m.wrong(" Problem dumping archive: " + err.Error())
	}
	m.after = resp.Index
	m.tell("sacctmgr: SUCCESS")
	return 0
}

// archiveFile reads the words of archive load.
func archiveFile(m *manager, args []string) (file string, code int) {
	for _, a := range args {
		key, value, isSet := strings.Cut(a, "=")
		switch {
		case isSet && front.IsKey(strings.ToLower(key), 1, "file"):
			file = value
		case !isSet && file == "":
			file = a
		default:
			return "", m.wrong(" Unknown option: " + a + ": say file=F, a file that archive dump wrote")
		}
	}
	if file == "" {
		return "", m.wrong(" No filename given")
	}
	return file, 0
}

// archiveLoad puts the records of a file that archive dump wrote back into history.
func (m *manager) archiveLoad(args []string) int {
	file, code := archiveFile(m, args)
	if code != 0 {
		return code
	}
	f, err := os.Open(file)
	if err != nil {
		return m.wrong(fmt.Sprintf(" Unable to read \"%s\": %s", file, pathText(err)))
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, maxArchiveLine)
	var head api.HistoryArchive
	if !in.Scan() || wire.Unmarshal(in.Bytes(), &head) != nil || head.Format != api.ArchiveFormat {
		return m.wrong(" " + file + " is no archive of muster's: those of Slurm cannot be read")
	}
	if !m.immediate && !m.agreed() {
		m.tell(" Changes Discarded")
		return 0
	}
	total, code := loadRecords(m, in, file)
	if code != 0 {
		return code
	}
	m.tell("sacctmgr: SUCCESS: %d %s records", total, head.Kind)
	return 0
}

// loadRecords sends the records of a file, as many at once as one call carries, and counts them.
func loadRecords(m *manager, in *bufio.Scanner, file string) (total, code int) {
	var list []cluster.Archived
	size := 0
	for in.Scan() {
		var a cluster.Archived
		if err := wire.Unmarshal(in.Bytes(), &a); err != nil {
			return total, m.wrong(fmt.Sprintf(" record %d of %s cannot be read: %s; those before it are loaded",
				total+1, file, err))
		}
		total++
		size += len(in.Bytes())
		list = append(list, a)
		if len(list) < cluster.MaxLoaded && size <= maxArchiveSend {
			continue
		}
		if code := sendRecords(m, list); code != 0 {
			return total, code
		}
		list = nil
		size = 0
	}
	if err := in.Err(); err != nil {
		return total, m.wrong(" " + err.Error())
	}
	return total, sendRecords(m, list)
}

func sendRecords(m *manager, list []cluster.Archived) int {
	if len(list) == 0 {
		return 0
	}
	resp, err := front.Call(m.sys, api.LoadHistory, cluster.LoadHistory{Records: list})
	m.after = resp.Index
	if err != nil {
		return m.wrong(" Problem loading archive: " + err.Error())
	}
	return 0
}

// Bounds of what is read from an archive: a line, and what one call carries.
const (
	maxArchiveLine = 64 << 20
	maxArchiveSend = 512 << 10
)
