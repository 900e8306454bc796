// Package farm runs many short tasks in one allocation: muster farm. A coordinator, in the user's batch script, starts
// one step with a worker on each node, gives the workers lines of a file as their CPUs and GPUs become free, and keeps
// a journal of what is done. Coordinator and workers are the user's processes; they speak through the step's standard
// input and output, one JSON message per line. Begin with coordinate.go.
package farm
