//go:build carryimage

package imagehelper

import (
	_ "embed"
	"fmt"
	"os"

	"dev.muster/memexec"
)

// carried is what fetches images, which make build has built from package agent/container/helper.
//
//go:embed bin/muster-image
var carried []byte

// Main becomes the program that fetches images.
func Main(words []string) int {
	fmt.Fprintln(os.Stderr, "muster internal image:", memexec.Become("muster-image", carried, words...))
	return 1
}
