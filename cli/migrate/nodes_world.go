package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dev.muster/adopt/nodes"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"github.com/urfave/cli/v2"
)

// Bounds of the commands that stop and start daemons of nodes.
const (
	leaveTime = 2 * time.Minute
	joinTime  = 10 * time.Minute
	moveNote  = "moving to muster"
	backNote  = "returning to Slurm"
)

// nodeWorld acts on nodes by the commands of Slurm, of the site and of muster.
type nodeWorld struct {
	ctx     context.Context
	out     io.Writer
	client  *api.Client
	peers   func() (map[string]*cluster.SlurmPeer, error)
	seconds int // of the burn-in
	muster  string
}

func newNodeWorld(c *cli.Context) *nodeWorld {
	return &nodeWorld{
		ctx:     c.Context,
		out:     front.PlainText(c.App.Writer),
		client:  &api.Client{Dial: front.DialLocal},
		peers:   func() (map[string]*cluster.SlurmPeer, error) { return slurmPeers(c) },
		seconds: c.Int("burnin"),
		muster:  ownProgram(),
	}
}

// check refuses moves from clusters that are not peers.
func (w *nodeWorld) check(list []*nodes.Move) error {
	peers, err := w.peers()
	if err != nil {
		return err
	}
	for _, m := range list {
		if peers[m.From] == nil && !m.Done() {
			return fmt.Errorf("node %s: no Slurm %s is a peer; muster peer add --slurm %s adds it",
				m.Node, m.From, m.From)
		}
	}
	return nil
}

// slurm calls a command of the Slurm of a peer.
func (w *nodeWorld) slurm(name string, words ...string) (string, error) {
	peers, err := w.peers()
	if err != nil {
		return "", err
	}
	at := peers[name]
	if at == nil {
		return "", fmt.Errorf("no Slurm %s is a peer; muster peer add --slurm %s adds it", name, name)
	}
	return askSlurm(w.ctx, at, words...)
}

// askSlurm calls a command of a Slurm.
func askSlurm(ctx context.Context, at *cluster.SlurmPeer, words ...string) (string, error) {
	t := slurmTools{ctx: ctx}
	words[0] = at.Bin + "/" + words[0]
	env := []string{"SLURM_TIME_FORMAT=standard"}
	if at.Conf != "" {
		env = append(env, "SLURM_CONF="+at.Conf)
	}
	if at.Host != "" {
		return t.run(bySSH(at.Host, front.RemoteLine("", env, words))...)
	}
	file, err := front.FindProgram(words[0], os.Getuid() == 0)
	if err != nil {
		return "", err
	}
	words[0], t.env = file, env
	return t.run(words...)
}

// bySSH is the command that runs a line on a host.
func bySSH(host, line string) []string {
	return []string{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", host, "--", line}
}

// InSlurm asks Slurm for the node and the jobs there.
func (w *nodeWorld) InSlurm(m *nodes.Move) (nodes.State, error) {
	line, err := w.slurm(m.From, "scontrol", "-a", "-o", "show", "node", m.Node)
	if err != nil {
		return nodes.State{}, err
	}
	jobs, err := w.slurm(m.From, "squeue", "-h", "-a", "-w", m.Node, "-o", "%i")
	if err != nil {
		return nodes.State{}, err
	}
	return nodes.ReadSlurm(m.Node, line, jobs)
}

// DrainSlurm drains the node in Slurm.
func (w *nodeWorld) DrainSlurm(m *nodes.Move) error {
	_, err := w.slurm(m.From, "scontrol", "update", "nodename="+m.Node, "state=drain", "reason="+moveNote)
	return err
}

// ResumeSlurm has Slurm start jobs on the node again.
func (w *nodeWorld) ResumeSlurm(m *nodes.Move) error {
	_, err := w.slurm(m.From, "scontrol", "update", "nodename="+m.Node, "state=resume")
	return err
}

// InMuster asks muster for the node and the jobs there.
func (w *nodeWorld) InMuster(m *nodes.Move) (s nodes.State, err error) {
	names := []cluster.NodeName{cluster.NodeName(m.Node)}
	r, err := api.Call(w.ctx, w.client, api.ListNodes, api.NodeQuery{Names: names})
	if err != nil || len(r.Nodes) != 1 {
		return s, err
	}
	q := api.JobQuery{Nodes: names, Brief: true,
		Phases: []cluster.Phase{cluster.Starting, cluster.Running, cluster.Suspended, cluster.Ending}}
	jobs, err := api.Call(w.ctx, w.client, api.ListJobs, q)
	if err != nil {
		return s, err
	}
	n := &r.Nodes[0]
	return nodes.State{Known: true, Up: n.Up && !n.Down, Drained: n.Drain, Busy: len(jobs.Jobs) > 0 || n.Ending}, nil
}

// DrainMuster drains the node in muster. One that muster does not know yet is declared, so that it is drained when it
// registers.
func (w *nodeWorld) DrainMuster(m *nodes.Move) error {
	s, err := w.InMuster(m)
	if err != nil {
		return err
	}
	name := cluster.NodeName(m.Node)
	if !s.Known {
		made := cluster.NodeCreate{Nodes: []cluster.Node{{Name: name, Expected: cluster.ExpectedFuture}}}
		made.Nodes[0].Inventory.CPUs = 1
		if _, err := api.Call(w.ctx, w.client, api.CreateNodes, made); err != nil {
			return err
		}
	}
	if s.Drained {
		return nil
	}
	note := moveNote
	if m.Back() {
		note = backNote
	}
	set := cluster.NodeSet{Nodes: []cluster.NodeName{name}, Action: cluster.NodeDrain, Reason: &note}
	_, err = api.Call(w.ctx, w.client, api.SetNodes, set)
	return err
}

// ResumeMuster has muster start jobs on the node.
func (w *nodeWorld) ResumeMuster(m *nodes.Move) error {
	set := cluster.NodeSet{Nodes: []cluster.NodeName{cluster.NodeName(m.Node)}, Action: cluster.NodeResume}
	_, err := api.Call(w.ctx, w.client, api.SetNodes, set)
	return err
}

// own calls one of muster's own commands.
func (w *nodeWorld) own(env []string, words ...string) (string, error) {
	t := slurmTools{ctx: w.ctx, env: env}
	return t.run(append([]string{w.muster}, words...)...)
}

func reservationOf(m *nodes.Move) string { return "adopt-" + m.Node }

// ReserveMuster keeps all jobs but root's from the node.
func (w *nodeWorld) ReserveMuster(m *nodes.Move) error {
	name := reservationOf(m)
	if _, err := w.own(nil, "scontrol", "show", "reservation", name); err == nil {
		return nil
	}
	_, err := w.own(nil, "scontrol", "create", "reservation", "reservationname="+name, "nodes="+m.Node, "users=root",
		"starttime=now", "duration=infinite", "flags=maint,ignore_jobs")
	return err
}

// ReleaseMuster ends the reservation, if there is one.
func (w *nodeWorld) ReleaseMuster(m *nodes.Move) error {
	all, err := w.own(nil, "scontrol", "-o", "show", "reservation")
	if err != nil || !strings.Contains(all, "ReservationName="+reservationOf(m)+" ") {
		return err
	}
	_, err = w.own(nil, "scontrol", "delete", "reservation", reservationOf(m))
	return err
}

// StartTest submits the burn-in, in the reservation.
func (w *nodeWorld) StartTest(m *nodes.Move) (uint32, error) {
	said, err := w.own([]string{"SBATCH_RESERVATION=" + reservationOf(m)},
		"burnin", "--seconds", strconv.Itoa(w.seconds), m.Node)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(said, " is tested by job ")
	id, _, _ := strings.Cut(strings.TrimSpace(rest), ",")
	job, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("muster burnin: the answer has no job: %.80q", said)
	}
	return uint32(job), nil
}

