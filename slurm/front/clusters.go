package front

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// -M names clusters: this one, and those that are peers of it. A command is run once for each, with a Sys whose calls
// go there through the local daemon; what submits chooses one. A peer that runs Slurm has its own command called.

// peerTime bounds a call of a peer that is not one that waits: who is away costs no more.
const peerTime = 10 * time.Second

// singly are the commands that Slurm lets act on one cluster alone.
var singly = []string{"scontrol", "sdiag", "sprio", "sshare"}

// OwnCluster has a command act on the clusters that -M or its variable names. A code of 0 or more ends the command:
// it was run for each of them. Else it goes on, with the cluster's name where one was named.
func (s *Sys) OwnCluster(names string) (own string, code int) {
	if s.cluster != "" || names == "" {
		return s.cluster, -1
	}
	list, own, code := s.clusters(names)
	switch {
	case code >= 0:
		return "", code
	case len(list) == 1 && list[0] == own:
		return own, -1
	case s.Again == nil:
		return "", s.Fail("%s cannot be asked from here", names)
	case len(list) > 1 && slices.Contains(singly, s.Prog):
		return "", s.Fail("Only one cluster can be used at a time with %s", s.Prog)
	}
	code = 0
	for i, name := range list {
		one := s.at(name, own)
		one.later = i > 0
		if p := (slurmCaller{s}).slurmNamed(name); p != nil {
			code = max(code, slurmCaller{one}.showSlurm(p))
			continue
		}
		code = max(code, s.Again(one))
	}
	return "", code
}

// PickCluster chooses, of the clusters that -M or its variable names, the one where a job starts first, and sends
// all calls from now on there. A code of 0 or more ends the command: at a cluster that runs Slurm, its own command has
// submitted the job. Else it goes on, with the cluster's name where one was named.
func (s *Sys) PickCluster(names string, job *Entry) (own string, code int) {
	if names == "" {
		return "", -1
	}
	list, own, code := s.clusters(names)
	if code >= 0 {
		return "", code
	}
	best, why := list[0], error(nil)
	if len(list) > 1 {
		best, why = slurmCaller{s}.choose(list, own, job)
	}
	if best == "" {
		text, _ := ErrorText(why)
		return "", s.Fail("None of the clusters %s takes the job: %s", strings.Join(list, ","), text)
	}
	if p := (slurmCaller{s}).slurmNamed(best); p != nil {
		return "", slurmCaller{s}.submitSlurm(p, job)
	}
	one := s.at(best, own)
	s.Dial, s.cluster, s.remote, s.refusal = one.Dial, best, one.remote, one.refusal
	return best, -1
}

// clusters are those that are named, and this one's name. A code of 0 or more ends the command.
func (s *Sys) clusters(names string) (list []string, own string, code int) {
	s.foreign.peers = nil
	resp, err := Call(s, api.ListPeers, api.Empty{})
	if e := (*api.Error)(nil); errors.As(err, &e) && e.Code == cluster.NotFound { // a daemon that knows no peers yet
		var shown api.ClusterResponse
		shown, err = Call(s, api.ShowCluster, api.Empty{})
		resp.Own = shown.Config.ClusterName
	}
	if err != nil {
		text, _ := ErrorText(err)
		return nil, "", s.Fail("%s", text)
	}
	known, slurms := []string{resp.Own}, []string(nil)
	for _, p := range resp.Peers {
		switch {
		case p.Slurm != nil:
			slurms, s.foreign.peers = append(slurms, p.Name), append(s.foreign.peers, p)
		case p.Asked:
			known = append(known, p.Name)
		}
	}
	for _, n := range SplitList(names) {
		if strings.EqualFold(n, "all") {
			slices.Sort(known)
			return append(known, slurms...), resp.Own, -1
		}
		all := slices.Concat(known, slurms)
		i := slices.IndexFunc(all, func(k string) bool { return strings.EqualFold(k, n) })
		if i < 0 {
			s.Say("error: No cluster '%s' known by database.", n)
			return nil, "", s.Fail("'%s' can't be reached now, or it is an invalid entry for --cluster.  "+
				"Use 'sacctmgr list clusters' to see available clusters.", names)
		}
		if !slices.Contains(list, all[i]) {
			list = append(list, all[i])
		}
	}
	return list, resp.Own, -1
}

// To is the same command at the one cluster of that name. A code of 0 or more: there is none, and it was said.
func (s *Sys) To(name string) (there *Sys, code int) {
	list, own, code := s.clusters(name)
	if code >= 0 {
		return nil, code
	}
	if (slurmCaller{s}).slurmNamed(list[0]) != nil {
		return nil, s.Fail("cluster %s runs Slurm: use %s -M %s", list[0], s.Prog, list[0])
	}
	return s.at(list[0], own), -1
}

// at is the same command at another cluster.
func (s *Sys) at(name, own string) *Sys {
	s.sharedWarnings()
	one := *s
	if one.cluster = name; name == own {
		return &one
	}
	one.remote, one.refusal = true, new(string)
	near := s.Dial
	one.Dial = func(ctx context.Context) (api.Conn, error) {
		c := &api.Client{Dial: near}
		conn, err := api.Tunnel(ctx, c, api.CallPeer, api.PeerProtocol, api.PeerQuery{Cluster: name})
		if err != nil {
			return nil, err
		}
		_ = conn.SetDeadline(time.Now().Add(peerTime))
		line, err := firstLine(conn)
		if err == nil && line != api.PeerReached {
			*one.refusal = line
			err = errors.New(line)
		}
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, conn.SetDeadline(time.Time{})
	}
	return &one
}

// maxFirstLine bounds the first line of a tunnel.
const maxFirstLine = 8 << 10

// firstLine reads a line and nothing behind it.
func firstLine(r io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < maxFirstLine {
		if _, err := io.ReadFull(r, one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
	return "", errors.New("the answer of the other cluster is too long")
}

// Remote reports whether the calls go to another cluster.
func (s *Sys) Remote() bool { return s.remote }

// Named is the cluster that -M has chosen, "" if it has not.
func (s *Sys) Named() string { return s.cluster }

// Once reports whether the command is run for one cluster of several, and so not again and again by itself.
func (s *Sys) Once() bool { return s.cluster != "" }

// ClusterHead is the line above what is of a cluster that was named.
func (s *Sys) ClusterHead(own string) string {
	if s.later {
		return "\nCLUSTER: " + own + "\n"
	}
	return "CLUSTER: " + own + "\n"
}

// waits reports whether a call may take as long as its request says.
func waits(path string) bool {
	return path == api.WaitJob.Path || path == api.WaitStep.Path || path == api.CreateStep.Path
}

// patience is the context of a call.
func (s *Sys) patience(path string) (context.Context, context.CancelFunc) {
	if s.remote && !waits(path) {
		return context.WithTimeout(context.Background(), peerTime)
	}
	return context.Background(), func() {}
}

// WhyUnanswered says why the last call had no answer.
func (s *Sys) WhyUnanswered() string {
	if s.remote && *s.refusal != "" {
		return "cluster " + s.cluster + ": " + *s.refusal
	}
	if s.remote {
		return "no server of cluster " + s.cluster + " answers: muster peer ls shows where it is asked"
	}
	if s.token {
		return s.whyNoToken()
	}
	return NoDaemon(s.Getenv)
}
