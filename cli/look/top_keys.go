package look

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// sequences are the keys of a terminal that are more than a character.
func sequences() map[string]string {
	return map[string]string{
		"\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down",
		"\x1b[5~": "page up", "\x1b[6~": "page down",
		"\x1b[H": "home", "\x1b[F": "end", "\x1b[1~": "home", "\x1b[4~": "end", "\x1bOH": "home", "\x1bOF": "end",
		"\x1b": "esc", "\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "back", "\b": "back", "\x03": "quit",
	}
}

// splitKeys cuts what was read at once into keys. Unknown sequences are left out.
func splitKeys(text string) (keys []string) {
	known := sequences()
	for text != "" {
		n := sequenceLen(text)
		k := text[:n]
		text = text[n:]
		if name, ok := known[k]; ok {
			k = name
		}
		if len(k) > 1 && k[0] == '\x1b' {
			continue
		}
		keys = append(keys, k)
	}
	return keys
}

// sequenceLen is the length of the first key: a character, or an escape sequence as ECMA-48 ends it.
func sequenceLen(text string) int {
	if text[0] != '\x1b' || len(text) == 1 {
		_, n := utf8.DecodeRuneInString(text)
		return n
	}
	if text[1] == 'O' && len(text) > 2 {
		return 3
	}
	if text[1] != '[' {
		return 1
	}
	i := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if i < 0 {
		return len(text)
	}
	return i + 3
}

const topHelp = `  1 2 3 4, Tab     jobs, nodes, users, GPUs
  up down j k      choose a row; page up, page down, home, end
  Enter            the jobs of the chosen user or node
  /                show rows that have a text in them; Esc shows all again
  w                why the chosen job waits or died, or what holds the node
  l                what the chosen job writes
  c                cancel the chosen job, after a question
  g t u n i        sort jobs by GPUs, time, user, nodes, id
  Esc, q           back; q in a table ends`

const topPage = 10 // rows of page up and page down

// key does what a key is for. It reports whether that was the end.
func (s *topScreen) key(k string) (quit bool) {
	s.said = ""
	switch {
	case k == "quit":
		return true
	case s.ask != nil:
		s.answer(k)
	case s.typing:
		s.typed(k)
	case s.panel != nil:
		s.panelKey(k)
	default:
		return s.tableKey(k)
	}
	return false
}

// typed is a key while the filter is typed.
func (s *topScreen) typed(k string) {
	switch {
	case k == "esc":
		s.filter, s.typing = "", false
	case k == "enter":
		s.typing = false
	case k == "back":
		_, n := utf8.DecodeLastRuneInString(s.filter)
		s.filter = s.filter[:len(s.filter)-n]
	case utf8.RuneCountInString(k) == 1 && k >= " ":
		s.filter += k
	}
}

// moves are how far keys go.
func moves() map[string]int {
	return map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "page up": -topPage, "page down": topPage, " ": topPage,
		"home": -1 << 30, "end": 1 << 30}
}

func (s *topScreen) tableKey(k string) (quit bool) {
	if by := moves()[k]; by != 0 {
		s.move(by)
		return false
	}
	if i := strings.Index("1234", k); i >= 0 {
		s.view = i
		return false
	}
	switch k {
	case "q":
		return true
	case "tab":
		s.view = (s.view + 1) % len(topViews())
	case "/":
		s.typing = true
	case "esc":
		s.filter = ""
	case "enter":
		s.enter()
	case "?":
		s.panel = newPanel("keys", func() string { return topHelp })
	case "w":
		s.why()
	case "l":
		s.log()
	case "c":
		s.cancel()
	default:
		i := slices.IndexFunc(topOrders[:], func(o topOrder) bool { return string(o.key) == k })
		if i >= 0 {
			s.order = i
		}
	}
	return false
}

// enter shows the jobs of the chosen user or node.
func (s *topScreen) enter() {
	if r, ok := s.row(); ok && r.find != "" {
		s.view, s.filter = 0, r.find
	}
}

