package cluster

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"dev.muster/wire"
)

// The configuration's history: for each change who made it, and what of the configuration was another before. So an
// earlier one is found by going back from the active one, and a change of one partition costs no more than that
// partition.

// Bounds of the history; the oldest changes are forgotten first.
const (
	maxConfigChanges = 50
	maxConfigHistory = 8 << 20 // bytes of what was before
)

// ConfigChange is one change of the configuration.
type ConfigChange struct {
	N  int       `json:"n"` // from 1 on
	At time.Time `json:"at"`
	By string    `json:"by"`
	// How it was made: apply, undo, file (a server's, when it began to lead), reconfigure, or the kind of another
	// command.
	How string `json:"how"`
	// Was is what the fields that changed were before, by their names in JSON.
	Was map[string]Splice `json:"was,omitempty"`
}

// Splice is an older value of a field: of a list only the part that changed.
type Splice struct {
	// From is where the part begins, and Len how many elements are there now; Len is -1 for a whole value.
	From int             `json:"from,omitempty"`
	Len  int             `json:"len"`
	Old  wire.RawMessage `json:"old,omitempty"` // none: the field was not there
}

// size is about what a change takes in memory.
func (c *ConfigChange) size() (n int) {
	for _, s := range c.Was {
		n += len(s.Old)
	}
	return n
}

// ConfigHistory lists the changes of the configuration that are remembered, the oldest first.
func (t *tables) ConfigHistory() []ConfigChange { return t.configs }

// ConfigAt is the configuration as change n left it; 0 is what was before the first one. A change that is forgotten
// is an error.
func (t *tables) ConfigAt(n int) (*Config, error) {
	last := len(t.configs) - 1
	if last < 0 || n > t.configs[last].N || n < t.configs[0].N-1 {
		from := 0
		to := -1
		if last >= 0 {
			from = t.configs[0].N - 1
			to = t.configs[last].N
		}
		if to < 0 {
			return nil, Errorf(NotFound, "", "no change of the configuration is remembered")
		}
		return nil, Errorf(NotFound, "", "configuration %d is not remembered: want one from %d to %d", n, from, to)
	}
	fields, err := configFields(t.config)
	if err != nil {
		return nil, err
	}
	for i := last; i >= 0 && t.configs[i].N > n; i-- {
		for name, s := range t.configs[i].Was {
			if err := s.restore(fields, name); err != nil {
				return nil, fmt.Errorf("configuration %d: %s: %w", n, name, err)
			}
		}
	}
	text, err := wire.Marshal(fields)
	if err != nil {
		return nil, err
	}
	var cfg Config
	return &cfg, wire.Unmarshal(text, &cfg)
}

// noteConfig remembers a change from an older configuration to the active one. Changes that nobody says how they were
// made come from older versions of muster: these are remembered only once others are.
func (t *tx) noteConfig(how, otherwise string, old *Config) error {
	if how == "" {
		if how = otherwise; len(t.configs) == 0 {
			return nil
		}
	}
	was, err := configDiff(old, t.config)
	if err != nil || len(was) == 0 {
		return err
	}
	c := ConfigChange{
		N:   1,
		At:  t.at,
		By:  t.by.User,
		How: how,
		Was: was,
	}
	switch {
	case t.by.System:
		c.By = "muster"
	case c.By == "":
		c.By = fmt.Sprintf("uid %d", t.by.UID)
	}
	before := t.configs
	if len(before) > 0 {
		c.N = before[len(before)-1].N + 1
	}
	list := append(slices.Clone(before), c)
	total := 0
	for i := len(list) - 1; i >= 0; i-- {
		if total += list[i].size(); len(list)-i > maxConfigChanges || total > maxConfigHistory {
			if list = list[i+1:]; len(list) == 0 { // too much for itself: that there was a change is known all the same
				c.Was = nil
				list = []ConfigChange{c}
			}
			break
		}
	}
	keepOld(t, &t.configs)
	t.configs = list
	return nil
}

// configFields are the fields of a configuration as JSON.
func configFields(c *Config) (map[string]wire.RawMessage, error) {
	text, err := wire.Marshal(c)
	if err != nil {
		return nil, err
	}
	out := map[string]wire.RawMessage{}
	return out, wire.Unmarshal(text, &out)
}

// configDiff is what of an older configuration is not in a newer one.
func configDiff(old, now *Config) (map[string]Splice, error) {
	before, err := configFields(old)
	if err != nil {
		return nil, err
	}
	after, err := configFields(now)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	out := map[string]Splice{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(before[name], after[name]) {
			out[name] = splice(before[name], after[name])
		}
	}
	return out, nil
}

// Same reports whether two configurations are the same value.
func (c *Config) Same(o *Config) (bool, error) {
	d, err := configDiff(c, o)
	return len(d) == 0, err
}

// splice is how one gets from a field's new value to the old one.
func splice(old, now wire.RawMessage) Splice {
	a, isList := listIn(old)
	b, areLists := listIn(now)
	if !isList || !areLists {
		return Splice{Len: -1, Old: old}
	}
	from := 0
	for from < min(len(a), len(b)) && bytes.Equal(a[from], b[from]) {
		from++
	}
	end := 0
	for end < min(len(a), len(b))-from && bytes.Equal(a[len(a)-1-end], b[len(b)-1-end]) {
		end++
	}
	part, err := wire.Marshal(a[from : len(a)-end])
	if err != nil {
		return Splice{Len: -1, Old: old}
	}
	return Splice{From: from, Len: len(b) - from - end, Old: part}
}

// listIn are the values of a list.
func listIn(text wire.RawMessage) (list []wire.RawMessage, ok bool) {
	if len(text) == 0 || text[0] != '[' {
		return nil, false
	}
	return list, wire.Unmarshal(text, &list) == nil
}

// restore puts a field's older value into the fields of a configuration.
func (s *Splice) restore(fields map[string]wire.RawMessage, name string) error {
	if s.Len < 0 {
		if fields[name] = s.Old; len(s.Old) == 0 {
			delete(fields, name)
		}
		return nil
	}
	var list, part []wire.RawMessage
	if err := wire.Unmarshal(fields[name], &list); err != nil {
		return err
	}
	if err := wire.Unmarshal(s.Old, &part); err != nil {
		return err
	}
	if s.From+s.Len > len(list) {
		return fmt.Errorf("%d elements are there, want %d", len(list), s.From+s.Len)
	}
	text, err := wire.Marshal(slices.Replace(list, s.From, s.From+s.Len, part...))
	fields[name] = text
	return err
}
