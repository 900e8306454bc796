// Package client is client mode: it registers this machine's nodes, pulls the whole set of work
// they should do, makes it so through a step.Runner, manages the steps of jobs that are led here,
// and reports what happened. It holds nothing that the supervisor and the outbox do not.
package client

import (
	"dev.muster/agent/container/exchange"
	"dev.muster/agent/hardware"
	"dev.muster/agent/measure"
	"dev.muster/agent/meter"
	"dev.muster/agent/outbox"
	"dev.muster/agent/sweep"
)

// Client is client mode: what it knows, and the owners of what is done with it.
type Client struct {
	*tables
	link     *link
	reports  *outbox.Reports
	hardware *hardware.Nodes
	gpus     *sweep.JobGPUs
	meter    *meter.Meter
	loads    measure.GPUs // nil: nobody knows what GPUs do
	build    *builder
	jobs     *jobs
	steps    *steps
	parts    *parts
	layers   *exchange.Exchange // of images, carried from node to node
}
