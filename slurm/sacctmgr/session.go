package sacctmgr

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
)

// mgrVerb is a command, how far its name may be cut short, and what help says of it.
type mgrVerb struct {
	name  string
	least int
	args  string
	help  string
	kind  verbKind
	run   func([]string) int
}

// verbKind is what a command needs.
type verbKind uint8

const (
	wordVerb   verbKind = iota // alone, and asks no server
	readsVerb                  // the books
	writesVerb                 // the books, and to change something
)

const namesWhat = "<ENTITY> [<SPECS>]"

// Verbs are the names of the commands.
func Verbs() (names []string) {
	for _, v := range new(manager).verbs() {
		names = append(names, v.name)
	}
	return names
}

// verbs are the commands, in the order in which help lists them.
func (m *manager) verbs() []mgrVerb {
	set := func(f func()) func([]string) int { return func([]string) int { f(); return 0 } }
	return []mgrVerb{
		{"add", 1, "<ENTITY> <SPECS>", "add an entity", writesVerb, m.add},
		{
			"archive", 2, "<DUMP/LOAD> <SPECS>",
			"write old records of history into files, or bring them back", writesVerb, m.archive,
		},
		{
			"associations", 3, "", "from now on show and list have the associations too", wordVerb,
			set(func() { m.withAssoc = true }),
		},
		{"clear", 2, "stats", "reset the counts of the servers' calls", writesVerb, m.clear},
		{"create", 2, "<ENTITY> <SPECS>", "same as add", writesVerb, m.add},
		{"delete", 3, namesWhat, "delete what is named", writesVerb, m.remove},
		{
			"dump", 1, "<CLUSTER> [File=<FILENAME>]",
			"write the tree of accounts into a file, CLUSTER.cfg by default", writesVerb, m.dump,
		},
		{"exit", 4, "", "end sacctmgr", wordVerb, set(func() { m.over = true })},
		{"help", 4, "", "print this", wordVerb, m.help},
		{"list", 1, namesWhat, "show what is named, or all", readsVerb, m.show},
		{
			"load", 2, "<FILE> [<SPECS>]", "read in the file of a dump; with clean what it lacks goes",
			writesVerb, m.load,
		},
		{"modify", 1, namesWhat, "modify what is named", writesVerb, m.modify},
		{"oneliner", 1, "", "a record is a line: it always is", wordVerb, set(func() {})},
		{"ping", 2, "", "report whether the servers, which keep the history, answer", readsVerb,
			func([]string) int { return pingServers(m) }},
		{"quiet", 3, "", "fewer messages: there are none that could be left out", wordVerb, set(func() {})},
		{"quit", 3, "", "end sacctmgr", wordVerb, set(func() { m.over = true })},
		{"readonly", 4, "", "from now on nothing is changed", wordVerb, set(func() { m.readOnly = true })},
		{"reconfigure", 5, "", "have the servers read their configuration again", writesVerb, m.reconfigure},
		{"remove", 3, namesWhat, "same as delete", writesVerb, m.remove},
		{"show", 1, namesWhat, "same as list", readsVerb, m.show},
		{"shutdown", 4, "", "refused: systemd controls the daemons", wordVerb, func([]string) int {
			return m.wrong("sacctmgr: error: there is no slurmdbd: the servers keep the history; systemd controls them")
		}},
		{"update", 1, namesWhat, "same as modify", writesVerb, m.modify},
		{"verbose", 4, "", "more messages: there are none", wordVerb, set(func() {})},
		{"version", 4, "", "print the version", wordVerb, set(func() { m.tell("slurm-wlm " + front.SlurmVersion) })},
	}
}

func (m *manager) verb(word string) *mgrVerb {
	verbs := m.verbs()
	i := slices.IndexFunc(verbs, func(v mgrVerb) bool { return front.IsKey(word, v.least, v.name) })
	if i < 0 {
		return nil
	}
	return &verbs[i]
}

