// Slinky does by the client library of the Slinky operators what these do: it watches nodes and jobs, submits, changes
// and cancels a job, drains a node and returns it. Usage: slinky URL NODE, with a token in SLURM_JWT.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	v0044 "github.com/SlinkyProject/slurm-client/api/v0044"
	"github.com/SlinkyProject/slurm-client/pkg/client"
	"github.com/SlinkyProject/slurm-client/pkg/object"
	"github.com/SlinkyProject/slurm-client/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

func main() {
	if err := operate(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "slinky:", err)
		os.Exit(1)
	}
}

// events notes what the watch of a kind of objects has told.
type events struct {
	mu    sync.Mutex
	lines []string
}

func (e *events) note(what string, obj any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o, ok := obj.(object.Object); ok {
		e.lines = append(e.lines, what+" "+string(o.GetKey()))
	}
}

// OnAdd notes a new object.
func (e *events) OnAdd(obj any, _ bool) { e.note("add", obj) }

// OnUpdate notes one that has changed.
func (e *events) OnUpdate(_, obj any) { e.note("update", obj) }

// OnDelete notes one that is gone.
func (e *events) OnDelete(obj any) { e.note("delete", obj) }

// heard waits until the watch has told of something.
func (e *events) heard(line string) error {
	said := func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return slices.Contains(e.lines, line)
	}
	return until("the watch says "+line, said)
}

