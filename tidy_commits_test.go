package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const (
	maxSubject  = 72
	fewFiles    = 3 // a change of more says why in its body
	messageRule = "2026-11-24T20:40:00Z"
)

// subjects begin with what is changed, then a verb.
var subjects = regexp.MustCompile(`^(Revert "|[a-z0-9_./-]+(, [a-z0-9_./-]+)*: [a-z])`)

// TestTidyCommits reads the messages of the commits made since the rule began.
func TestTidyCommits(t *testing.T) {
	out, err := exec.Command("git", "log", "--no-merges", "--since="+messageRule, "--name-only",
		"--format=%x01%h%x02%s%x02%b%x02").Output()
	if err != nil {
		t.Skip("the history is not here: ", err)
	}
	for record := range strings.SplitSeq(string(out), "\x01") {
		part := strings.Split(record, "\x02")
		if len(part) != 4 {
			continue
		}
		hash, subject, body, files := part[0], part[1], part[2], strings.Fields(part[3])
		for _, fault := range messageFaults(subject, body, len(files)) {
			t.Errorf("commit %s %q: %s", hash, subject, fault)
		}
	}
}

func messageFaults(subject, body string, files int) []string {
	var faults []string
	if len(subject) > maxSubject {
		faults = append(faults, "the subject has more than 72 letters")
	}
	if !subjects.MatchString(subject) {
		faults = append(faults, "the subject is not \"area: verb thing\"")
	}
	if files > fewFiles && strings.TrimSpace(body) == "" {
		faults = append(faults, "more than three files change and no body says why")
	}
	return faults
}

func TestMessageFaults(t *testing.T) {
	for name, c := range map[string]struct {
		subject, body string
		files, faults int
	}{
		"good":            {"sched: name the reservations", "", 3, 0},
		"two areas":       {"acct, ui: show hours by team", "", 1, 0},
		"taken back":      {`Revert "sched: name the reservations"`, "It broke the order.", 9, 0},
		"no area":         {"name the reservations", "", 1, 1},
		"large, no body":  {"sched: name the reservations", "\n", 4, 1},
		"large, body":     {"sched: name the reservations", "They were heads.", 40, 0},
		"long":            {"sched: " + strings.Repeat("name ", 14), "", 1, 1},
		"all of them":     {"A job refused for how its nodes lie was told that all nodes of them have room", "", 5, 3},
		"capital in area": {"Sched: name", "", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := messageFaults(c.subject, c.body, c.files); len(got) != c.faults {
				t.Errorf("%q; want %d faults", got, c.faults)
			}
		})
	}
}
