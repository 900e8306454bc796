package cluster

import (
	"slices"
	"strings"
)

// X11 says whether the site lets jobs use the X servers of their submitters, and whether a node then writes into the
// file in a user's home.
func X11(c *Config) (allowed, home bool) {
	return hasWord(c.Keys["prologflags"], "x11"), hasWord(c.Keys["x11parameters"], "home_xauthority")
}

func hasWord(list, word string) bool {
	return slices.Contains(strings.Split(strings.ToLower(list), ","), word)
}
