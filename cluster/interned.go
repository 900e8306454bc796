package cluster

import "dev.muster/wire"

// interned keeps parts of specs that many jobs have in common, by their JSON, so that each is in memory once: a
// shape, a user's groups and limits; and names, by themselves. It is no part of the state, and copies of that have
// none: what is forgotten is merely there twice.
type interned struct {
	parts map[string]any
	names map[string]string
	text  []byte // scratch
}

func newInterned() *interned { return &interned{parts: map[string]any{}, names: map[string]string{}} }

// maxAlike is how many parts are kept before all are forgotten, and how many names.
const maxAlike = 8192

// share gives back what was given, or an equal value that is kept already. Neither is changed afterwards.
func share[T any](a *interned, v T) T {
	if a == nil {
		return v
	}
	text, err := wire.Append(a.text[:0], &v)
	if err != nil {
		return v
	}
	a.text = text
	if kept, ok := a.parts[string(text)].(T); ok {
		return kept
	}
	keep(a.parts, string(text), any(v))
	return v
}

// name is share for a text.
func (a *interned) name(text string) string {
	if a == nil || text == "" {
		return text
	}
	if kept, ok := a.names[text]; ok {
		return kept
	}
	keep(a.names, text, text)
	return text
}

func keep[T any](m map[string]T, key string, v T) {
	if len(m) >= maxAlike {
		clear(m)
	}
	m[key] = v
}

// share makes the spec of a job that enters the state use what others use.
func (a *interned) share(s *JobSpec) {
	if s.Layout == nil { // an old record that asks for nothing
		s.Layout = &Layout{}
	}
	s.Layout = share(a, s.Layout)
	s.Groups = share(a, s.Groups)
	s.Rlimits = share(a, s.Rlimits)
	s.Partitions = share(a, s.Partitions)
	for _, text := range []*string{&s.User, &s.Group, &s.Account, &s.QOS, &s.SubmitHost} {
		*text = a.name(*text)
	}
}
