// Package sim runs a cluster in virtual time: the real State.Apply, Step, Schedule, Due and the
// clients' Reconcile over a heap of events with delay, loss and partition, all from one seed.
// Three servers share one log: leaders are lost with their proposals and what they knew of the nodes, a
// state may come from a snapshot, and all are compared byte by byte. Faults are data. After entries checkers look;
// a failure names the seed.
package sim
