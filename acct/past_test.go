package acct

import (
	"log/slog"
	"testing"
	"time"
)

// TestPast: samples of minutes are read as means of parts of a time, kept as long as is said, and hours of them
// longer; what is counted is summed up; a minute that is told twice counts once; SQL reads them.
func TestPast(t *testing.T) {
	d, err := Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	p, now := PastOf(d), time.Now().Truncate(time.Hour).Add(30*time.Minute)
	began := now.Add(-3 * 24 * time.Hour)
	for at := began; at.Before(now); at = at.Add(10 * time.Minute) {
		used := 10.0
		if at.Minute() >= 30 {
			used = 30
		}
		list := []Sample{{Kind: "node", Total: 4}, {Kind: "gpu", Name: "h100", Total: 64, Used: used, Lost: 8},
			{Kind: Counted, Name: "started", Used: 2}}
		if at.Minute() == 0 {
			list = append(list, Sample{Kind: "reason", Name: "Licenses", Used: 6})
		}
		for range 2 {
			if err := p.Add(t.Context(), at, list); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(what, kind string, from, to time.Time, parts int, want Sample) {
		t.Helper()
		got, err := p.Between(t.Context(), kind, from, to, parts)
		if err != nil || len(got) == 0 || got[0].Total != want.Total || got[0].Used != want.Used ||
			got[0].Lost != want.Lost || got[0].Name != want.Name {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	hour := now.Truncate(time.Hour).Add(-2 * time.Hour)
	check("an hour of minutes", "gpu", hour, hour.Add(time.Hour), 1, Sample{Name: "h100", Total: 64, Used: 20, Lost: 8})
	check("half of it", "gpu", hour, hour.Add(30*time.Minute), 1, Sample{Name: "h100", Total: 64, Used: 10, Lost: 8})
	check("what was counted", Counted, hour, hour.Add(time.Hour), 1, Sample{Name: "started", Used: 12})
	old := now.Truncate(time.Hour).Add(-60 * time.Hour)
	check("an old hour", "gpu", old, old.Add(time.Hour), 1, Sample{Name: "h100", Total: 64, Used: 20, Lost: 8})
	check("what was there for a sixth of it", "reason", old, old.Add(time.Hour), 1, Sample{Name: "Licenses", Used: 1})
	check("what was counted then", Counted, old, old.Add(time.Hour), 1, Sample{Name: "started", Used: 12})
	table, err := d.SQL(t.Context(), "SELECT count(*), min(at) FROM samples WHERE seconds = 60 AND kind = 'gpu'")
	if err != nil || table.Rows[0][0].(int64) > 48*6+7 || table.Rows[0][1].(int64) < now.Add(-49*time.Hour).Unix() {
		t.Errorf("minutes kept: %v, %v", table.Rows, err)
	}
	if table, err = d.SQL(t.Context(),
		"SELECT count(*) FROM samples WHERE seconds = 3600 AND kind = 'gpu'"); err != nil ||
		table.Rows[0][0].(int64) < 72 {
		t.Errorf("hours kept: %v, %v", table.Rows, err)
	}
}