// TestEnd asks whether the burn-in is over. One that is not known any more has not passed.
func (w *nodeWorld) TestEnd(m *nodes.Move) (over, passed bool, err error) {
	r, err := api.Call(w.ctx, w.client, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: cluster.JobID(m.Test)}}})
	if err != nil {
		return false, false, err
	}
	if len(r.Jobs) != 1 {
		return true, false, nil
	}
	if j := r.Jobs[0]; j.Phase != cluster.Ended || j.Outcome != cluster.Completed {
		return j.Phase == cluster.Ended, false, nil
	}
	s, err := w.InMuster(m) // a finding drains it
	return true, s.Up && !s.Drained, err
}

// uninstall ends muster on a node and puts back the commands and units of Slurm that the installer replaced.
const uninstall = "if command -v muster >/dev/null; then muster install --uninstall; fi"

// RunLeave stops the daemon of the cluster that the node leaves.
func (w *nodeWorld) RunLeave(m *nodes.Move) error {
	usual := "systemctl disable --now slurmd"
	if m.Back() {
		usual = uninstall
	}
	return w.onNode(m, m.Leave, usual, leaveTime)
}

// RunJoin starts the daemon of the cluster that the node joins.
func (w *nodeWorld) RunJoin(m *nodes.Move) error {
	if m.Join != "" || m.Back() {
		return w.onNode(m, m.Join, "systemctl enable --now slurmd", joinTime)
	}
	line, err := w.own(nil, "token", "create", "--install", "--role", "client", "--uses", "1", "--expires", "1h")
	if err != nil {
		return err
	}
	t := slurmTools{ctx: w.ctx, timeout: joinTime} // by its input: arguments are for all to see
	t.in = strings.TrimSpace(line) + " --node " + front.ShellWord(m.Node) + " --replace-slurm\n"
	_, err = t.run(bySSH(m.Node, "sh")...)
	return err
}

// onNode runs the command of the site, or the usual one over ssh.
func (w *nodeWorld) onNode(m *nodes.Move, command, usual string, limit time.Duration) error {
	t := slurmTools{ctx: w.ctx, timeout: limit, env: []string{"NODE=" + m.Node}}
	words := []string{"sh", "-c", command}
	if command == "" {
		words = bySSH(m.Node, usual)
	}
	if _, err := t.run(words...); err != nil {
		return errors.Join(err, errors.New("the node stays drained in both; run this again once the command works"))
	}
	return nil
}

// slurmPeers are the peers that run Slurm.
func slurmPeers(c *cli.Context) (map[string]*cluster.SlurmPeer, error) {
	r, err := api.Call(c.Context, &api.Client{Dial: front.DialLocal}, api.ListPeers, api.Empty{})
	if err != nil {
		return nil, err
	}
	out := map[string]*cluster.SlurmPeer{}
	for _, p := range r.Peers {
		if p.Slurm != nil {
			out[p.Name] = p.Slurm
		}
	}
	return out, nil
}

// ownProgram is the path of muster.
func ownProgram() string {
	file, err := os.Executable()
	if err != nil {
		return "muster"
	}
	return filepath.Clean(file)
}
