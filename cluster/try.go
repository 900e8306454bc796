package cluster

import "time"

// Try is the state as it would be after a command at a time, with the command's result. The snapshot stays as it
// is; but copying marks its trees, so nobody else may try on it meanwhile.
func (s *Snapshot) Try(at time.Time, by Identity, cmd Command) (*Snapshot, any, error) {
	next := &State{s.tables}
	detach(&next.tables)
	a := next.Apply(Entry{
		Index: next.Index,
		At:    at,
		By:    by,
		Cmd:   cmd,
	})
	if a.Err != nil {
		return nil, nil, a.Err
	}
	return &Snapshot{next.tables}, a.Result, nil
}
