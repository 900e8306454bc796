package sacctmgr

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// TestCommitPrompt: who is asked has thirty seconds; what comes later is the next line of the session.
func TestCommitPrompt(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration
		typed string
		want  bool
		said  string
		left  string
	}{
		{29 * time.Second, "y\nquit\n", true, "", "quit\n"},
		{time.Second, "what\nyes\n", true, "Y or N please\n(N/y): ", ""},
		{time.Second, "\nquit\n", false, "", "quit\n"},
		{31 * time.Second, "y\nquit\n", false, "timeout", "y\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			defer w.Close()
			go func() {
				time.Sleep(tt.after)
				_, _ = io.WriteString(w, tt.typed)
				w.Close()
			}()
			var out strings.Builder
			m := &manager{sys: &front.Sys{Stdin: r, Stdout: &out}, lines: &lines{in: bufio.NewReader(r)}}
			if got := m.agreed(); got != tt.want {
				t.Errorf("%q after %s: %v", tt.typed, tt.after, got)
			}
			if want := "Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): " + tt.said + "\n"; out.String() != want {
				t.Errorf("%q after %s: said %q, want %q", tt.typed, tt.after, out.String(), want)
			}
			if got, _ := m.lines.next(nil); got != tt.left {
				t.Errorf("%q after %s: %q is left, want %q", tt.typed, tt.after, got, tt.left)
			}
		})
	}
}

// TestFieldsOfEntities: no field brings a listing down, whatever it lists; one of another entity is empty, as in Slurm.
func TestFieldsOfEntities(t *testing.T) {
	books := &show.Books{}
	books.Assocs = []*cluster.Association{{ID: 1, Account: "root"}}
	rows := map[string]mgrRow{"account": {account: &cluster.Account{Name: "a"}},
		"user":        {user: &cluster.User{Name: "u"}},
		"association": {assoc: books.Assocs[0]}, "qos": {qos: &cluster.QOS{Name: "q"}},
		"tres": {tres: "cpu", number: 1}}
	own := map[string]string{"AdminLevel": "user"}
	for entity, row := range rows {
		row.books = books
		for _, c := range mgrColumns() {
			text := c.Of(&row)
			if of := own[c.Name]; of != "" && (text != "") != (of == entity) {
				t.Errorf("%s of %s: %q", c.Name, entity, text)
			}
		}
	}
}
