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

// parse2 reads the text of a command of PMI-2.
func parse2(text string) (command, error) {
	c := command{args: map[string]string{}}
	for rest := text; rest != ""; {
		var pair string
		pair, rest = cutPair(rest)
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			if pair == "" {
				continue
			}
			return c, fmt.Errorf("it says %.80q, which is no PMI-2", text)
		}
		if key == "cmd" {
			c.name = value
			continue
		}
		c.args[key] = value
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

// reply2 answers a command of PMI-2: keys and values.
func (r *rank) reply2(c command, pairs ...string) {
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
		r.server.say("task %d: the answer to %s has %d bytes, more than PMI-2 has room for", r.rank, c.name, len(text))
		return
	}
	_, _ = fmt.Fprintf(r.conn, "%*d%s", head, len(text), text) // who does not read it has ended: the next read tells
}

// failed2 is the return code of PMI-2 for what can not be done (PMI2_FAIL).
const failed2 = "14"

// fail2 answers that something can not be done.
func (r *rank) fail2(c command, why string) { r.reply2(c, "rc", failed2, "errmsg", why) }

// found2 answers with a value, or that there is none.
func (r *rank) found2(c command, value string, ok bool) {
	if !ok {
		r.reply2(c, "rc", "0", "found", "FALSE")
		return
	}
	r.reply2(c, "rc", "0", "found", "TRUE", "value", value)
}

// serve2 speaks PMI-2 with a task, to its end.
func (r *rank) serve2(in *bufio.Reader) error {
	for {
		c, err := read2(in)
		if err != nil {
			return ended(err)
		}
		over, err := r.do2(c)
		if over || err != nil {
			return err
		}
	}
}

// do2 does what a task asks for; over: it needs nothing more.
func (r *rank) do2(c command) (over bool, err error) {
	s, key := r.server, c.args["key"]
	done := func(err error) {
		if err != nil {
			r.fail2(c, err.Error())
			return
		}
		r.reply2(c, "rc", "0")
	}
	switch c.name {
	case "fullinit":
		r.reply2(c, "rc", "0", "pmi-version", "2", "pmi-subversion", "0", "rank", strconv.Itoa(r.rank), "size", strconv.Itoa(s.setup.Size),
			"appnum", "0", "debugged", "FALSE", "pmiverbose", "FALSE")
	case "job-getid":
		r.reply2(c, "rc", "0", "jobid", s.setup.Job)
	case "kvs-put":
		done(s.put(key, c.args["value"]))
	case "kvs-get":
		value, ok := s.get(key)
		r.found2(c, value, ok)
	case "kvs-fence":
		return false, s.fence(r, func() { r.reply2(c, "rc", "0") })
	case "info-getjobattr":
		value := s.jobAttr(key)
		r.found2(c, value, value != "")
	case "info-putnodeattr":
		done(s.setAttr(key, c.args["value"]))
	case "info-getnodeattr":
		r.nodeAttr2(c, key)
	case "name-publish":
		s.call(callPublish, r.named2(c), c.args["name"], c.args["port"])
	case "name-unpublish":
		s.call(callUnpublish, r.named2(c), c.args["name"])
	case "name-lookup":
		s.call(callLookup, r.named2(c), c.args["name"])
	case "spawn":
		s.say("task %d: %s", r.rank, spawnRefused)
		r.fail2(c, spawnRefused)
	case "job-connect", "job-disconnect":
		r.fail2(c, "steps can not be connected")
	case "abort":
		s.abort(r, 1, c.args["msg"])
	case "finalize":
		s.leave(r)
		r.reply2(c, "rc", "0")
	default:
		return false, fmt.Errorf("command %.40q is none of PMI-2", c.name)
	}
	return false, nil
}

// nodeAttr2 answers with an attribute of the node, if the task wishes so once there is one.
func (r *rank) nodeAttr2(c command, key string) {
	var wait func(string)
	if strings.EqualFold(c.args["wait"], "TRUE") {
		wait = func(value string) { r.found2(c, value, true) }
	}
	value, ok := r.server.attr(key, wait)
	if ok || wait == nil {
		r.found2(c, value, ok)
	}
}

// named2 answers for the name service.
func (r *rank) named2(c command) func(value, failed string) {
	return func(value, failed string) {
		switch {
		case failed != "":
			r.fail2(c, failed)
		case c.name == "name-lookup":
			r.reply2(c, "rc", "0", "found", "TRUE", "value", value, "port", value)
		default:
			r.reply2(c, "rc", "0")
		}
	}
}
