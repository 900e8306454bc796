package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/slurm/front"
)

// TestAdoptOptions: who is let in without a daemon, and which options are known.
func TestAdoptOptions(t *testing.T) {
	t.Setenv("HOME", os.Getenv("HOME")) // which is unset for good, else
	for _, c := range []struct {
		what, user, kind, args string
		code                   int
		says                   string
	}{
		{"root", "root", "account", "", 0, ""},
		{"not by PAM", "", "", "", 1, "PAM_USER and PAM_TYPE are not set"},
		{"the end of a session", "ann", "close_session", "", 0, ""},
		{"no daemon", "ann", "account", "", 0, ""},
		{"no daemon, strictly", "ann", "account", "action_generic_failure=deny", 1, "Access denied by muster: "},
		{
			"an unknown option", "ann", "account", "log_level=debug", 1,
			"log_level=debug is not known: want action_no_jobs, action_adopt_failure",
		},
		{"an unknown value", "ann", "account", "action_no_jobs=maybe", 1, "want action_no_jobs=deny or ignore"},
	} {
		var out bytes.Buffer
		sys := &front.Sys{Stdout: &out, Stderr: &out, Environ: []string{"PAM_USER=" + c.user, "PAM_TYPE=" + c.kind},
			Dial: func(context.Context) (api.Conn, error) { return nil, errors.New("nobody listens") }}
		if code := runAdopt(sys, strings.Fields(c.args)); code != c.code || !strings.Contains(out.String(), c.says) || c.says == "" && out.Len() > 0 {
			t.Errorf("%s: %d %s", c.what, code, out.String())
		}
	}
}
