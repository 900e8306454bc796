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
	// programs are the parts of a spawn, one for each.
	programs []map[string]string
}

// parse1 reads a line of PMI-1: cmd=NAME KEY=VALUE ... A value ends at the next blank, but that of
// "value" and "msg" at the end.
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

// reply1 answers in PMI-1: name, then keys and values. It has no error: who does not read it has
// ended, and the next read tells.
func (r *rank) reply1(name string, pairs ...string) error {
	var b strings.Builder
	b.WriteString("cmd=" + name)
	for i := 0; i+1 < len(pairs); i += 2 {
		b.WriteString(" " + pairs[i] + "=" + pairs[i+1])
	}
	b.WriteByte('\n')
	_, _ = io.WriteString(r.conn, b.String())
	return nil
}

// maxes are the longest texts of PMI-1 that a task may put, as Slurm and MPICH's own launcher have them.
var maxes = []string{"kvsname_max", "256", "keylen_max", "64", "vallen_max", "1024"}

// serve1 speaks PMI-1 with a task, to its end.
func (r *rank) serve1(in *bufio.Reader) error {
	commands := commands1()
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
			if c, err = readSpawn1(in); err != nil {
				return ended(err)
			}
		}
		do := commands[c.name]
		if do == nil {
			return fmt.Errorf("command %.40q is none of PMI-1", c.name)
		}
		if err := do(r, c); err != nil {
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

// maxSpawn bounds the bytes of a spawn of PMI-1.
const maxSpawn = 16 << 20

// readSpawn1 reads the lines of a spawn behind its first: KEY=VALUE, for each program to endcmd.
func readSpawn1(in *bufio.Reader) (command, error) {
	c := command{name: "spawn"}
	part := map[string]string{}
	for room := maxSpawn; ; {
		line, err := readLine(in)
		if err != nil {
			return c, err
		}
		if room -= len(line); room < 0 {
			return c, fmt.Errorf("a spawn of more than %d bytes", maxSpawn)
		}
		key, value, ok := strings.Cut(line, "=")
		switch {
		case ok && key != "mcmd":
			part[key] = value
		case line == "endcmd":
			c.programs = append(c.programs, part)
			if n, err := strconv.Atoi(part["totspawns"]); err != nil || len(c.programs) >= n {
				c.args = part // what holds for all is said with each
				return c, nil
			}
			part = map[string]string{}
		case !ok:
			return c, fmt.Errorf("it says %.80q, which is no PMI", line)
		}
	}
}

// commands1 are those of PMI-1. It is a function so that srun, which speaks none of them, pays nothing.
func commands1() map[string]func(*rank, command) error {
	return map[string]func(*rank, command) error{
		"get_maxes":         (*rank).maxes1,
		"get_appnum":        (*rank).appnum1,
		"get_my_kvsname":    (*rank).kvsname1,
		"get_universe_size": (*rank).universe1,
		"put":               (*rank).put1,
		"get":               (*rank).get1,
		"barrier_in":        (*rank).barrier1,
		"publish_name":      (*rank).publish1,
		"unpublish_name":    (*rank).unpublish1,
		"lookup_name":       (*rank).lookup1,
		"spawn":             (*rank).spawn1,
		"abort":             (*rank).abort1,
		"finalize":          (*rank).finalize1,
	}
}

func (r *rank) maxes1(command) error { return r.reply1("maxes", maxes...) }

func (r *rank) appnum1(command) error { return r.reply1("appnum", "appnum", r.appnum()) }

func (r *rank) kvsname1(command) error {
	return r.reply1("my_kvsname", "kvsname", r.server.setup.Job)
}

func (r *rank) universe1(command) error {
	return r.reply1("universe_size", "size", strconv.Itoa(r.server.setup.Universe), "rc", "0")
}

func (r *rank) put1(c command) error {
	if r.server.put(c.args["key"], c.args["value"]) != nil {
		return r.reply1("put_result", "rc", "-1", "msg", "too_long")
	}
	return r.reply1("put_result", "rc", "0", "msg", "success")
}

func (r *rank) barrier1(command) error {
	return r.server.fence(r, func() { _ = r.reply1("barrier_out", "rc", "0") })
}

func (r *rank) publish1(c command) error {
	r.server.link.Publish(c.args["service"], c.args["port"], false, r.named("publish_result", ""))
	return nil
}

func (r *rank) unpublish1(c command) error {
	r.server.link.Unpublish(c.args["service"], r.named("unpublish_result", ""))
	return nil
}

func (r *rank) lookup1(c command) error {
	r.server.link.Lookup(c.args["service"], false, r.named("lookup_result", "port"))
	return nil
}

func (r *rank) spawn1(c command) error {
	r.spawn(&words1, c, func(job string, err error) {
		if err != nil {
			_ = r.reply1("spawn_result", "rc", "-1", "msg", strings.ReplaceAll(err.Error(), " ", "_"))
			return
		}
		_ = r.reply1("spawn_result", "rc", "0", "jobid", job)
	})
	return nil
}

func (r *rank) abort1(c command) error {
	code, err := strconv.Atoi(c.args["exitcode"])
	if err != nil {
		code = 1
	}
	r.server.abort(r, code, c.args["msg"])
	return nil
}

func (r *rank) finalize1(command) error {
	r.server.leave(r)
	return r.reply1("finalize_ack", "rc", "0")
}

// get1 answers with a pair of the step, or what the step is.
func (r *rank) get1(c command) error {
	key := c.args["key"]
	value, ok := r.server.get(key)
	if !ok {
		value = r.server.jobAttr(key)
		ok = value != ""
	}
	if !ok {
		return r.reply1("get_result", "rc", "-1", "msg", "key_"+key+"_not_found", "value", "unknown")
	}
	return r.reply1("get_result", "rc", "0", "msg", "success", "value", value)
}

// named answers for the name service; the name's value goes by the key as.
func (r *rank) named(reply, as string) func(value []byte, err error) {
	return func(value []byte, err error) {
		if err != nil {
			_ = r.reply1(reply, "rc", "-1", "info", "failed", "msg", strings.ReplaceAll(err.Error(), " ", "_"))
			return
		}
		pairs := []string{"rc", "0", "info", "ok"}
		if as != "" {
			pairs = append(pairs, as, string(value))
		}
		_ = r.reply1(reply, pairs...)
	}
}
