package pmi

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// head is how many digits stand before each command of PMI-2: its length.
const head = 6

// max2 is the longest command of PMI-2 that its six digits allow for.
const max2 = 999_999

// read2 reads a command of PMI-2: six digits, then KEY=VALUE; ... with ;; for a semicolon in a value.
func read2(in io.Reader) (command, error) {
	var digits [head]byte
	if _, err := io.ReadFull(in, digits[:]); err != nil {
		return command{}, err
	}
	size, err := strconv.Atoi(strings.TrimSpace(string(digits[:])))
	if err != nil || size < 0 {
		return command{}, fmt.Errorf("%q is no length of a PMI-2 command", digits[:])
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return command{}, err
	}
	return parse2(string(text))
}

// trim takes off what MPICH's own client (4.0) has behind a command: it counts the six digits of the length as well,
// and sends what its memory has there.
func trim(text string) string {
	if end := len(text) - head; end > 0 && text[end-1] == ';' && !strings.HasSuffix(text, ";") {
		return text[:end]
	}
	return text
}

// parse2 reads the text of a command of PMI-2. It skips texts that are not pairs; for a key that comes again, see trim.
func parse2(text string) (command, error) {
	c := command{args: map[string]string{}}
	for rest := trim(text); rest != ""; {
		var pair string
		pair, rest = cutPair(rest)
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			continue
		}
		if key == words2.program {
			c.programs = append(c.programs, map[string]string{})
		}
		args := c.args
		if n := len(c.programs); n > 0 {
			args = c.programs[n-1]
		}
		_, again := args[key]
		switch {
		case key == "cmd" && c.name == "":
			c.name = value
		case key != "cmd" && !again:
			args[key] = value
		}
	}
	if c.name == "" {
		return c, fmt.Errorf("it says %.80q, which is no PMI-2", text)
	}
	return c, nil
}

// cutPair takes the first pair off a text; ;; in it is a semicolon.
func cutPair(text string) (pair, rest string) {
	var b strings.Builder
	for {
		part, after, ok := strings.Cut(text, ";")
		b.WriteString(part)
		if !ok || !strings.HasPrefix(after, ";") {
			return b.String(), after
		}
		b.WriteByte(';')
		text = after[1:]
	}
}

// reply2 answers a command of PMI-2: keys and values. As reply1 it has no error.
func (r *rank) reply2(c command, pairs ...string) error {
	var b strings.Builder
	b.WriteString("cmd=" + c.name + "-response;")
	if id := c.args["thrid"]; id != "" {
		b.WriteString("thrid=" + id + ";")
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		b.WriteString(pairs[i] + "=" + strings.ReplaceAll(pairs[i+1], ";", ";;") + ";")
	}
	text := b.String()
	if len(text) > max2 {
		return fmt.Errorf("the answer to %s has %d bytes, more than PMI-2 has room for", c.name, len(text))
	}
	_, _ = fmt.Fprintf(r.conn, "%*d%s", head, len(text), text)
	return nil
}

// failed2 is the return code of PMI-2 for what cannot be done (PMI2_FAIL).
const failed2 = "14"

// fail2 answers that something cannot be done.
func (r *rank) fail2(c command, why string) error {
	return r.reply2(c, "rc", failed2, "errmsg", why)
}

// found2 answers with a value, or that there is none.
func (r *rank) found2(c command, value string, ok bool) error {
	if !ok {
		return r.reply2(c, "rc", "0", "found", "FALSE")
	}
	return r.reply2(c, "rc", "0", "found", "TRUE", "value", value)
}

// serve2 speaks PMI-2 with a task, to its end.
func (r *rank) serve2(in *bufio.Reader) error {
	commands := commands2()
	for {
		c, err := read2(in)
		if err != nil {
			return ended(err)
		}
		do := commands[c.name]
		if do == nil {
			return fmt.Errorf("command %.40q is none of PMI-2", c.name)
		}
		if err := do(r, c); err != nil {
			return err
		}
	}
}

