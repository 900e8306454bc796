package place

import "slices"

// anyOf reports whether one of some conditions holds. They are all looked at, so none may rest on another.
func anyOf(list ...bool) bool { return slices.Contains(list, true) }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