// help tells the options and the commands.
func (m *manager) help([]string) int {
	p := &opt.Parser[manager]{Prog: opt.Sacctmgr, Rows: [][]opt.Option[manager]{Options}}
	for _, l := range p.Help("sacctmgr [OPTION...] [COMMAND]") {
		m.tell("%s", l)
	}
	m.tell("\nCommands; without one those of standard input are done, one a line:")
	for _, v := range append(m.verbs(), mgrVerb{name: "!!", help: "in a session: repeat the last command"}) {
		m.tell("  %-38s %s", strings.TrimSpace(v.name+" "+v.args), v.help)
	}
	m.tell("\nEntities: account, association, cluster, configuration, coordinator, event, federation, job, problem, qos, reservation,\nrunawayjobs, stats, transaction, tres, user, wckey")
	return 0
}

// pingServers reports which servers answer, in the words that Slurm has for slurmdbd.
func pingServers(m *manager) int {
	resp, err := front.Call(m.sys, api.Ping, api.Empty{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return m.wrong("sacctmgr: error: " + text)
	}
	for i, s := range resp.Servers {
		role := front.Choose(i == 0, "primary", "backup")
		m.tell("slurmdbd(%s) at %s is %s", role, s.Name, front.Choose(s.Up, "UP", "DOWN"))
	}
	return 0
}

// reconfigure has the servers read slurm.conf and slurmdbd.conf again.
func (m *manager) reconfigure([]string) int {
	resp, err := front.Call(m.sys, api.Reconfigure, api.Empty{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return m.wrong("sacctmgr: error: " + text)
	}
	for _, n := range resp.Notes {
		m.wrong("sacctmgr: " + n)
	}
	return 0
}

// run does one command.
func (m *manager) run(words []string) int {
	v := m.verb(strings.ToLower(words[0]))
	switch {
	case v == nil:
		return m.wrong("invalid keyword: " + words[0])
	case v.args == "" && len(words) > 1:
		m.over = v.name == "quit" || v.name == "exit"
		return m.wrong("too many arguments for keyword:" + words[0])
	case v.kind == wordVerb:
		return v.run(nil)
	case v.kind == writesVerb && m.readOnly:
		return m.wrong("Can't run this command in readonly mode.")
	}
	resp, err := front.Call(m.sys, api.ListBooks, api.AfterQuery{After: m.after})
	if err != nil {
		text, _ := front.ErrorText(err)
		return m.sys.Fail("%s", text)
	}
	m.books, m.report.Cols, m.removes = &show.Books{BooksResponse: resp}, nil, v.name == "delete" || v.name == "remove"
	return v.run(words[1:])
}

// lines are those of an input that may not come in time.
type lines struct {
	in   *bufio.Reader
	read chan line // of the one that is awaited, nil while none is
}

type line struct {
	text string
	err  error
}

// errNoAnswer says that nothing came in time.
var errNoAnswer = errors.New("no answer in time")

// next is the next line with its end, or errNoAnswer when a timer ends before; then the line is the next one still.
func (l *lines) next(end <-chan time.Time) (string, error) {
	if l.read == nil {
		read := make(chan line, 1)
		l.read = read
		go func() { // ends with the input, at the latest with the program
			text, err := l.in.ReadString('\n')
			read <- line{text, err}
		}()
	}
	select {
	case r := <-l.read:
		l.read = nil
		return r.text, r.err
	case <-end:
		return "", errNoAnswer
	}
}

// session does the commands of standard input, one a line, until quit or its end.
func (m *manager) session() (code int) {
	file, _ := m.sys.Stdin.(*os.File)
	echo := file == nil || !front.IsTerminal(file)
	var last []string // the command before
	for !m.over {
		fmt.Fprint(m.sys.Stdout, "sacctmgr: ")
		line, err := m.lines.next(nil)
		if line = strings.TrimRight(line, "\r\n"); err != nil && line == "" {
			fmt.Fprintln(m.sys.Stdout)
			break
		}
		if echo { // as the line editor of Slurm does
			fmt.Fprintln(m.sys.Stdout, line)
		}
		words, ok := front.SplitQuoted(line)
		if len(words) == 1 && words[0] == "!!" {
			words = last
		}
		switch {
		case !ok:
			code = m.wrong("sacctmgr: error: a quote is not closed: " + line)
		case len(words) > 0:
			code, last = max(code, m.run(words)), words
		}
	}
	return code
}
