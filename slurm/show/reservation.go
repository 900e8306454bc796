package show

import (
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// NoReservations is what is said where there are none.
const NoReservations = "No reservations in the system\n"

// PurgeWord is a flag with a value.
const PurgeWord = "PURGE_COMP"

// ResvFlag is a row: a flag's word, in the order in which show prints them.
type ResvFlag struct {
	Word string
	Flag cluster.ResvFlags
}

// ResvFlags is the table of flags.
var ResvFlags = [...]ResvFlag{{"MAINT", cluster.ResvMaint}, {"FLEX", cluster.ResvFlex},
	{"OVERLAP", cluster.ResvOverlap},
	{"IGNORE_JOBS", cluster.ResvIgnoreJobs}, {"HOURLY", cluster.ResvHourly}, {"DAILY", cluster.ResvDaily},
	{"WEEKDAY", cluster.ResvWeekday}, {"WEEKEND", cluster.ResvWeekend}, {"WEEKLY", cluster.ResvWeekly},
	{"ANY_NODES", cluster.ResvAnyNodes}, {"SPEC_NODES", cluster.ResvSpecNodes},
	{"ALL_NODES", cluster.ResvAllNodes}, {"STATIC", cluster.ResvStatic},
	{"PART_NODES", cluster.ResvPartNodes},
	{"FIRST_CORES", cluster.ResvFirstCores}, {"TIME_FLOAT", cluster.ResvTimeFloat},
	{"REPLACE", cluster.ResvReplace}, {"REPLACE_DOWN", cluster.ResvReplaceDown},
	{PurgeWord, 0}, {"NO_HOLD_JOBS_AFTER_END", cluster.ResvNoHold}, {"MAGNETIC", cluster.ResvMagnetic},
	{"USER_DELETE", cluster.ResvUserDelete}}

// ResvText is a reservation's flags as show prints them.
func ResvText(r *cluster.Reservation) string {
	var words []string
	for _, f := range ResvFlags {
		switch {
		case r.Flags&f.Flag != 0:
			words = append(words, f.Word)
		case f.Word == PurgeWord && r.PurgeAfter > 0:
			words = append(words, PurgeWord+"="+format.Padded(r.PurgeAfter))
		}
	}
	return strings.Join(words, ",")
}

// ResvState is whether a reservation holds now.
func ResvState(r *cluster.Reservation, now time.Time) string {
	if r.Active(now) {
		return "ACTIVE"
	}
	return "INACTIVE"
}

// HostList folds names, in order, into a host list.
func HostList(names []cluster.NodeName) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return format.Null(hostlist.CompressSorted(list))
}

// infoReservations is sinfo -T.
func infoReservations(s *front.Sys, header bool) int {
	resp, err := front.Call(s, api.ListReservations, api.ReservationQuery{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return s.Fail("slurm_load_reservations error: %s", text)
	}
	if len(resp.Reservations) == 0 {
		_, _ = s.Stdout.Write([]byte(NoReservations))
		return 0
	}
	wide := len("RESV_NAME")
	for _, r := range resp.Reservations {
		wide = max(wide, len(r.Name))
	}
	var b []byte
	row := func(name, state, start, end, span, nodes string) {
		pad := func(text string, width int) string { return strings.Repeat(" ", max(width-len(text), 0)) + text }
		b = append(b, name+strings.Repeat(" ", wide-len(name))+"  "+pad(state, 8)+"  "+pad(start, 19)+"  "+pad(end, 19)+"  "+pad(span, 11)+"  "+nodes+"\n"...)
	}
	if header {
		row("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")
	}
	for i := range resp.Reservations {
		r := &resp.Reservations[i]
		row(r.Name, ResvState(r, resp.Now), format.Stamp(r.Start, ""), format.Stamp(r.End, ""),
			format.Padded(r.End.Sub(r.Start)), HostList(r.Nodes))
	}
	_, _ = s.Stdout.Write(b)
	return 0
}