// until waits, at most ten seconds.
func until(what string, holds func() bool) error {
	for range 100 {
		if holds() {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("not in ten seconds: %s", what)
}

func operate(ctx context.Context, url, node string) error {
	c, err := client.NewClient(&client.Config{Server: url, AuthToken: os.Getenv("SLURM_JWT")},
		&client.ClientOptions{CacheSyncPeriod: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	var nodes, jobs events
	for kind, e := range map[object.ObjectType]*events{
		types.ObjectTypeV0044Node:    &nodes,
		types.ObjectTypeV0044JobInfo: &jobs,
	} {
		var h cache.ResourceEventHandler = e
		c.GetInformer(kind).SetEventHandler(h)
	}
	go c.Start(ctx)
	defer c.Stop()
	// It looks at new jobs by a client that keeps nothing: a job that is new is not in what the watch has heard.
	w, err := client.NewClient(&client.Config{Server: url, AuthToken: os.Getenv("SLURM_JWT")},
		&client.ClientOptions{DisableFor: []object.Object{&types.V0044JobInfo{}, &types.V0044NodeResourceLayout{}}})
	if err != nil {
		return err
	}
	return errors.Join(readAll(ctx, c), runJob(ctx, w, &jobs), drain(ctx, c, &nodes, node), strangers(ctx, c))
}

// readAll lists everything that the library knows, in each version that is served.
func readAll(ctx context.Context, c client.Client) error {
	for _, list := range []object.ObjectList{
		&types.V0042NodeList{}, &types.V0042JobInfoList{}, &types.V0042PartitionInfoList{}, &types.V0042StatsList{},
		&types.V0042ControllerPingList{}, &types.V0042ReconfigureList{},
		&types.V0043NodeList{}, &types.V0043JobInfoList{}, &types.V0043PartitionInfoList{}, &types.V0043StatsList{},
		&types.V0043ControllerPingList{}, &types.V0043ReconfigureList{},
		&types.V0044NodeList{}, &types.V0044JobInfoList{}, &types.V0044PartitionInfoList{}, &types.V0044StatsList{},
		&types.V0044ControllerPingList{}, &types.V0044ReconfigureList{},
	} {
		if err := c.List(ctx, list, &client.ListOptions{SkipCache: true}); err != nil {
			return fmt.Errorf("list %s: %w", list.GetType(), err)
		}
		if len(list.GetItems()) == 0 {
			return fmt.Errorf("list %s: nothing", list.GetType())
		}
		fmt.Printf("%s: %d\n", list.GetType(), len(list.GetItems()))
	}
	return nil
}

// runJob takes a job through its life.
func runJob(ctx context.Context, c client.Client, jobs *events) error {
	job := &types.V0044JobInfo{}
	req := v0044.V0044JobSubmitReq{Job: &v0044.V0044JobDescMsg{
		Name:                    ptr.To("bridge"),
		CurrentWorkingDirectory: ptr.To("/tmp"),
		Environment:             ptr.To(v0044.V0044StringArray{"PATH=/usr/bin:/bin"}),
		Script:                  ptr.To("#!/bin/sh\nsleep 600\n"),
		StandardOutput:          ptr.To("/dev/null"),
		AdminComment:            ptr.To(`{"pods":["p"],"node":"n"}`),
		Flags:                   &[]v0044.V0044JobDescMsgFlags{},
	}}
	if err := c.Create(ctx, job, req); err != nil {
		return fmt.Errorf("create a job: %w", err)
	}
	id := string(job.GetKey())
	runs := func() bool {
		err := c.Get(ctx, object.ObjectKey(id), job, &client.GetOptions{SkipCache: true})
		return err == nil && job.GetStateAsSet().Has(v0044.V0044JobInfoJobStateRUNNING)
	}
	if err := errors.Join(jobs.heard("add "+id), until("job "+id+" runs", runs)); err != nil {
		return err
	}
	layout := &types.V0044NodeResourceLayout{}
	if err := c.Get(ctx, object.ObjectKey(id), layout); err != nil || len(layout.V0044NodeResourceLayoutList) == 0 {
		return fmt.Errorf("layout of job %s: %v %+v", id, err, layout)
	}
	change := v0044.V0044JobDescMsg{Comment: ptr.To("by the operator")}
	if err := c.Update(ctx, job, change); err != nil {
		return fmt.Errorf("update job %s: %w", id, err)
	}
	get := func() bool { return c.Get(ctx, object.ObjectKey(id), job, &client.GetOptions{SkipCache: true}) == nil }
	if !get() || ptr.Deref(job.Comment, "") != "by the operator" || !strings.HasPrefix(*job.AdminComment, `{"pods"`) {
		return fmt.Errorf("job %s has comments %v and %v", id, job.Comment, job.AdminComment)
	}
	if err := c.Delete(ctx, job); err != nil {
		return fmt.Errorf("delete job %s: %w", id, err)
	}
	ends := func() bool { return get() && job.GetStateAsSet().Has(v0044.V0044JobInfoJobStateCANCELLED) }
	return errors.Join(jobs.heard("update "+id), until("job "+id+" is cancelled", ends))
}

// drain takes a node out and back.
func drain(ctx context.Context, c client.Client, nodes *events, name string) error {
	node := &types.V0044Node{}
	is := func(state v0044.V0044NodeState, want bool) func() bool {
		return func() bool {
			err := c.Get(ctx, object.ObjectKey(name), node, &client.GetOptions{RefreshCache: true})
			return err == nil && node.GetStateAsSet().Has(state) == want
		}
	}
	if err := c.Get(ctx, object.ObjectKey(name), node); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	for _, s := range []struct {
		to    v0044.V0044UpdateNodeMsgState
		drain bool
	}{{v0044.V0044UpdateNodeMsgStateDRAIN, true}, {v0044.V0044UpdateNodeMsgStateUNDRAIN, false}} {
		msg := v0044.V0044UpdateNodeMsg{
			State:  &[]v0044.V0044UpdateNodeMsgState{s.to},
			Reason: ptr.To("slurm-operator: Pod (p) is cordoned"),
			Extra:  ptr.To(`{"pod":"p"}`),
		}
		if err := c.Update(ctx, node, msg); err != nil {
			return fmt.Errorf("%s of node %s: %w", s.to, name, err)
		}
		if err := until(fmt.Sprintf("node %s after %s", name, s.to), is(v0044.V0044NodeStateDRAIN, s.drain)); err != nil {
			return err
		}
		if reason := ptr.Deref(node.Reason, ""); s.drain && !strings.Contains(reason, "cordoned") {
			return fmt.Errorf("node %s is drained for %q", name, reason)
		}
	}
	return nodes.heard("update " + name)
}

// strangers asks for what is not there.
func strangers(ctx context.Context, c client.Client) error {
	skip := &client.GetOptions{SkipCache: true}
	if err := c.Get(ctx, "nosuch", &types.V0044Node{}, skip); err == nil {
		return errors.New("node nosuch is there")
	}
	if err := c.Get(ctx, "4711", &types.V0044JobInfo{}, skip); err == nil {
		return errors.New("job 4711 is there")
	}
	return nil
}
