package front

import "strconv"

// Plural writes how many there are of something: the word for one, or that for none and for several.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
