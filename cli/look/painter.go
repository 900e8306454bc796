package look

import (
	"os"
	"unicode/utf8"

	"dev.muster/slurm/front"
)

// painter colors words where that is wanted.
type painter struct{ on bool }

// painterOf says whether to color: on a terminal that can, unless NO_COLOR is set.
func painterOf(s *front.Sys) painter {
	f, ok := s.Stdout.(*os.File)
	return painter{ok && front.IsTerminal(f) && s.Getenv("NO_COLOR") == "" && s.Getenv("TERM") != "dumb"}
}

func (p painter) in(code, text string) string {
	if !p.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p painter) good(text string) string { return p.in("32", text) }

func (p painter) bad(text string) string { return p.in("31", text) }

func (p painter) soft(text string) string { return p.in("2", text) }

// cut shortens a text without colors to a width; 0 leaves it.
func cut(text string, width int) string {
	if width == 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width])
}

// barWidth is how wide a bar of the head may be on a screen.
func barWidth(width int) int {
	if width == 0 {
		return 40
	}
	return min(max(width-30, 0), 60)
}