// commands2 are those of PMI-2. It is a function so that srun, which speaks none of them, pays nothing.
func commands2() map[string]func(*rank, command) error {
	return map[string]func(*rank, command) error{
		"fullinit":         (*rank).init2,
		"job-getid":        (*rank).jobID2,
		"job-connect":      (*rank).connect2,
		"job-disconnect":   (*rank).connect2,
		"kvs-put":          (*rank).put2,
		"kvs-get":          (*rank).get2,
		"kvs-fence":        (*rank).fence2,
		"info-getjobattr":  (*rank).jobAttr2,
		"info-putnodeattr": (*rank).putAttr2,
		"info-getnodeattr": (*rank).nodeAttr2,
		"name-publish":     (*rank).publish2,
		"name-unpublish":   (*rank).unpublish2,
		"name-lookup":      (*rank).lookup2,
		"spawn":            (*rank).spawn2,
		"abort":            (*rank).abort2,
		"finalize":         (*rank).finalize2,
	}
}

func (r *rank) init2(c command) error {
	said := []string{"rc", "0", "pmi-version", "2", "pmi-subversion", "0", "rank", strconv.Itoa(r.rank),
		"size", strconv.Itoa(r.server.setup.Size), "appnum", r.appnum(), "debugged", "FALSE", "pmiverbose", "FALSE"}
	if b := r.server.born; b != nil && b.spawner != "" {
		said = append(said, "spawner-jobid", b.spawner)
	}
	return r.reply2(c, said...)
}

func (r *rank) jobID2(c command) error {
	return r.reply2(c, "rc", "0", "jobid", r.server.setup.Job)
}

func (r *rank) connect2(c command) error { return r.fail2(c, "steps cannot be connected") }

func (r *rank) put2(c command) error {
	return r.done2(c, r.server.put(c.args["key"], c.args["value"]))
}

func (r *rank) fence2(c command) error {
	return r.server.fence(r, func() { _ = r.done2(c, nil) })
}

func (r *rank) putAttr2(c command) error {
	return r.done2(c, r.server.setAttr(c.args["key"], c.args["value"]))
}

// done2 answers that something is done, or why not.
func (r *rank) done2(c command, err error) error {
	if err != nil {
		return r.fail2(c, err.Error())
	}
	return r.reply2(c, "rc", "0")
}

func (r *rank) get2(c command) error {
	value, ok := r.server.get(c.args["key"])
	return r.found2(c, value, ok)
}

func (r *rank) jobAttr2(c command) error {
	value := r.server.jobAttr(c.args["key"])
	return r.found2(c, value, value != "")
}

func (r *rank) publish2(c command) error {
	r.server.link.Publish(c.args["name"], c.args["port"], false, r.named2(c))
	return nil
}

func (r *rank) unpublish2(c command) error {
	r.server.link.Unpublish(c.args["name"], r.named2(c))
	return nil
}

func (r *rank) lookup2(c command) error {
	r.server.link.Lookup(c.args["name"], false, r.named2(c))
	return nil
}

func (r *rank) spawn2(c command) error {
	r.spawn(&words2, c, func(job string, err error) {
		if err != nil {
			_ = r.fail2(c, err.Error())
			return
		}
		_ = r.reply2(c, "rc", "0", "jobid", job)
	})
	return nil
}

func (r *rank) abort2(c command) error {
	r.server.abort(r, 1, c.args["msg"])
	return nil
}

func (r *rank) finalize2(c command) error {
	r.server.leave(r)
	return r.done2(c, nil)
}

// nodeAttr2 answers with an attribute of the node, if the task wishes so once there is one.
func (r *rank) nodeAttr2(c command) error {
	key := c.args["key"]
	var wait func(string)
	if strings.EqualFold(c.args["wait"], "TRUE") {
		wait = func(value string) { _ = r.found2(c, value, true) }
	}
	value, ok := r.server.attr(key, wait)
	if ok || wait == nil {
		return r.found2(c, value, ok)
	}
	return nil
}

// named2 answers for the name service.
func (r *rank) named2(c command) func(value []byte, err error) {
	return func(value []byte, err error) {
		switch {
		case err != nil:
			_ = r.fail2(c, err.Error())
		case c.name == "name-lookup":
			_ = r.reply2(c, "rc", "0", "found", "TRUE", "value", string(value), "port", string(value))
		default:
			_ = r.done2(c, nil)
		}
	}
}
