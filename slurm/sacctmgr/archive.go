package sacctmgr

import (
	"bufio"
	"fmt"
	"os"
	"slices"
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
		i := slices.IndexFunc(ArchiveKinds(), func(k ArchiveKind) bool {
			purge, isPurge := strings.CutPrefix(key, "purge")
			return isSet && isPurge && front.IsKey(purge, 1, k.purge) || !isSet && front.IsKey(key, 2, k.Word)
		})
		switch {
		case isSet && front.IsKey(key, 1, "directory"):
			c.Dir = value
		case isSet && front.IsKey(key, 2, "script"):
			c.Script = value
		case strings.HasPrefix("suspend", key) && len(key) > 1 || strings.HasPrefix(key, "purges") && front.IsKey(key, 7, "purgesuspendafter"):
			return c, m.wrong(" " + a + ": pauses are part of the jobs' records: see Jobs and PurgeJobAfter=")
		case i < 0 || !isSet && ArchiveKinds()[i].Kind == cluster.UsageRecords:
			return c, m.wrong(" Unknown option: " + a + ": archive dump knows Events, Jobs, Reservations, Steps, TXN, Directory=, Script= and PurgeEventAfter=, PurgeJobAfter=, PurgeResvAfter=, PurgeStepAfter=, PurgeTXNAfter=, PurgeUsageAfter=")
		case !isSet:
			archived[ArchiveKinds()[i].Kind] = true
		default:
			age, ok := cluster.ParseAge(value)
			if !ok {
				return c, m.wrong(fmt.Sprintf(" Invalid value for %s (%s): it is a number of months, or of hours or days as 48hours or 30days",
					key, value))
			}
			c.Rules = append(c.Rules, cluster.RetainRule{Kind: ArchiveKinds()[i].Kind, Age: age})
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

// archiveLoad puts the records of a file that archive dump wrote back into history.
func (m *manager) archiveLoad(args []string) int {
	file := ""
	for _, a := range args {
		key, value, isSet := strings.Cut(a, "=")
		switch {
		case isSet && front.IsKey(strings.ToLower(key), 1, "file"):
			file = value
		case !isSet && file == "":
			file = a
		default:
			return m.wrong(" Unknown option: " + a + ": say file=F, a file that archive dump wrote")
		}
	}
	if file == "" {
		return m.wrong(" No filename given")
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
		return m.wrong(" " + file + " is no archive of muster's: those of Slurm can not be read")
	}
	if !m.immediate && !m.agreed() {
		m.tell(" Changes Discarded")
		return 0
	}
	total := 0
	var list []cluster.Archived
	send := func() error {
		if len(list) == 0 {
			return nil
		}
		resp, err := front.Call(m.sys, api.LoadHistory, cluster.LoadHistory{Records: list})
		m.after, total, list = resp.Index, total+len(list), nil
		return err
	}
	for size := 0; in.Scan(); {
		var a cluster.Archived
		if err := wire.Unmarshal(in.Bytes(), &a); err != nil {
			return m.wrong(fmt.Sprintf(" record %d of %s can not be read: %s; those before it are loaded",
				total+len(list)+1, file, err))
		}
		list, size = append(list, a), size+len(in.Bytes())
		if len(list) == cluster.MaxLoaded || size > maxArchiveSend {
			if err := send(); err != nil {
				return m.wrong(" Problem loading archive: " + err.Error())
			}
			size = 0
		}
	}
	if err := in.Err(); err != nil {
		return m.wrong(" " + err.Error())
	}
	if err := send(); err != nil {
		return m.wrong(" Problem loading archive: " + err.Error())
	}
	m.tell("sacctmgr: SUCCESS: %d %s records", total, head.Kind)
	return 0
}

// Bounds of what is read from an archive: a line, and what one call carries.
const (
	maxArchiveLine = 64 << 20
	maxArchiveSend = 512 << 10
)
