package submit

import (
	"strings"

	"dev.muster/slurm/front"
)

// LateDirective finds the first #SBATCH line that is not read since it comes after the first command of a script, and
// the line of that command; 0: there is none. Here-documents hold other scripts, and are passed by.
func LateDirective(script string) (late, first int) {
	until, line := "", 0
	for text := range strings.SplitSeq(script, "\n") {
		line++
		trimmed := strings.TrimSpace(text)
		switch {
		case until != "":
			if trimmed == until {
				until = ""
			}
		case first > 0 && strings.HasPrefix(text, "#SBATCH"):
			return line, first
		case trimmed == "" || trimmed[0] == '#':
		default:
			if first == 0 {
				first = line
			}
			until = HereDocument(text)
		}
	}
	return 0, 0
}

// HereDocument is the word that ends the here-document which a command begins, if it does.
func HereDocument(line string) string {
	_, rest, ok := strings.Cut(line, "<<")
	if !ok || strings.HasPrefix(rest, "<") { // <<< is a word, not a document
		return ""
	}
	word := strings.Fields(strings.TrimPrefix(rest, "-") + " ")
	if len(word) == 0 {
		return ""
	}
	return strings.Trim(strings.TrimRight(word[0], ";|&)"), `"'\`)
}

// sayLate tells somebody at a terminal of options that are ignored. Programs that call sbatch see what Slurm prints.
func sayLate(s *front.Sys, r *Request) {
	if r.Client.Quiet > 0 || r.Client.Parsable || !front.OnTerminal(s.Stderr) {
		return
	}
	late, first := LateDirective(string(r.Script))
	if late == 0 {
		return
	}
	if r.addedShebang {
		late, first = late-1, first-1
	}
	s.Say("note: line %d of the script is ignored, as it comes after the first command (line %d): move it up",
		late, first)
}
