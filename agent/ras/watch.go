package ras

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Every is how often a job may be asked: RAS does not bear to be asked all the time.
const Every = 8 * time.Second

// confirm is in how many reports one after the other a rank must be missing.
const confirm = 2

// maxNamed bounds the ranks that a finding names.
const maxNamed = 4

// Watch finds from the reports of a job whether it hangs. It is not for use at once by several.
type Watch struct {
	// After is how long the ranks may differ in what they have launched, and launch nothing.
	After time.Duration

	comms map[string]*commSeen
}

// commSeen is what is remembered of a communicator.
type commSeen struct {
	counts  map[int]uint64 // by rank
	moved   time.Time      // when a count has risen last
	missing map[int]int    // ranks, and in how many reports they have been missing
}

// Finding is what hangs a job.
type Finding struct {
	Text string // a sentence that names the ranks
	Host string // the address where all of these ranks run; "" if they run on several
}

// Look takes a report and returns what hangs; nil if nothing does.
//
// A rank that is missing hangs the job if it is so in two reports, while none of the others has launched anything, and
// none of them ends. Ranks that have launched different numbers of operations are usual in a job that runs: they hang
// it if nobody has launched anything for After.
func (w *Watch) Look(r *Report, now time.Time) *Finding {
	seen := w.comms
	w.comms = map[string]*commSeen{}
	var found *Finding
	for i := range r.Comms {
		c := &r.Comms[i]
		s := seen[c.Hash]
		if s == nil {
			s = &commSeen{moved: now}
		}
		w.comms[c.Hash] = s
		if one := w.look(s, c, now); found == nil {
			found = one
		}
	}
	return found
}

// look takes what a report says of one communicator.
func (w *Watch) look(s *commSeen, c *Comm, now time.Time) *Finding {
	counts := map[int]uint64{}
	for i := range c.Ranks {
		counts[c.Ranks[i].Rank] = c.Ranks[i].launched()
	}
	rests := maps.Equal(counts, s.counts) && !slices.ContainsFunc(c.Ranks, RankState.changes)
	if !rests {
		s.moved = now
		s.missing = nil
	}
	s.counts = counts
	if lost := s.lose(c); lost != nil {
		return finding("NCCL's RAS gets no answer of %s", lost)
	}
	rested := now.Sub(s.moved)
	if w.After == 0 || rested < w.After {
		return nil
	}
	return behind(c, rested)
}

// changes reports whether a rank begins or ends.
func (r RankState) changes() bool {
	s := &r.Status
	return s.Init != 0 ||
		s.Finalize ||
		s.Destroy ||
		s.Abort
}

// lose counts the ranks that are missing, and names those that were so in enough reports.
func (s *commSeen) lose(c *Comm) (lost []*RankState) {
	missing := map[int]int{}
	for i := range c.Missing {
		r := &c.Missing[i]
		if !r.Status.Unresponsive && !r.Status.Dead {
			continue
		}
		missing[r.Rank] = s.missing[r.Rank] + 1
		if missing[r.Rank] >= confirm {
			lost = append(lost, r)
		}
	}
	s.missing = missing
	return lost
}

// behind names the ranks that have launched the least, if not all have launched the same.
func behind(c *Comm, since time.Duration) *Finding {
	by := map[uint64][]*RankState{}
	for i := range c.Ranks {
		n := c.Ranks[i].launched()
		by[n] = append(by[n], &c.Ranks[i])
	}
	if len(by) < 2 {
		return nil
	}
	all := slices.Sorted(maps.Keys(by))
	least := all[0]
	text := fmt.Sprintf("no rank has launched a collective for %v, and %%s is behind the others (%d operations of %d)",
		since.Round(time.Second), least, all[len(all)-1])
	return finding(text, by[least])
}

// finding puts the names of ranks into a text.
func finding(text string, ranks []*RankState) *Finding {
	f := &Finding{Host: ranks[0].Host}
	names := make([]string, len(ranks))
	for i, r := range ranks {
		names[i] = r.String()
		if r.Host != f.Host {
			f.Host = ""
		}
	}
	f.Text = fmt.Sprintf(text, joined(names))
	return f
}

// joined names the first of some ranks.
func joined(names []string) string {
	slices.Sort(names)
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
