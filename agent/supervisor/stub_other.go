//go:build !amd64 && !arm64

package supervisor

// This architecture has no stub: programs are executed directly.
const stubMachine = 0

var stubCode []byte
