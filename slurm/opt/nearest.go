package opt

import "strings"

// mostTypos is how many letters of a word may be wrong for it to be taken for another one.
const mostTypos = 2

// Nearest is the word that a mistyped one most resembles, whatever the case; "" if none does.
func Nearest(typed string, words []string) (best string) {
	least := mostTypos + 1
	for _, w := range words {
		if d := distance(strings.ToLower(w), strings.ToLower(typed), least); d < least && 2*d < len(typed) {
			best, least = w, d
		}
	}
	return best
}

// Meant is ": do you mean WORD?" where a mistyped word resembles one, else "".
func Meant(typed string, words []string) string {
	if near := Nearest(typed, words); near != "" {
		return ": do you mean " + near + "?"
	}
	return ""
}

// distance is how many letters have to be put in, left out, changed or swapped with their neighbour to make one
// word of another (optimal string alignment), or most.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, old, row = old, row, older
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := old[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, old[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
