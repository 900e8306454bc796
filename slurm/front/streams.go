package front

import (
	"strconv"
	"strings"
)

// PerTask reports whether a name differs from task to task, so that the nodes open the files.
func PerTask(pattern string) bool {
	for i, word := range strings.Split(pattern, "%") {
		rest := strings.TrimLeft(word, "0123456789") // a width: %3t
		if i > 0 && rest != "" && strings.IndexByte("tnN", rest[0]) >= 0 {
			return true
		}
	}
	return false
}

// IsFile reports whether a stream of a task is a file, not a task's number nor a word.
func IsFile(mode string) bool {
	_, err := strconv.Atoi(mode)
	return mode != "" && mode != "all" && mode != "none" && err != nil
}
