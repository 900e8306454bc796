// Package sim runs a cluster in virtual time: the real State.Apply, Step, Schedule, Due and the
// clients' Reconcile over a heap of events with delay, loss and partition, all from one seed.
// Faults are data. After entries checkers look; a failure names the seed.
package sim
