package preview

import (
	"slices"
	"strings"

	"dev.muster/slurm/conf"
)

// gone are words of notes on settings that have no effect and that nothing replaces by itself. TestLost compares them
// with the notes of package conf.
var gone = [...]string{
	"cannot be loaded", "there is no plugin", "there is no such plugin", "is not measured", "no IMEX channels",
	"no Slingshot services", "is not capped", "nodes are not kept for jobs", "open no PAM session",
	"GPUs keep the clocks", "CPUs keep the frequencies", "remote licenses are not known", "is for databases",
	"ignored", "is not a setting of", "want ", "is not known", "is not a number", "is not understood", "there is no ",
}

// Actions for settings, one for each verdict.
const (
	keepLine    = "none: keep the line"
	removeLine  = "none: the line may stay or go"
	readLine    = "read the note, then remove the line or use the alternative"
	replaceLine = "find a replacement or accept the loss, then remove the line"
	refusedLine = "correct or remove the line: muster does not start with it"
	correctLine = "correct the script"
)

// settings lists what slurm.conf and the files beside it set, except plugins. Lost ones come first.
func settings(s *Site) (out []Item) {
	for _, err := range s.Refused {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			where, text := splitPlace(line)
			name, value, how := splitNote(text)
			out = append(out, Item{
				Where:   where,
				Name:    name,
				Value:   value,
				Verdict: Lost,
				How:     how,
				Action:  refusedLine,
			})
		}
	}
	for _, text := range s.Scripts {
		out = append(out, Item{Name: "script", Verdict: Lost, How: text, Action: correctLine})
	}
	noted := map[string]bool{}
	for _, note := range s.Notes {
		where, text := splitPlace(note)
		if strings.HasPrefix(text, spankWord) {
			continue
		}
		name, value, how := splitNote(text)
		noted[strings.ToLower(name)] = true
		if isPlugin(name) && replaced(s, name) {
			continue
		}
		verdict, action := judge(s, name, value, how)
		out = append(out, Item{
			Where:   where,
			Name:    name,
			Value:   value,
			Verdict: verdict,
			How:     how,
			Action:  action,
		})
	}
	for _, note := range s.Fine {
		where, text := splitPlace(note)
		name, value, how := splitNote(text)
		noted[strings.ToLower(name)] = true
		if !isPlugin(name) && !strings.HasPrefix(text, spankWord) {
			how = strings.TrimPrefix(how, "needs no setting: ")
			out = append(out, Item{
				Where:   where,
				Name:    name,
				Value:   value,
				Verdict: Needless,
				How:     how,
				Action:  removeLine,
			})
		}
	}
	out = append(out, adopted(s, noted)...)
	rank := []Verdict{
		Lost,
		Different,
		Needless,
		Adopted,
	}
	slices.SortStableFunc(out, func(a, b Item) int {
		return slices.Index(rank, a.Verdict) - slices.Index(rank, b.Verdict)
	})
	return out
}

// adopted lists the settings of slurm.conf that have no note.
func adopted(s *Site, noted map[string]bool) (out []Item) {
	if s.Config == nil {
		return nil
	}
	for key, value := range s.Config.Keys {
		name := spell(key)
		if !noted[key] && !isPlugin(name) {
			out = append(out, Item{
				Name:    name,
				Value:   value,
				Verdict: Adopted,
				Action:  keepLine,
			})
		}
	}
	slices.SortFunc(out, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// judge returns the verdict on a setting with a note.
func judge(s *Site, name, value, how string) (Verdict, string) {
	if value == "" && s.Config != nil {
		value = s.Config.Keys[strings.ToLower(name)]
	}
	has := func(w string) bool { return strings.Contains(how, w) }
	switch {
	case slices.ContainsFunc(gone[:], has) && !none(value):
		return Lost, replaceLine
	case has("not needed") || none(value):
		return Needless, removeLine
	}
	return Different, readLine
}

// splitNote cuts a note into the setting, its value and the remark: NAME=VALUE REMARK or NAME: REMARK.
func splitNote(text string) (name, value, how string) {
	end := strings.IndexAny(text, " =:")
	if end < 0 {
		return text, "", ""
	}
	name, how = spell(text[:end]), text[end:]
	if how[0] == '=' {
		value, how, _ = strings.Cut(how[1:], " ")
		value = strings.TrimRight(value, ":")
	}
	return name, value, strings.TrimLeft(how, ": ")
}

// spell writes a key as Slurm's manuals do, or as it was typed.
func spell(key string) string {
	lower := strings.ToLower(key)
	if known := conf.Spell(lower); known != lower {
		return known
	}
	return key
}

// replaced reports whether the list of plugins shows that muster does not adopt a key's value.
func replaced(s *Site, name string) bool {
	if s.Config == nil {
		return false
	}
	words := strings.Split(s.Config.Keys[strings.ToLower(name)], ",")
	return slices.ContainsFunc(words, func(w string) bool {
		return !none(w) && pair(name, w).Verdict != Adopted
	})
}
