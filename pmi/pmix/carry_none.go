//go:build !carrypmix

package pmix

// carried is the PMIx server; make build embeds it where there is a C compiler.
var carried []byte
