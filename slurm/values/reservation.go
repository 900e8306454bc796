package values

import (
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// ReservedTRES is what TRES= or TRESPerNode= of a reservation asks for.
type ReservedTRES struct {
	Nodes    int // 0: it does not say
	Cores    []int
	Licenses string // NAME:COUNT,...; "" if it names none
	GPUs     []cluster.GRES
}

// ParseReservedTRES reads cpu=N,N,... and node=N, license/NAME=N, and gres/gpu=N and gres/gpu:TYPE=N. The complaint is
// in the words of scontrol; "" for none.
func ParseReservedTRES(text string, perNode bool) (r ReservedTRES, bad string) {
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ',' }) {
		if bad := r.add(word, perNode); bad != "" {
			return r, bad
		}
	}
	at := slices.IndexFunc(r.GPUs, func(g cluster.GRES) bool { return g.Type == "" })
	if at < 0 || len(r.GPUs) == 1 {
		return r, ""
	}
	return r, r.settleGPUs(at)
}

// add reads one word.
func (r *ReservedTRES) add(word string, perNode bool) (bad string) {
	name, value, valued := strings.Cut(word, "=")
	kind := strings.ToLower(name)
	_, err := strconv.Atoi(word)
	switch {
	case err == nil && len(r.Cores) > 0:
		return r.addCores(word)
	case strings.HasPrefix(kind, "gres/gpu"):
		return r.addGPUs(word)
	case !valued:
		return "invalid TRES '" + word + "'"
	case kind == "node":
		return r.setNodes(value)
	case kind == "cpu":
		return r.addCores(value)
	case strings.HasPrefix(kind, "license/") && !perNode:
		r.Licenses = strings.TrimPrefix(r.Licenses+","+name[len("license/"):]+":"+value, ",")
	default:
		return "TRES type '" + name + "' not supported with reservations"
	}
	return ""
}

// setNodes reads how many nodes there are to be.
func (r *ReservedTRES) setNodes(value string) (bad string) {
	n, err := strconv.Atoi(value)
	if err != nil || n <= 0 {
		return "Invalid TRES node count " + value
	}
	r.Nodes = n
	return ""
}

// addCores reads one number of cores.
func (r *ReservedTRES) addCores(value string) (bad string) {
	n, err := strconv.Atoi(value)
	if err != nil {
		return "invalid TRES cpu value '" + value + "'"
	}
	r.Cores = append(r.Cores, n)
	return ""
}

// addGPUs reads gres/gpu[:TYPE][=N]; a colon may stand for the equals sign, as in Slurm.
func (r *ReservedTRES) addGPUs(word string) (bad string) {
	_, count, counted := strings.Cut(word, "=")
	if _, err := strconv.Atoi(count); counted && err != nil {
		return "invalid TRES '" + word + "': " + strconv.Quote(count) + " is not a number of GPUs"
	}
	g, ok := gres(strings.Split(strings.Replace(word[len("gres/"):], "=", ":", 1), ":"))
	switch {
	case !ok || !strings.EqualFold(g.Name, "gpu"):
		return "TRES type '" + word + "' not supported with reservations"
	case g.Count <= 0:
		return "invalid TRES '" + word + "': reserve 1 GPU or more"
	case slices.ContainsFunc(r.GPUs, func(o cluster.GRES) bool { return o.Type == g.Type }):
		return "invalid TRES '" + word + "': its type is named twice"
	}
	g.Name = "gpu"
	r.GPUs = append(r.GPUs, g)
	return ""
}

// settleGPUs drops the number of GPUs of any type, which must be the sum of those by type.
func (r *ReservedTRES) settleGPUs(at int) (bad string) {
	total := r.GPUs[at].Count
	r.GPUs = slices.Delete(r.GPUs, at, at+1)
	sum := int64(0)
	for _, g := range r.GPUs {
		sum += g.Count
	}
	if total == sum {
		return ""
	}
	return "invalid TRES 'gres/gpu=" + strconv.FormatInt(total, 10) +
		"': it is not the sum of the GPUs that are asked for by type; leave it out"
}
