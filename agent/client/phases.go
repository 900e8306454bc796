package client

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// phase is how far one side of an attempt's life on its node has come. An attempt has four sides, which go on
// beside each other: its launch, its end, its suspension and the look at its GPUs.
type phase uint8

const (
	// The launch, which ends with the last report.
	arrived phase = iota
	confirmedBefore
	launching
	confirmed
	reported
	clean

	// The end.
	untouched
	termed
	killed
	unkillable

	// The suspension.
	going
	stopping
	frozen

	// The look at GPUs.
	unswept
	sweeping
	swept
)

// phaseRow is what a phase means, and where it may go on to.
type phaseRow struct {
	name, means string
	next        []phase
}

// phaseRows are the permitted moves. DESIGN.md has them as a table.
var phaseRows = [...]phaseRow{
	arrived: {
		"arrived", "the servers want it here: prolog and image", []phase{launching, confirmed, reported, clean},
	},
	confirmedBefore: {
		"confirmed before", "an earlier life of this client confirmed it",
		[]phase{launching, confirmed, reported, clean},
	},
	launching: {
		"launching", "the batch script is being fetched and started", []phase{confirmed, reported, clean},
	},
	confirmed: {
		"confirmed", "the servers were told that it is known here", []phase{launching, reported, clean},
	},
	reported: {"reported", "its end was reported, something may be left of it", []phase{clean}},
	clean:    {"clean", "nothing is left, and the servers were told", nil},

	untouched:  {"untouched", "nothing was done to end it", []phase{termed, killed}},
	termed:     {"termed", "TERM was sent", []phase{killed}},
	killed:     {"killed", "KILL was sent, and is again and again", []phase{unkillable}},
	unkillable: {"unkillable", "processes have outlived that for too long, and this is known", nil},

	going:    {"going", "its tasks run", []phase{stopping, frozen}},
	stopping: {"stopping", "TSTP was sent: it will be frozen", []phase{frozen, going}},
	frozen:   {"frozen", "nothing of it runs", []phase{going}},

	unswept:  {"unswept", "its GPUs are not looked at yet", []phase{sweeping}},
	sweeping: {"sweeping", "they are being looked at", []phase{swept}},
	swept:    {"swept", "they are free, or it is known why not", nil},
}

func (p phase) String() string { return phaseRows[p].name }

// to goes on to another phase if that is permitted, and reports whether it is there. To stay is always permitted:
// doing an action twice does no harm.
func (p *phase) to(next phase) bool {
	if *p != next && !slices.Contains(phaseRows[*p].next, next) {
		refusedMove(*p, next)
		return false
	}
	*p = next
	return true
}

// refusedMove tells of a move that the table does not have: a fault of this program, which must not end the node's
// daemon.
var refusedMove = func(from, to phase) {
	slog.Error("an impossible change of a job's phase on its node was refused", "from", from, "to", to)
}

// sides are the four of an attempt.
type sides struct {
	launch, end, pause, gpus phase

	killedFirst, killedLast time.Time // zero: not killed
	stoppedAt               time.Time // when TSTP was sent
}

// kill notes that everything is killed.
func (s *sides) kill(now time.Time) {
	s.killedLast = now
	if s.killedFirst.IsZero() {
		s.killedFirst = now
	}
	if s.end != unkillable {
		s.end.to(killed)
	}
}

// stop notes that its tasks were told that they will be frozen.
func (s *sides) stop(now time.Time) {
	if s.pause.to(stopping) {
		s.stoppedAt = now
	}
}

// isOver reports whether nothing is left of it here.
func (s *sides) isOver() bool { return s.launch == clean }

// isReported reports whether its end was reported, or all of it is over.
func (s *sides) isReported() bool { return s.launch >= reported }

// hasBegun reports whether prolog and image are done.
func (s *sides) hasBegun() bool { return s.launch >= confirmedBefore }

// isStuck reports whether its processes keep the node.
func (s *sides) isStuck() bool { return s.end == unkillable && !s.isOver() }

// phaseTable prints the rows as DESIGN.md has them.
func phaseTable() string {
	var out strings.Builder
	out.WriteString("| phase | what it means | goes on to |\n|---|---|---|\n")
	for _, row := range phaseRows {
		names := make([]string, len(row.next))
		for i, next := range row.next {
			names[i] = next.String()
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", row.name, row.means, strings.Join(names, ", "))
	}
	return out.String()
}
