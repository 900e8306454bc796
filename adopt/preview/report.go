// Package preview previews a migration from Slurm: it makes a report of texts that the caller has read. It opens no
// file and runs no program.
package preview

// Report is the preview.
type Report struct {
	Source   string   `json:"source"`
	Cluster  string   `json:"cluster,omitempty"`
	Release  string   `json:"release,omitempty"`
	Size     Size     `json:"size"`
	Settings []Item   `json:"settings"`
	Plugins  []Item   `json:"plugins"`
	Database Database `json:"database"`
	Programs []Item   `json:"programs"`
	Unread   []string `json:"unread,omitempty"`
	Lost     int      `json:"lost"` // how many items are lost
}

// Make makes the report.
func Make(s *Site) *Report {
	show := readShow(s.Show)
	keys := keysOf(s, show)
	r := &Report{
		Source: s.Source, Release: show["slurm_version"], Size: measure(s), Plugins: plugins(s, keys),
		Settings: settings(s), Database: database(s, keys, show), Programs: programs(s), Unread: s.Failed,
	}
	r.Cluster = keys["clustername"]
	for _, list := range r.lists() {
		r.Lost += len(rowsOf(list, Lost, false))
	}
	return r
}

// lists returns all items.
func (r *Report) lists() [][]Item {
	return [][]Item{r.Settings, r.Plugins, r.Database.Parts, r.Programs}
}
