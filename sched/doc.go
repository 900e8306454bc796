// Package sched decides: from a snapshot of the cluster and a time, which pending jobs start where, and for every
// other job that it looked at why it waits and when it is planned to start. Package place says what fits where, package
// explain tells people.
//
// Everything here is a pure function of what it is given. The package must not know of clocks, randomness, files, the
// network, goroutines, or the log; nor does it change the cluster: what it decides are proposals, which the state
// checks again when it takes them.
//
// Start reading with DESIGN.md, then cycle.fullPass and cycle.decide in schedule.go, which are the six steps: order,
// limits, feasible, place, timeline, preempt. TestIncrementalPassDecidesAsFullPass says what the rest must not
// change. The words are those of docs/words.md.
package sched
