package faults

import (
	"fmt"
	"io"
	"time"
)

// printed is a line of the comparison.
type printed struct {
	label string
	value func(*Sum) any
	verb  string
}

var lines = [...]printed{
	{"effective training time (%)", func(s *Sum) any { return 100 * s.Effective() }, "%.2f"},
	{"lost: standing still at checkpoints (%)", func(s *Sum) any { return s.percent(s.Saving) }, "%.2f"},
	{"lost: work since the last checkpoint (%)", func(s *Sum) any { return s.percent(s.Redone) }, "%.2f"},
	{"lost: until the fault is known (%)", func(s *Sum) any { return s.percent(s.Unseen) }, "%.2f"},
	{"lost: in the queue (%)", func(s *Sum) any { return s.percent(s.Queued) }, "%.2f"},
	{"lost: starting (%)", func(s *Sum) any { return s.percent(s.Starting) }, "%.2f"},
	{"faults that stopped the job", func(s *Sum) any { return s.Faults }, "%d"},
	{"  the step started again in place", func(s *Sum) any { return s.InPlace }, "%d"},
	{"  the job went through the queue", func(s *Sum) any { return s.Requeues }, "%d"},
	{"nodes replaced by spares", func(s *Sum) any { return s.Swaps }, "%d"},
	{"mean time to train again (s)", func(s *Sum) any { return s.MeanStop().Seconds() }, "%.0f"},
	{"longest time to train again (s)", func(s *Sum) any { return s.LongestTo.Seconds() }, "%.0f"},
}

// percent is a part of all time.
func (s *Sum) percent(part time.Duration) float64 { return 100 * part.Seconds() / s.All.Seconds() }

// Print writes ways side by side, with tabs between the cells.
func Print(w io.Writer, ways []Way, sums []Sum) {
	for _, way := range ways {
		fmt.Fprint(w, "\t"+way.Name)
	}
	fmt.Fprintln(w)
	for _, line := range lines {
		fmt.Fprint(w, line.label)
		for i := range sums {
			fmt.Fprintf(w, "\t"+line.verb, line.value(&sums[i]))
		}
		fmt.Fprintln(w)
	}
}
