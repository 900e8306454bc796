package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Calls about a job's steps are answered by the client of the job's first node. Where they arrive on
// another host (srun on a login node, or on a server) they are carried there, with an assertion.

// leadAge is how long the place of a job's first node is believed.
const leadAge = 5 * time.Second

// stepCall reports whether a path is answered by a job's first node.
func stepCall(path string) bool { return strings.HasPrefix(path, "/v1/steps/") }

// tailCall reports whether a path is answered for jobs that have ended, too.
func tailCall(path string) bool { return path == api.TailOutput.Path }

// nodeCall reports whether a path is answered by the node that is named.
func nodeCall(path string) bool {
	return tailCall(path) || path == api.ForwardX11 || path == api.ShowStacks.Path
}

// relay finds the first nodes of jobs.
type relay struct {
	// local reports whether a job is led by this process.
	local func(cluster.JobID) bool
	near  *api.Client // this process's own socket
	self  string      // where this process listens
	nodes *peers

	mu    sync.Mutex
	known map[lead]place
}

// lead is a job, and the node of it that answers: "" is its first.
type lead struct {
	job  cluster.JobID
	node cluster.NodeName
}

type place struct {
	addr string
	at   time.Time
}

// String is the node in words.
func (l lead) String() string {
	return cmp.Or(string(l.node), fmt.Sprintf("the first node of job %d", l.job))
}

// leadOf reads which job a request about steps is for, and which of its nodes.
func leadOf(path string, body []byte) (l lead) {
	if nodeCall(path) {
		var named struct {
			Job  cluster.JobID    `json:"job"`
			Node cluster.NodeName `json:"node"`
		}
		if wire.Unmarshal(body, &named) != nil {
			return l
		}
		return lead{named.Job, named.Node}
	}
	var q struct {
		Job cluster.JobID  `json:"job"`
		ID  cluster.StepID `json:"id"`
	}
	if wire.Unmarshal(body, &q) != nil {
		return l
	}
	return lead{job: max(q.Job, q.ID.Job)}
}

// to is the client of the job's first node, or of the one that is named, nil if it is this process. Where it was is
// found for past jobs only if asked for.
func (r *relay) to(ctx context.Context, id lead, past bool) (*api.Client, error) {
	if r == nil || id.job == 0 || id.node == "" && r.local(id.job) {
		return nil, nil
	}
	r.mu.Lock()
	p, ok := r.known[id]
	r.mu.Unlock()
	if !ok || time.Since(p.at) > leadAge {
		addr, err := r.find(ctx, id, past)
		if err != nil {
			return nil, cluster.Errorf(cluster.Unavailable, cluster.ErrAway,
				"the first node of job %d could not be found: %v", id.job, err)
		}
		if addr == "" {
			return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d runs nowhere now", id.job)
		}
		p = place{addr, time.Now()}
		r.mu.Lock()
		for old, q := range r.known {
			if time.Since(q.at) > leadAge {
				delete(r.known, old)
			}
		}
		r.known[id] = p
		r.mu.Unlock()
	}
	if p.addr == r.self { // its client has just started and does not know its jobs yet
		return nil, nil
	}
	return r.nodes.at(p.addr), nil
}

func (r *relay) forgets(id lead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, id)
}

func (r *relay) find(ctx context.Context, id lead, past bool) (string, error) {
	jobs, err := r.jobs(ctx, cluster.Ref{Job: id.job}, past)
	if err != nil {
		return "", err
	}
	for _, j := range jobs {
		if j.Het != nil && j.ID != id.job || j.Phase == cluster.Ended && !past {
			continue
		}
		if j.Alloc == nil || len(j.Alloc.Shares) == 0 {
			continue
		}
		first := cmp.Or(id.node, j.Alloc.Shares[0].Node)
		nodes, err := api.Call(ctx, r.near, api.ListNodes, api.NodeQuery{Names: []cluster.NodeName{first}})
		if err != nil || len(nodes.Nodes) == 0 {
			return "", err
		}
		return nodes.Nodes[0].Inventory.Addr, nil
	}
	return "", nil
}

// jobs are the records of a job, of history if it is asked for and the queue has none.
func (r *relay) jobs(ctx context.Context, ref cluster.Ref, past bool) ([]*cluster.Job, error) {
	now, err := api.Call(ctx, r.near, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{ref}})
	if absent := api.AsError(err); err != nil && absent.Kind != cluster.ErrJobID {
		return nil, err
	}
	if !past || len(now.Jobs) > 0 {
		return now.Jobs, err
	}
	then, err := api.Call(ctx, r.near, api.ListHistory, api.HistoryQuery{Refs: []cluster.Ref{ref}})
	if err != nil {
		return nil, err
	}
	var list []*cluster.Job
	for _, rec := range then.Records {
		list = append(list, rec.Job)
	}
	return list, nil
}

// relayed carries a call about steps to the job's first node. It reports false if this process has
// to answer.
func (c *call) relayed() bool {
	if c.gateway == nil || c.from.Member != "" || !stepCall(c.r.URL.Path) {
		return false
	}
	id := leadOf(c.r.URL.Path, c.body)
	to, err := c.gateway.relay.to(c.r.Context(), id, tailCall(c.r.URL.Path))
	if err != nil && !c.known {
		c.fail(c.w, c.r, err)
		return true
	}
	if to == nil {
		return false
	}
	vouch, err := c.gateway.vouchFor(c)
	if err != nil {
		c.fail(c.w, c.r, err)
		return true
	}
	if protocol := c.r.Header.Get("Upgrade"); protocol != "" {
		c.relayTunnel(id, to, protocol, vouch)
		return true
	}
	reply, err := to.Forward(c.r.Context(), api.Request{
		Method: c.r.Method, Path: c.r.URL.Path, Vouch: vouch, Body: c.body,
	})
	if err != nil {
		c.fail(c.w, c.r, c.away(id, err))
		return true
	}
	c.reply(reply)
	return true
}

// away is the error of a call that did not reach the job's first node: its daemon may come back.
func (c *call) away(id lead, err error) error {
	if !errors.Is(err, api.ErrUnreachable) {
		return err
	}
	c.gateway.relay.forgets(id)
	return cluster.Errorf(cluster.Unavailable, cluster.ErrAway, "%s does not answer: %v", id, err)
}

func (c *call) relayTunnel(id lead, to *api.Client, protocol, vouch string) {
	far, err := to.ForwardTunnel(c.ctx, c.r.URL.Path, protocol, vouch, c.body)
	if err != nil {
		c.fail(c.w, c.r, c.away(id, err))
		return
	}
	conn, err := upgrade(c.w, protocol)
	if err != nil {
		far.Close()
		c.fail(c.w, c.r, err)
		return
	}
	caller := &byeReader{Reader: conn.r}
	api.Splice(c.ctx, &bufferedConn{conn.Conn, caller}, far)
	c.srunEnded(caller)
}

// upgrade takes a call's connection over for a tunnel, and tells the caller that it is one.
func upgrade(w http.ResponseWriter, protocol string) (*bufferedConn, error) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		conn.Close()
		return nil, err
	}
	return &bufferedConn{conn, buf.Reader}, nil
}
