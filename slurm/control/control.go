package control

import (
	"bufio"
	"errors"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// control is one run of scontrol.
type control struct {
	sys              *front.Sys
	near             *front.Sys // this cluster's, once another one was named
	out              *bufio.Writer
	oneLine, details bool
	explains         bool // why a job waits
	quiet            bool
	ended            bool // exit or quit was read
	data             data.Ask
	all, future      bool
	conf             *api.ClusterResponse
	clusters         string
	times            string // SLURM_TIME_FORMAT
	fed              front.FedAsk
	owners           []uint32 // of the jobs that a name stands for; none: anyone
}

// Asked is what --json and --yaml say.
func (c *control) Asked() *data.Ask { return &c.data }

// complain prints a line on standard error and fails.
func (c *control) complain(lines ...string) int {
	_ = c.out.Flush()
	_, _ = c.sys.Stderr.Write([]byte(strings.Join(lines, "\n") + "\n"))
	return 1
}

func (c *control) view(now time.Time) *show.View {
	return &show.View{Sys: c.sys, Now: now, TimeFmt: c.times}
}

// stamp writes a time in the form that the caller wants, or none where there is no time.
func stamp(c *control, t time.Time, none string) string { return c.view(time.Now()).Stamp(t, none) }

// cluster asks for the configuration, once.
func (c *control) cluster() (*api.ClusterResponse, error) {
	if c.conf != nil {
		return c.conf, nil
	}
	r, err := front.Call(c.sys, api.ShowCluster, api.Empty{})
	if err == nil {
		c.conf = &r
	}
	return &r, err
}

// failed words the refusal of a command about a job.
func (c *control) failed(err error, id, what string) int {
	text, _ := front.ErrorText(err)
	if errors.Is(err, api.ErrUnreachable) || id == "" {
		return c.complain(what + ": " + text)
	}
	lines := []string{text + " for job " + id}
	if (front.IsKind(err, cluster.ErrJobID) || front.IsKind(err, cluster.ErrUser) || front.IsKind(err, cluster.ErrEnded)) && what == holdError {
		lines = append(lines, what+": "+text)
	}
	return c.complain(lines...)
}

// refs reads a list of jobs: ids with commas or blanks between, some components of a heterogeneous one (42+[0-2]),
// or names.
func (c *control) refs(args []string) (list []front.Target, words []string, bad string) {
	for _, a := range args {
		a = strings.TrimPrefix(strings.TrimPrefix(a, "jobid="), "JobId=")
		var own []string
		for _, w := range front.SplitOutside(a) {
			own = append(own, front.SplitParts(w)...)
		}
		for _, w := range own {
			if t, ok := front.ParseTarget(w); ok && t.Step == nil {
				list, words = append(list, t), append(words, w)
				continue
			}
			name := w
			if k, v, ok := strings.Cut(w, "="); ok && (strings.EqualFold(k, "jobname") || strings.EqualFold(k, "name")) {
				name = v
			}
			q := api.JobQuery{Names: []string{name}, Users: c.owners, Brief: true}
			resp, err := front.Call(c.sys, api.ListJobs, q)
			if err != nil || len(resp.Jobs) == 0 {
				return nil, nil, w
			}
			for _, j := range resp.Jobs {
				if j.Phase != cluster.Ended && !j.Follows() { // the leader stands for all
					r := show.NewRow(nil, j)
					list, words = append(list, front.Target{Ref: ownRef(j)}), append(words, r.ShownID())
				}
			}
		}
	}
	return list, words, ""
}

// ownRef names exactly one record: of an array's, only its tasks.
func ownRef(j *cluster.Job) cluster.Ref {
	ref := cluster.Ref{Job: j.ID}
	if j.ArrayID == j.ID {
		if ref.Tasks = j.Tasks; j.Task >= 0 {
			ref.Tasks = cluster.NewIDSet(j.Task)
		}
	}
	return ref
}

// each does one thing to every job of a list.
func (c *control) each(args []string, what string, f func(cluster.Ref) error) int {
	list, words, bad := c.refs(args)
	if bad != "" {
		return c.complain("Invalid job id specified for job "+bad, what+": Invalid job id specified")
	}
	code := 0
	for i, t := range list {
		if err := f(t.Ref); err != nil {
			code = c.failed(err, words[i], what)
		}
	}
	return code
}

// verb is one command of scontrol. least is how much of the name must be written.
type verb struct {
	name  string
	least int
	args  int // how many words it needs
	run   func(c *control, args []string) int
}

// nodesHere are the nodes that this machine is.
func (c *control) nodesHere() (out []cluster.NodeName) {
	host := ""
	if c.sys.Hostname != nil {
		host, _ = c.sys.Hostname()
	}
	resp, err := front.Call(c.sys, api.ListNodes, api.NodeQuery{})
	if err != nil {
		return nil
	}
	for _, n := range resp.Nodes {
		if n.Inventory.Host == host && !n.Inventory.Hollow {
			out = append(out, n.Name)
		}
	}
	return out
}

// toldWell prints a line on standard error where all is well.
func toldWell(c *control, line string) int {
	_ = c.complain(line)
	return 0
}

// The words of refusals.
const (
	updateError     = "slurm_update error"
	createPartError = "Error creating the partition"
	badPartition    = ": Invalid partition name specified"
	noError         = ": No error" // what is said of a word that was not understood
	noChanges       = "No changes specified"
	misread         = "scontrol: error: Invalid input: "
	aborted         = "  Request aborted"
)

const holdError = "slurm_suspend error"
