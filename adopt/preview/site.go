package preview

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// Site holds the texts that describe a Slurm cluster. A text that could not be read is empty.
type Site struct {
	Source string // where the texts are from, for the title
	Live   bool   // Slurm's commands were asked, too

	Config      *cluster.Config
	Notes, Fine []string // of conf.Inspect
	Refused     []error
	Scripts     []string // errors in job_submit.lua and cli_filter.lua

	Show         string         // scontrol show config
	Nodes        string         // scontrol -o show node
	Jobs         string         // squeue -h -a -o %T
	Reservations string         // scontrol -o show reservation
	Dump         string         // sacctmgr dump, of a folder
	Books        map[string]int // of accounts, users, associations and QOS, of a running Slurm

	Scheduled []File // crontabs, units and PAM files
	Commands  []string
	Failed    []string // commands and files that could not be read, with the reason
}

// File is a text with its place.
type File struct{ Path, Text string }

// Verdict says what becomes of a part of the site.
type Verdict string

// The verdicts.
const (
	Adopted   Verdict = "adopted"    // it has the same effect in muster
	Different Verdict = "different"  // muster does it in another way
	Needless  Verdict = "not needed" // muster has no use for it
	Lost      Verdict = "lost"       // it has no effect in muster, and nothing replaces it by itself
	Works     Verdict = "works"      // a program that keeps working
)

// noAction is the action of an item that needs none.
const noAction = "none"

// Item is one part of the site.
type Item struct {
	Where   string  `json:"where,omitempty"` // FILE:LINE
	Name    string  `json:"name"`
	Value   string  `json:"value,omitempty"`
	Verdict Verdict `json:"verdict"`
	How     string  `json:"how,omitempty"`
	Action  string  `json:"action"`
}

// ReadSetting returns a setting of the output of scontrol show config, in small letters; "" if it has none.
func ReadSetting(show, key string) string { return readShow(show)[key] }

// readShow reads scontrol show config: its keys in small letters. Values that mean none are left out.
func readShow(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if !ok || key == "" || strings.ContainsAny(key, " \t") || strings.HasPrefix(value, "(null") {
			continue
		}
		if _, twice := out[key]; !twice { // sections about cgroup and MPI follow
			out[key] = value
		}
	}
	return out
}

// keysOf joins what slurm.conf sets with what a running controller has.
func keysOf(s *Site, show map[string]string) map[string]string {
	out := map[string]string{}
	if s.Config != nil {
		maps.Copy(out, s.Config.Keys)
	}
	maps.Copy(out, show)
	return out
}

// noValues are values of a key that mean that there is none.
var noValues = []string{"", "none", "0", "n/a", "unknown", "(null)"}

// none reports whether a value of a plugin's key means that there is none.
func none(value string) bool {
	v := strings.ToLower(strings.TrimSpace(value))
	plugin := v[strings.LastIndexByte(v, '/')+1:]
	return slices.Contains(noValues, plugin)
}

// splitPlace cuts the place from a note: FILE:LINE: TEXT.
func splitPlace(note string) (where, text string) {
	head, tail, ok := strings.Cut(note, ": ")
	if !ok {
		return "", note
	}
	i := strings.LastIndexByte(head, ':')
	if i < 0 {
		return "", note
	}
	if _, err := strconv.Atoi(head[i+1:]); err != nil {
		return "", note
	}
	return head, tail
}
