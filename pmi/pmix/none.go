//go:build !cgo || !linux

package pmix

import (
	"errors"

	"dev.muster/pmi"
)

// Built reports whether this program can load libpmix.
const Built = false

// Serve says that this program cannot load libpmix.
func Serve(*pmi.Setup, func(env [][]string) error) error {
	return errors.New("this program was built without cgo and cannot load libpmix")
}
