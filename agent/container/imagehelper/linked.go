//go:build !carryimage

package imagehelper

import "dev.muster/agent/container/images"

// Main fetches images.
func Main(words []string) int { return images.HelperMain(words) }
