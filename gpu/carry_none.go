//go:build !carrygpu

package gpu

// carried is the helper with NVML; make build embeds it where there is a C compiler.
var carried []byte
