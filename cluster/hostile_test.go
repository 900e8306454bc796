package cluster

import (
	"strings"
	"testing"
	"time"
)

// nested writes a text n levels deep.
func nested(open, inner, end string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

// TestHostileTexts reads texts that are made to take long: each is read or refused at once.
func TestHostileTexts(t *testing.T) {
	numbers := func(text string) error { _, err := ParseIDSet(text); return err }
	constraint := func(text string) error { _, _, err := ParseConstraint(text); return err }
	for _, c := range []struct {
		name, text string
		read       func(text string) error
	}{
		{"constraint doubling", nested("[a|b]&(", "c", ")", 40), constraint},
		{"constraint of counts", nested("[a*2|b*2]&(", "c*3", ")*2", 40), constraint},
		{"constraint in brackets", nested("[a*2|", "b", "]", 1000), constraint},
		{"deep constraint", nested("(", "a", ")", 2<<20), constraint},
		{"deep brackets", nested("[", "a", "]", 2<<20), constraint},
		{"open constraint", strings.Repeat("(", 4<<20), constraint},
		{"wide constraint", strings.Repeat("[a|b]&", 1<<18) + "c", constraint},
		{"cron", strings.Repeat("*/1,", 1<<18) + "* * * * *",
			func(text string) error { _, err := ParseCron(text); return err }},
		{"numbers", "1" + strings.Repeat(",1", 1<<20), numbers},
		{"ranges", "0-4000000" + strings.Repeat(",0-4000000", 1<<16), numbers},
		{"stepped ranges", "0-4000000:2" + strings.Repeat(",0-4000000:2", 1<<16), numbers},
		{"cron of a day that never comes", "0 0 31 2 *", func(text string) error {
			c, err := ParseCron(text)
			if at := c.Next(time.Now()); !at.IsZero() {
				t.Errorf("31 February is %v", at)
			}
			return err
		}},
		{"licenses", "a" + strings.Repeat(",a:1", 1<<18), func(text string) error { ParseLicenses(text); return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			err := c.read(c.text)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%d bytes took %v: %.80v", len(c.text), took, err)
			}
			if err != nil && len(err.Error()) > 4096 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
