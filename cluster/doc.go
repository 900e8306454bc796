// Package cluster is the domain: what a cluster is and how one command changes it. The whole
// cluster is a value, State; one ordered log of commands changes it through Apply, which is pure,
// total and deterministic, so that every server reaches the same state from the same log.
// Nothing here knows the clock, the network, the disk or a name of Slurm's dialect.
package cluster
