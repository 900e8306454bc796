package sparse

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLines: what anybody may cause has so many lines a minute and no more, short ones, and what had none is counted.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log, long := slog.New(slog.NewTextHandler(&text, nil)), strings.Repeat("x", 1<<20)
		var l Lines
		for range 100 {
			l.Say(log.Info, "refused", "name", long, "err", errors.New(long), "n", 7)
		}
		if n := strings.Count(text.String(), "\n"); n != Most || text.Len() > Most*(maxText+maxError+200) {
			t.Errorf("%d lines, %d bytes", n, text.Len())
		}
		text.Reset()
		time.Sleep(Span)
		l.Say(log.Info, "refused", "name", "bob")
		if got := text.String(); !strings.Contains(got, "name=bob others_without_a_line=80") {
			t.Errorf("the next line is %q", got)
		}
	})
}
