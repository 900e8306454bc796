package conf

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// The files of burst_buffer/lua.
const (
	burstFile   = "burst_buffer.conf"
	burstScript = "burst_buffer.lua"
)

// burstPlugin is the plugin that is the script.
const burstPlugin = "burst_buffer/lua"

// burstLongest is the longest time that burst_buffer.conf may say.
const burstLongest = 2073600 * time.Second

// burstType reads BurstBufferType.
func burstType(r *reader, file string, n int, p pair) {
	switch strings.ToLower(p.value) {
	case "", "(null)", "none":
	case burstPlugin:
		r.cfg.Burst = &cluster.BurstConfig{Directive: "BB_LUA", StageIn: 24 * time.Hour, StageOut: 24 * time.Hour,
			Validate: 5 * time.Second, Other: 5 * time.Minute, Poll: 15 * time.Second}
	default:
		r.note(file, n, "BurstBufferType=%s: there is no such plugin; %s calls a script of yours", p.value, burstPlugin)
	}
}

// burstTasks is how many tasks of an array stage in at a time, in SchedulerParameters.
const burstTasks = "bb_array_stage_cnt"

// settleBurst reads what SchedulerParameters says of burst buffers.
func settleBurst(r *reader) {
	if r.cfg.Burst == nil {
		return
	}
	for word := range strings.SplitSeq(r.cfg.Keys["schedulerparameters"], ",") {
		name, text, _ := strings.Cut(strings.TrimSpace(word), "=")
		if v, err := strconv.ParseUint(text, 10, 31); err == nil && strings.EqualFold(name, burstTasks) {
			r.cfg.Burst.Tasks = int(v)
		}
	}
}

// burstNeedless says why a key of burst_buffer.conf has no effect.
var burstNeedless = [...]struct{ key, why string }{
	{"defaultpool", "pools are not counted"},
	{"getsysstate", "it is for burst_buffer/datawarp"},
	{"getsysstatus", "it is for burst_buffer/datawarp"},
	{"privatedata", burstPrivate},
}

const burstPrivate = "buffers are seen with the jobs that they are of, see PrivateData=jobs in slurm.conf"

// burstLine reads a line of burst_buffer.conf.
func burstLine(r *reader, file string, n int, ps []pair) {
	c := r.cfg.Burst
	if c == nil {
		r.note(file, n, "the line has no effect: BurstBufferType is not %s", burstPlugin)
		return
	}
	for _, p := range ps {
		switch p.key {
		case "directive":
			c.Directive = strings.TrimPrefix(p.value, "#")
		case "allowusers":
			c.Allow = burstUsers(p.value)
		case "denyusers":
			c.Deny = burstUsers(p.value)
		case "flags":
			burstFlags(r, file, n, p.value)
		default:
			burstTime(r, file, n, p)
		}
	}
	if c.Allow != nil && c.Deny != nil {
		r.refused = append(r.refused, fmt.Errorf("%s:%d: AllowUsers and DenyUsers cannot both be given", file, n))
	}
}

// burstUsers splits a list of users at commas or colons.
func burstUsers(value string) []string {
	return strings.FieldsFunc(value, func(c rune) bool { return c == ',' || c == ':' })
}

// burstFlags reads Flags.
func burstFlags(r *reader, file string, n int, value string) {
	for word := range strings.SplitSeq(value, ",") {
		switch strings.ToLower(strings.TrimSpace(word)) {
		case "teardownfailure":
			r.cfg.Burst.TearFailed = true
		case "privatedata":
			r.note(file, n, "Flags=%s has no effect: "+burstPrivate, word)
		case "", "disablepersistent":
		case "enablepersistent", "emulatecray":
			r.note(file, n, "Flags=%s has no effect: it is for burst_buffer/datawarp", word)
		default:
			r.note(file, n, "there is no flag %s", word)
		}
	}
}

// burstTime reads a time in seconds.
func burstTime(r *reader, file string, n int, p pair) {
	c := r.cfg.Burst
	times := [...]struct {
		key string
		to  *time.Duration
	}{{"stageintimeout", &c.StageIn}, {"stageouttimeout", &c.StageOut}, {"othertimeout", &c.Other},
		{"validatetimeout", &c.Validate}, {"pollinterval", &c.Poll}}
	for _, t := range times {
		if t.key != p.key {
			continue
		}
		v, err := strconv.ParseUint(p.value, 10, 31)
		if d := time.Duration(v) * time.Second; err != nil || d > burstLongest || v == 0 {
			r.refused = append(r.refused, fmt.Errorf("%s:%d: %s=%s is no number of seconds from 1 to %d",
				file, n, Spell(p.key), p.value, int(burstLongest/time.Second)))
		} else {
			*t.to = d
		}
		return
	}
	for _, k := range burstNeedless {
		if k.key == p.key {
			r.note(file, n, "%s has no effect: %s", Spell(p.key), k.why)
			return
		}
	}
	r.note(file, n, "%s "+noKey+"burst_buffer.conf; it is ignored", p.typed)
}

// burstLines writes burst_buffer.conf.
func burstLines(c *cluster.BurstConfig) []string {
	if c == nil {
		return nil
	}
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	out := []string{"Directive=" + c.Directive, "StageInTimeout=" + seconds(c.StageIn),
		"StageOutTimeout=" + seconds(c.StageOut), "ValidateTimeout=" + seconds(c.Validate),
		"OtherTimeout=" + seconds(c.Other), "PollInterval=" + seconds(c.Poll)}
	if c.Allow != nil {
		out = append(out, "AllowUsers="+strings.Join(c.Allow, ","))
	}
	if c.Deny != nil {
		out = append(out, "DenyUsers="+strings.Join(c.Deny, ","))
	}
	if c.TearFailed {
		out = append(out, "Flags=TeardownFailure")
	}
	return out
}
