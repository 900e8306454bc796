package shell

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"dev.muster/ui/forms"
)

// TestServe: what is typed reaches the command on a terminal of the size that the browser has said, and what that shows
// the browser, which hears why it ended.
func TestServe(t *testing.T) {
	program := filepath.Join(t.TempDir(), "muster")
	text := "#!/bin/sh\necho \"$1 $2 $(stty size) $TERM\"\nwhile read -r x; do [ \"$x\" = end ] && exit; echo \"got $x\"; done\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	c, me := forms.NewCommands(program, "/s", nil), forms.User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	var stays atomic.Bool
	stays.Store(true)
	ended := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		ended <- Serve(r.Context(), ws, c, me, Words("7", "n1", "", ""), stays.Load)
	}))
	defer s.Close()
	ctx := t.Context()
	ws, _, err := websocket.Dial(ctx, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	say := func(kind websocket.MessageType, text string) {
		if err := ws.Write(ctx, kind, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	shown := ""
	until := func(want string) {
		for !strings.Contains(shown, want) {
			_, text, err := ws.Read(context.Background())
			if err != nil {
				t.Fatalf("%v; shown so far: %q", err, shown)
			}
			shown += string(text)
		}
	}
	say(websocket.MessageText, `{"cols":101,"rows":33}`)
	until("srun --jobid=7 33 101 xterm-256color")
	say(websocket.MessageText, `{"cols":0,"rows":-1}`) // nonsense does no harm
	say(websocket.MessageBinary, "hello\n")
	until("got hello")
	say(websocket.MessageBinary, "end\n")
	for err == nil {
		_, _, err = ws.Read(ctx)
	}
	if why := <-ended; websocket.CloseStatus(err) != websocket.StatusNormalClosure || why != errEnded.Error() ||
		!strings.Contains(err.Error(), why) {
		t.Errorf("%v, %s", err, why)
	}
	if got := Words("7", "", "", ""); slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, "nodelist") }) {
		t.Errorf("%q", got)
	}
}

// TestOwnScripts: what srun runs on the server is the site's choice, not the user's.
func TestOwnScripts(t *testing.T) {
	for _, c := range []struct {
		prolog, epilog string
		want           []string
	}{
		{"", "", []string{"--prolog=none", "--epilog=none", "--mpi=none", "--propagate=NONE"}},
		{"/site/p", "/site/e", []string{"--prolog=/site/p", "--epilog=/site/e"}},
	} {
		got := Words("7", "", c.prolog, c.epilog)
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%q lacks %s", got, w)
			}
		}
	}
}
