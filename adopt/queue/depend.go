package queue

import (
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// eachNumber calls change with each job number of a dependency, afterok:5_*(unfulfilled),after:7+10, and returns the
// text with its answers and without the states in brackets.
func eachNumber(text string, change func(string) string) string {
	var out strings.Builder
	for len(text) > 0 {
		switch i := strings.IndexAny(text, ":("); {
		case i < 0:
			out.WriteString(text)
			text = ""
		case text[i] == '(':
			out.WriteString(text[:i])
			_, text, _ = strings.Cut(text[i:], ")")
		default:
			out.WriteString(text[:i+1])
			text = text[i+1:]
			end := 0
			for end < len(text) && text[end] >= '0' && text[end] <= '9' {
				end++
			}
			out.WriteString(change(text[:end]))
			text = strings.TrimPrefix(text[end:], "_*")
		}
	}
	return out.String()
}

// renumber names the jobs of a dependency as they are in muster.
func renumber(text string, ids map[cluster.JobID]cluster.JobID) string {
	return eachNumber(text, func(id string) string {
		n, _ := strconv.ParseUint(id, 10, 32)
		if now, moved := ids[cluster.JobID(n)]; moved {
			return strconv.FormatUint(uint64(now), 10)
		}
		return id
	})
}

// settleDepends reads dependencies, and leaves the jobs that wait for one that does not move.
func settleDepends(jobs []*Job, others map[cluster.JobID]bool) {
	for _, j := range jobs {
		text := j.Fields["Dependency"]
		if strings.Contains(text, "(failed)") {
			j.leave("its dependency can never be satisfied: %s", text)
		}
		eachNumber(text, func(id string) string {
			n, _ := strconv.ParseUint(id, 10, 32)
			j.Depend = append(j.Depend, cluster.JobID(n))
			return id
		})
		if others[j.ID] && j.Fields["ArrayTaskId"] == "" {
			j.leave("another record of Slurm has its number")
		}
	}
	for _, j := range jobs {
		for _, id := range j.Depend {
			if others[id] {
				j.leave("it depends on job %d, which runs in Slurm", id)
			}
		}
	}
}

// Close leaves the jobs that depend on one that stays, and the jobs on which one depends that stays: Slurm would
// cancel such a one with what it waits for.
func Close(jobs []*Job) {
	byID := map[cluster.JobID]*Job{}
	for _, j := range jobs {
		byID[j.ID] = j
	}
	for again := true; again; {
		again = false
		for _, j := range jobs {
			for _, id := range j.Depend {
				p := byID[id]
				switch {
				case j.Left == "" && p == nil:
					j.leave("it depends on job %d, which is not pending in Slurm", id)
					again = true
				case j.Left == "" && p.Left != "":
					j.leave("it depends on job %d, which stays in Slurm", id)
					again = true
				case j.Left != "" && p != nil && p.Left == "":
					p.leave("job %d depends on it and stays in Slurm", j.ID)
					again = true
				}
			}
		}
	}
}

// Order sorts jobs so that each comes after those on which it depends.
func Order(jobs []*Job) (out []*Job) {
	byID, seen := map[cluster.JobID]*Job{}, map[cluster.JobID]bool{}
	for _, j := range jobs {
		byID[j.ID] = j
	}
	var visit func(j *Job)
	visit = func(j *Job) {
		if j == nil || seen[j.ID] {
			return
		}
		seen[j.ID] = true
		for _, id := range j.Depend {
			visit(byID[id])
		}
		out = append(out, j)
	}
	for _, j := range jobs {
		visit(j)
	}
	return out
}
