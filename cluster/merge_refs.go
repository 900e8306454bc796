package cluster

// fewRefs are looked up each by itself: what was asked for and is not there is told by the words of who asked.
const fewRefs = 64

// part is a job, or a component of one.
type part struct {
	job JobID
	of  int
}

// MergeRefs has each job named once where very many are named, with all of the tasks that any of them names. An array
// of ten thousand records would be gone through for each of its tasks else.
func MergeRefs(refs []Ref) []Ref {
	if len(refs) <= fewRefs {
		return refs
	}
	at, sets := map[part]int{}, [][]IDSet{}
	var out []Ref
	for _, r := range refs {
		k := part{r.Job, r.Part}
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			out, sets = append(out, Ref{Job: r.Job, Part: r.Part}), append(sets, nil)
		}
		sets[i] = append(sets[i], r.Tasks)
	}
	for i := range out {
		out[i].Tasks = tasksOf(sets[i])
	}
	return out
}

// tasksOf are the tasks in any of some sets; an empty one stands for all.
func tasksOf(sets []IDSet) IDSet {
	for _, s := range sets {
		if s.Empty() {
			return s
		}
	}
	return unionOf(sets)
}

// unionOf halves the list, so that a large set is copied a few times and not once for each other.
func unionOf(sets []IDSet) IDSet {
	if len(sets) == 1 {
		return sets[0]
	}
	half := len(sets) / 2
	return unionOf(sets[:half]).Union(unionOf(sets[half:]))
}
