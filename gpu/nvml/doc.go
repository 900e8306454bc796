// Package nvml asks NVIDIA's management library about the GPUs. It is part of programs that were built with cgo and
// without the tag nonvml; in others it is empty. Its calls may hang indefinitely when a GPU is wedged, so it runs in a
// helper process only (gpu.Serve). The library is loaded when the helper starts, from where the dynamic linker finds
// libnvidia-ml.so.1; calling a function that the installed one lacks would kill the process, so each is looked up
// before it is called.
package nvml
