package env

import (
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// list collects NAME=value pairs.
type list []string

func (l *list) set(name, value string) { *l = append(*l, name+"="+value) }

func (l *list) num(name string, n int) { l.set(name, strconv.Itoa(n)) }

// text sets a variable that is not there if it would be empty.
func (l *list) text(name, value string) {
	if value != "" {
		l.set(name, value)
	}
}

// countsTasks reports whether a request says how many tasks it is for.
func countsTasks(s *cluster.JobSpec) bool {
	return s.Tasks > 0 || s.TasksPerNode > 0 || s.TasksPerGPU > 0
}

func jobTasks(j *cluster.Job) (n int) {
	if j.Spec.Tasks > 0 {
		return j.Spec.Tasks
	}
	for _, sh := range j.Alloc.Shares {
		n += sh.Tasks
	}
	return n
}

// variable is the value of a variable in srun's own environment.
func variable(env cluster.BlobText, name string) string {
	for v := range strings.SplitSeq(string(env), "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

func commas(s cluster.IDSet) string {
	var out []int
	for i := range s.All() {
		out = append(out, i)
	}
	return joinInts(out)
}

func joinInts(list []int) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

func nodeList(shares []cluster.Share) string {
	names := make([]cluster.NodeName, len(shares))
	for i, sh := range shares {
		names[i] = sh.Node
	}
	return listNodes(names)
}

func listNodes(nodes []cluster.NodeName) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n)
	}
	return hostlist.Compress(names)
}

// PerNode writes a count per node the way Slurm does: "2(x2),1".
func PerNode(shares []cluster.Share, count func(cluster.Share) int) string {
	var out []string
	for i := 0; i < len(shares); {
		n, k := count(shares[i]), 1
		for i+k < len(shares) && count(shares[i+k]) == n {
			k++
		}
		t := strconv.Itoa(n)
		if k > 1 {
			t += "(x" + strconv.Itoa(k) + ")"
		}
		out = append(out, t)
		i += k
	}
	return strings.Join(out, ",")
}
