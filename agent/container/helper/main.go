// Command muster-image fetches images from registries. It is no program for people: make build embeds
// it in muster, which runs it as muster internal image.
package main

import (
	"os"

	"dev.muster/agent/container/images"
)

func main() { os.Exit(images.HelperMain(os.Args[1:])) }
