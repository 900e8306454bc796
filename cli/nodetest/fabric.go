package nodetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/burnin/bandwidth"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

const fabricUsage = `usage: muster burnin --fabric [--seconds N] [--streams N] [--rails NAME,…] [--tool tcp|ib_write_bw]
                            [--min GBITS] [--wait MINUTES] [--no-record] [--json|--names] NODES|--job`

// Limits of a test of the network.
const (
	fabricRest  = 20 * time.Second // until the other nodes answer, once one has
	fabricLimit = 30 * time.Minute // of the whole test, without the wait for nodes
	fabricPeers = 2 * time.Second  // until its processes have ended by themselves
	fabricEnd   = 10 * time.Second // until its job has ended
)

// fabricOptions are the words of muster burnin --fabric.
type fabricOptions struct {
	bandwidth.Options
	json, names bool
	noRecord    bool
	inJob       bool // test the nodes of the job in which this runs
	nodes       string
}

// runFabric measures the bandwidth between nodes, and shows which node, path or rail is slow. It returns the exit code:
// 1 if one of the nodes has not passed.
func runFabric(s *front.Sys, argv []string) int {
	o, code := parseFabric(s, argv)
	if code != 0 {
		return code
	}
	left, words, code := o.prepare(s)
	if code != 0 {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	begun := time.Now()
	r, err := fabricTest(ctx, s, o, words)
	if ctx.Err() != nil {
		fmt.Fprintf(s.Stderr, "%s: ended before the end of the test: nothing was recorded\n", s.Prog)
		return 130
	}
	if err != nil {
		return s.Fail("%v", err)
	}
	if text := r.Blocked(); text != "" {
		return s.Fail("no node could send to another one: %s; check that TCP connections between the nodes are allowed",
			cluster.PlainLine(text))
	}
	v := fabricView{
		Report: r,
		nodes:  o.Nodes,
		left:   left,
		took:   time.Since(begun),
	}
	v.judge()
	note := ""
	if !o.noRecord {
		note = recordFabric(s, &v)
	}
	return v.print(s, o, note)
}

// prepare finds the nodes, and the words of srun for a task on each of them.
func (o *fabricOptions) prepare(s *front.Sys) (left map[string]string, words []string, code int) {
	if !o.inJob {
		if code := mayTest(s); code != 0 {
			return nil, nil, code
		}
	}
	left, code = o.find(s)
	if code != 0 {
		return nil, nil, code
	}
	if o.inJob {
		return left, o.step(s), 0
	}
	partition, err := fabricPartition(s, o.Nodes)
	if err != nil {
		return nil, nil, s.Fail("%v", err)
	}
	return left, fabricJob(o.Nodes, partition), 0
}

// parseFabric reads the words after --fabric.
func parseFabric(s *front.Sys, argv []string) (*fabricOptions, int) {
	seconds, streams, minimum, wait := 1.0, 4.0, 0.0, 10.0
	o := &fabricOptions{}
	w := newWords()
	w.BoolVar(&o.json, "json", false, "")
	w.BoolVar(&o.names, "names", false, "")
	w.BoolVar(&o.noRecord, "no-record", false, "")
	w.BoolVar(&o.inJob, "job", false, "")
	for _, n := range []struct {
		name        string
		to          *float64
		least, most float64
	}{
		{"seconds", &seconds, 0.1, 60},
		{"streams", &streams, 1, 64},
		{"min", &minimum, 0, 1e6},
		{"wait", &wait, 0.1, 60 * 24 * 7},
	} {
		w.value(n.name, func(text string) error {
			f, err := strconv.ParseFloat(text, 64)
			*n.to = f
			if err != nil || !(f >= n.least && f <= n.most) {
				return fmt.Errorf("want a number from %v to %v", n.least, n.most)
			}
			return nil
		})
	}
	w.value("rails", func(text string) error {
		o.Rails = strings.Split(text, ",")
		names := slices.Compact(slices.Sorted(slices.Values(o.Rails)))
		if names[0] == "" || len(names) < len(o.Rails) {
			return errors.New("want different names of network interfaces, or of ports (mlx5_0:1)")
		}
		return nil
	})
	w.value("tool", func(text string) error {
		o.Tool = text
		if text != bandwidth.TCP && text != bandwidth.IB {
			return errors.New("unknown tool; want tcp or ib_write_bw")
		}
		return nil
	})
	if code := w.parse(s, argv, fabricUsage); code != 0 {
		return nil, code
	}
	nodes := w.Args()
	if o.inJob {
		o.noRecord = true // what a user's test finds counts for nothing
		nodes = append(nodes, s.Getenv("SLURM_JOB_NODELIST"))
	}
	o.nodes = strings.Join(nodes, "")
	if len(nodes) != 1 || o.nodes == "" || o.json && o.names {
		fmt.Fprintln(s.Stderr, fabricUsage)
		return nil, 2
	}
	if streams != math.Trunc(streams) {
		return nil, s.Fail("--streams %v: want a whole number", streams)
	}
	o.Time = time.Duration(seconds * float64(time.Second))
	o.First = time.Duration(wait * float64(time.Minute))
	o.Rest = fabricRest
	o.Streams = int(streams)
	o.Min = minimum
	return o, 0
}

// find looks up the nodes that are named. It leaves out those that can run no job now, with the reason.
func (o *fabricOptions) find(s *front.Sys) (left map[string]string, code int) {
	nodes, code := namedNodes(s, o.nodes)
	if code != 0 {
		return nil, code
	}
	left = map[string]string{}
	for i := range nodes {
		n := &nodes[i]
		if n.Inventory.External || !inService(n) {
			left[string(n.Name)] = "it is " + show.StateWord(show.NodeState(n), true)
			continue
		}
		host, _, _ := net.SplitHostPort(n.Inventory.Addr) // "": the node is this process
		o.Nodes = append(o.Nodes, string(n.Name))
		o.Addrs = append(o.Addrs, host)
	}
	if len(o.Nodes) < 2 {
		return nil, s.Fail("a test of the network needs two nodes that can run jobs, and %s has %d; see sinfo -N",
			o.nodes, len(o.Nodes))
	}
	return left, 0
}

// fabricPartition finds a partition that has all nodes.
func fabricPartition(s *front.Sys, names []string) (*cluster.Partition, error) {
	info, err := front.Call(s, api.ShowCluster, api.Empty{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return nil, errors.New(text)
	}
	var nodes []cluster.NodeName
	for _, n := range names {
		nodes = append(nodes, cluster.NodeName(n))
	}
	if p := partitionOf(info.Config.Partitions, nodes...); p != nil {
		return p, nil
	}
	return nil, errors.New("no partition that is up has all of these nodes: " +
		"test those of each partition by themselves")
}

// fabricTask is the words of srun for one task on each node.
func fabricTask(nodes []string) []string {
	return []string{
		"--nodelist=" + strings.Join(nodes, ","),
		"--nodes=" + strconv.Itoa(len(nodes)),
		"--ntasks=" + strconv.Itoa(len(nodes)),
		"--ntasks-per-node=1",
		"--mpi=none",
		"--chdir=/",
		"--export=NONE",
		"--label",
		"--no-kill",
		"--kill-on-bad-exit=0",
	}
}

// step is the words of srun for a step that shares the job's nodes with its other steps.
func (o *fabricOptions) step(s *front.Sys) []string {
	return append(fabricTask(o.Nodes), "--jobid="+s.Getenv("SLURM_JOB_ID"), "--job-name=burnin-fabric", "--overlap")
}

// fabricJob is the words of srun for a job: the whole nodes, after all other jobs in the queue.
func fabricJob(nodes []string, partition *cluster.Partition) []string {
	limit := min(burninTime(partition), fabricLimit)
	return append(fabricTask(nodes),
		"--job-name=burnin-fabric",
		"--partition="+partition.Name,
		"--exclusive",
		"--mem=0",
		"--priority=1",
		"--time="+minutes(limit),
	)
}

// fabricTest runs the test as a job. It has ended, or has been told to end, when this returns.
func fabricTest(ctx context.Context, s *front.Sys, o *fabricOptions, words []string) (*bandwidth.Report, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.First+fabricLimit)
	defer cancel()
	peer := "PATH=" + shellWord(path.Dir(self)) + `:"$PATH" exec muster internal burnin-fabric`
	cmd := exec.Command(self, slices.Concat([]string{"srun"}, words, []string{"sh", "-c", peer})...)
	cmd.Env = slices.DeleteFunc(slices.Clone(s.Environ), ofJobs)
	cmd.Stderr = s.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches it by ctx alone
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	var job cluster.JobID
	o.Began = func(id uint64) { job = cluster.JobID(id) }
	o.Say = func(format string, args ...any) { fmt.Fprintf(s.Stderr, s.Prog+": "+format+"\n", args...) }
	r, err := bandwidth.Run(ctx, out, in, o.Options)
	in.Close()
	end := func(after time.Duration, sig os.Signal) *time.Timer {
		return time.AfterFunc(after, func() { _ = cmd.Process.Signal(sig) }) // it may have ended
	}
	defer end(fabricPeers, syscall.SIGTERM).Stop()
	kill := end(fabricEnd, os.Kill)
	_, _ = io.Copy(io.Discard, out) // Wait closes it
	_ = cmd.Wait()                  // peers tell what matters
	if !kill.Stop() && job != 0 && !o.inJob {
		_, _ = front.Call(s, api.CancelJob, cluster.Cancel{Ref: cluster.Ref{Job: job}}) // else its time limit ends it
	}
	return r, err
}

// ofJobs reports whether a variable would change what srun does.
func ofJobs(variable string) bool {
	prefixes := []string{
		"SLURM_",
		"SBATCH_",
		"SALLOC_",
		"SRUN_",
		"PMI",
	}
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return strings.HasPrefix(variable, p)
	})
}