// why shows what muster why says of the chosen row.
func (s *topScreen) why() {
	r, ok := s.row()
	if !ok {
		return
	}
	what := string(r.node)
	if r.job != nil {
		what = r.job.ShownID()
	}
	if what == "" {
		s.said = "choose a job or a node first"
		return
	}
	s.panel = newPanel("why "+what, func() string {
		var text bytes.Buffer
		sys := *s.sys
		sys.Stdout, sys.Stderr = &text, &text
		Why(&sys, []string{what})
		return text.String()
	})
}

// log shows the end of what the chosen job writes.
func (s *topScreen) log() {
	r, ok := s.row()
	if !ok || r.job == nil {
		s.said = "choose a job first"
		return
	}
	id := r.job.ID
	s.panel = newPanel("log of "+r.job.ShownID(), func() string {
		part, err := front.Call(s.sys, api.TailOutput, api.TailRequest{Job: id})
		if err != nil {
			text, _ := front.ErrorText(err)
			return text
		}
		return part.Text
	})
	s.panel.atEnd = true
}

// topQuestion is one that y answers.
type topQuestion struct {
	text string
	yes  func() string // what came of it
}

func (s *topScreen) cancel() {
	r, ok := s.row()
	if !ok || r.job == nil {
		s.said = "choose a job first"
		return
	}
	job := r.job
	text := fmt.Sprintf("cancel job %s (%s) of %s? y/n", job.ShownID(), cluster.PlainLine(job.Spec.Name),
		job.Spec.User)
	s.ask = &topQuestion{text, func() string { return s.cancelled(job) }}
}

// cancelled cancels a job and says what came of it.
func (s *topScreen) cancelled(job *show.JobRow) string {
	ref := cluster.Ref{Job: job.ID}
	if t, ok := front.ParseTarget(job.ShownID()); ok {
		ref = t.Ref
	}
	if _, err := front.Call(s.sys, api.CancelJob, cluster.Cancel{Ref: ref}); err != nil {
		text, _ := front.ErrorText(err)
		return text
	}
	return "job " + job.ShownID() + " is being cancelled"
}

func (s *topScreen) answer(k string) {
	ask := s.ask
	s.ask = nil
	if k == "y" || k == "Y" {
		s.said = ask.yes()
	}
}

// status is the line above the table.
func (s *topScreen) status() string {
	switch {
	case s.ask != nil:
		return s.ask.text
	case s.said != "":
		return s.said
	case s.typing:
		return "/" + s.filter + "_"
	case s.panel != nil:
		return s.panel.title + "; Esc goes back"
	}
	text := topViews()[s.view].name
	if s.view == 0 {
		text += " sorted by " + topOrders[s.order].name
	}
	if s.filter != "" {
		text += " with " + s.filter
	}
	return text + "; 1-4 views, / filter, w why, l log, c cancel, ? keys, q quit"
}

// topPanel is a text in the place of the table.
type topPanel struct {
	title string
	ask   func() string
	text  []string
	at    int  // the first line shown
	atEnd bool // it follows what is written
}

func newPanel(title string, ask func() string) *topPanel {
	p := &topPanel{title: title, ask: ask}
	p.renew()
	return p
}

// renew asks again.
func (p *topPanel) renew() {
	if p != nil {
		p.text = strings.Split(strings.TrimRight(p.ask(), "\n"), "\n")
	}
}

func (p *topPanel) lines(width, room int) (out []string) {
	text := folded(p.text, width)
	last := max(len(text)-room, 0)
	if p.atEnd {
		p.at = last
	}
	p.at = min(p.at, last)
	return text[p.at:min(p.at+room, len(text))]
}

// folded are the lines of a text on a screen of a width.
func folded(text []string, width int) (out []string) {
	for _, l := range text {
		line := []rune(printable(l))
		for ; len(line) > width; line = line[width:] {
			out = append(out, string(line[:width]))
		}
		out = append(out, string(line))
	}
	return out
}

// printable replaces what would move the cursor or change colors.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, line)
}

func (s *topScreen) panelKey(k string) {
	p := s.panel
	if k == "esc" || k == "q" {
		s.panel = nil
		return
	}
	if by := moves()[k]; by != 0 {
		p.at = max(p.at+by, 0)
		p.atEnd = k == "end"
	}
}
