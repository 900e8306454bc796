// Package pmix is the PMIx server of a step's tasks on one node, srun --mpi=pmix: what Open MPI and
// others call instead of PMI. The protocol is that of the library libpmix, which is loaded when the
// server starts; what the servers of other nodes must know goes through the step's hub (package
// pmi). The package speaks with the library in programs that were built with cgo alone; in others
// Built is false. Start with server.go; abi.h is what of the PMIx standard is used.
package pmix
