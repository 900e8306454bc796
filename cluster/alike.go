package cluster

import "dev.muster/wire"

// alike keeps parts of specs that many jobs have in common, by their JSON, so that each is in memory once: a shape, a user's
// groups and limits. It is no part of the state, and copies of that have none: what is forgotten is merely there twice.
type alike map[string]any

// maxAlike is how many parts are kept before all are forgotten.
const maxAlike = 8192

// share gives back what was given, or an equal value that is kept already. Neither is changed afterwards.
func share[T any](a alike, v T) T {
	text, err := wire.Append(make([]byte, 0, 512), &v)
	if a == nil || err != nil {
		return v
	}
	if kept, ok := a[string(text)].(T); ok {
		return kept
	}
	if len(a) >= maxAlike {
		clear(a)
	}
	a[string(text)] = v
	return v
}

// share makes the spec of a job that enters the state use what others use.
func (a alike) share(s *JobSpec) {
	if s.Layout == nil { // an old record that asks for nothing
		s.Layout = &Layout{}
	}
	s.Layout, s.Groups, s.Rlimits, s.Partitions = share(a, s.Layout), share(a, s.Groups), share(a, s.Rlimits), share(a, s.Partitions)
	for _, text := range []*string{&s.User, &s.Group, &s.Account, &s.QOS, &s.SubmitHost} {
		*text = share(a, *text)
	}
}
