package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// command is what a task asks for.
type command struct {
	name string
	args map[string]string
}

// parse1 reads a line of PMI-1: cmd=NAME KEY=VALUE ... A value ends at the next blank, but that of "value" and "msg" at the end.
func parse1(line string) (command, error) {
	c := command{args: map[string]string{}}
	for rest := strings.TrimLeft(line, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key, after, ok := strings.Cut(rest, "=")
		if !ok || strings.Contains(key, " ") {
			return c, fmt.Errorf("it says %.80q, which is no PMI", line)
		}
		value := after
		if rest = ""; key != "value" && key != "msg" {
			value, rest, _ = strings.Cut(after, " ")
		}
		if key == "cmd" || key == "mcmd" {
			c.name = value
			continue
		}
		c.args[key] = value
	}
	if c.name == "" {
		return c, fmt.Errorf("it says %.80q, which is no PMI", line)
	}
	return c, nil
}

// reply1 answers in PMI-1: name, then keys and values.
func (r *rank) reply1(name string, pairs ...string) {
	var b strings.Builder
	b.WriteString("cmd=" + name)
	for i := 0; i+1 < len(pairs); i += 2 {
		b.WriteString(" " + pairs[i] + "=" + pairs[i+1])
	}
	b.WriteByte('\n')
	_, _ = io.WriteString(r.conn, b.String()) // who does not read it has ended: the next read tells
}

// maxes are the longest texts of PMI-1 that a task may put, as Slurm and MPICH's own launcher have them.
var maxes = []string{"kvsname_max", "256", "keylen_max", "64", "vallen_max", "1024"}

// serve1 speaks PMI-1 with a task, to its end.
func (r *rank) serve1(in *bufio.Reader) error {
	for {
		line, err := readLine(in)
		if err != nil {
			return ended(err)
		}
		c, err := parse1(line)
		if err != nil {
			return err
		}
		if c.name == "spawn" {
			if err := skipSpawn(in, line); err != nil {
				return ended(err)
			}
		}
		over, err := r.do1(c)
		if over || err != nil {
			return err
		}
	}
}

// ended is what is wrong with the end of a connection: nothing, when it just ends.
func ended(err error) error {
	var op interface{ Timeout() bool }
	if errors.Is(err, io.EOF) || errors.As(err, &op) {
		return nil
	}
	return err
}

// skipSpawn passes the lines of a spawn by.
func skipSpawn(in *bufio.Reader, line string) error {
	for line != "endcmd" {
		var err error
		if line, err = readLine(in); err != nil {
			return err
		}
	}
	return nil
}

// spawnRefused says why MPI_Comm_spawn does not work.
const spawnRefused = "tasks can not start further tasks (MPI_Comm_spawn): ask for all of them when the step begins"

// do1 does what a task asks for; over: it needs nothing more.
func (r *rank) do1(c command) (over bool, err error) {
	s := r.server
	switch c.name {
	case "get_maxes":
		r.reply1("maxes", maxes...)
	case "get_appnum":
		r.reply1("appnum", "appnum", "0")
	case "get_my_kvsname":
		r.reply1("my_kvsname", "kvsname", s.setup.Job)
	case "get_universe_size":
		r.reply1("universe_size", "size", strconv.Itoa(s.setup.Universe), "rc", "0")
	case "put":
		if err := s.put(c.args["key"], c.args["value"]); err != nil {
			r.reply1("put_result", "rc", "-1", "msg", "too_long")
			return false, nil
		}
		r.reply1("put_result", "rc", "0", "msg", "success")
	case "get":
		r.get1(c.args["key"])
	case "barrier_in":
		return false, s.fence(r, func() { r.reply1("barrier_out", "rc", "0") })
	case "publish_name":
		s.call(callPublish, r.named("publish_result", ""), c.args["service"], c.args["port"])
	case "unpublish_name":
		s.call(callUnpublish, r.named("unpublish_result", ""), c.args["service"])
	case "lookup_name":
		s.call(callLookup, r.named("lookup_result", "port"), c.args["service"])
	case "spawn":
		s.say("task %d: %s", r.rank, spawnRefused)
		r.reply1("spawn_result", "rc", "-1", "msg", "spawn_is_not_supported")
	case "abort":
		code, err := strconv.Atoi(c.args["exitcode"])
		if err != nil {
			code = 1
		}
		s.abort(r, code, c.args["msg"])
	case "finalize":
		s.leave(r)
		r.reply1("finalize_ack", "rc", "0")
	default:
		return false, fmt.Errorf("command %.40q is none of PMI-1", c.name)
	}
	return false, nil
}

// get1 answers with a pair of the step, or what the step is.
func (r *rank) get1(key string) {
	value, ok := r.server.get(key)
	if !ok {
		value = r.server.jobAttr(key)
		ok = value != ""
	}
	if !ok {
		r.reply1("get_result", "rc", "-1", "msg", "key_"+key+"_not_found", "value", "unknown")
		return
	}
	r.reply1("get_result", "rc", "0", "msg", "success", "value", value)
}

// named answers for the name service; the name's value goes by the key as.
func (r *rank) named(reply, as string) func(value, failed string) {
	return func(value, failed string) {
		if failed != "" {
			r.reply1(reply, "rc", "-1", "info", "failed", "msg", strings.ReplaceAll(failed, " ", "_"))
			return
		}
		pairs := []string{"rc", "0", "info", "ok"}
		if as != "" {
			pairs = append(pairs, as, value)
		}
		r.reply1(reply, pairs...)
	}
}
