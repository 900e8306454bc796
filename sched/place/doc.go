// Package place says what fits where: it keeps what is free on each node, works out what a job needs of it, and
// chooses nodes, CPUs and devices.
//
// Everything here is a pure function of what it is given, as in package sched, whose DESIGN.md says how the two go
// together. Start reading with DESIGN.md here, then Fit.FindNear, which goes from a demand to an allocation.
package place
