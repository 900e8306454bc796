package slurm

import (
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

const noReservations = "No reservations in the system\n"

// purgeWord is a flag with a value.
const purgeWord = "PURGE_COMP"

// resvFlag is a row: a flag's word, in the order in which show prints them.
type resvFlag struct {
	word string
	flag cluster.ResvFlags
}

var resvFlags = [...]resvFlag{{"MAINT", cluster.ResvMaint}, {"FLEX", cluster.ResvFlex}, {"OVERLAP", cluster.ResvOverlap},
	{"IGNORE_JOBS", cluster.ResvIgnoreJobs}, {"HOURLY", cluster.ResvHourly}, {"DAILY", cluster.ResvDaily},
	{"WEEKDAY", cluster.ResvWeekday}, {"WEEKEND", cluster.ResvWeekend}, {"WEEKLY", cluster.ResvWeekly},
	{"ANY_NODES", cluster.ResvAnyNodes}, {"SPEC_NODES", cluster.ResvSpecNodes}, {"ALL_NODES", cluster.ResvAllNodes}, {"STATIC", cluster.ResvStatic}, {"PART_NODES", cluster.ResvPartNodes},
	{"FIRST_CORES", cluster.ResvFirstCores}, {"TIME_FLOAT", cluster.ResvTimeFloat}, {"REPLACE", cluster.ResvReplace}, {"REPLACE_DOWN", cluster.ResvReplaceDown},
	{purgeWord, 0}, {"NO_HOLD_JOBS_AFTER_END", cluster.ResvNoHold}, {"MAGNETIC", cluster.ResvMagnetic}, {"USER_DELETE", cluster.ResvUserDelete}}

// resvText is a reservation's flags as show prints them.
func resvText(r *cluster.Reservation) string {
	var words []string
	for _, f := range resvFlags {
		switch {
		case r.Flags&f.flag != 0:
			words = append(words, f.word)
		case f.word == purgeWord && r.PurgeAfter > 0:
			words = append(words, purgeWord+"="+format.Padded(r.PurgeAfter))
		}
	}
	return strings.Join(words, ",")
}

func resvState(r *cluster.Reservation, now time.Time) string {
	if r.Active(now) {
		return "ACTIVE"
	}
	return "INACTIVE"
}

func hostList(names []cluster.NodeName) string {
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
		_, _ = s.Stdout.Write([]byte(noReservations))
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
		row(r.Name, resvState(r, resp.Now), format.Stamp(r.Start, ""), format.Stamp(r.End, ""), format.Padded(r.End.Sub(r.Start)), hostList(r.Nodes))
	}
	_, _ = s.Stdout.Write(b)
	return 0
}
