//go:build !cgo || nonvml || !linux

package nvml

import "dev.muster/gpu"

// Built reports whether this program can ask NVML.
const Built = false

// Open says that this program cannot ask NVML: the kernel's files are all that it reads.
func Open() gpu.Source { return nil }
