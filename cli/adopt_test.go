package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"dev.muster/adopt"
	"dev.muster/api"
	"dev.muster/slurm/front"
)

// TestAdoptOptions: who is let in without a daemon, and which options are known.
func TestAdoptOptions(t *testing.T) {
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
			"log_level=debug is not known: want socket=PATH, action_no_jobs, action_adopt_failure",
		},
		{"an unknown value", "ann", "account", "action_no_jobs=maybe", 1, "want action_no_jobs=deny or ignore"},
	} {
		t.Run(c.what, func(t *testing.T) {
			env := []string{"PAM_USER=" + c.user, "PAM_TYPE=" + c.kind}
			code, out := tryAdopt(t, env, strings.Fields(c.args), nodeSocket)
			if code != c.code || !strings.Contains(out, c.says) || c.says == "" && out != "" {
				t.Errorf("%d %s", code, out)
			}
		})
	}
}

// tryAdopt runs the program where no daemon listens; it may ask only at one socket.
func tryAdopt(t *testing.T, env, argv []string, socket string) (code int, out string) {
	var b bytes.Buffer
	dial := func(path string) (api.Conn, error) {
		if path != socket {
			t.Errorf("it asks at %s", path)
		}
		return nil, errors.New("nobody listens at " + path)
	}
	code = adoptSession(&front.Sys{Stdout: &b, Stderr: &b}, env, argv, dial)
	return code, b.String()
}

// TestAdoptEnvironment: what pam_env takes from a user's file lets nobody in.
func TestAdoptEnvironment(t *testing.T) {
	for _, c := range []struct {
		what, env, args string
		code            int
		says, socket    string
	}{
		{"root before", "PAM_USER=root PAM_USER=ann PAM_TYPE=account", "", 1, "two values of PAM_USER", ""},
		{"root after", "PAM_USER=ann PAM_TYPE=account PAM_USER=root", "", 1, "two values of PAM_USER", ""},
		{"another kind", "PAM_TYPE=auth PAM_USER=ann PAM_TYPE=account", "", 1, "two values of PAM_TYPE", ""},
		{
			"a daemon of the user's", "MUSTER_SOCKET=/tmp/s HOME=/tmp PAM_USER=ann PAM_TYPE=account",
			"action_generic_failure=deny", 1, "nobody listens at " + nodeSocket, nodeSocket,
		},
		{
			"a daemon of the administrator's", "MUSTER_SOCKET=/tmp/s PAM_USER=ann PAM_TYPE=account",
			"action_generic_failure=deny socket=/run/other", 1, "nobody listens at /run/other", "/run/other",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			code, out := tryAdopt(t, strings.Fields(c.env), strings.Fields(c.args), c.socket)
			if code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("%d %s", code, out)
			}
		})
	}
}

// TestImportReport: the report of usage alone has no fields of a dump, and that of a dump has them on top.
func TestImportReport(t *testing.T) {
	for want, r := range map[string]importReport{
		`{"usage":{"lines":3,"set":2,"refused":1},"seconds":0}`: {Usage: &adopt.SharesReport{Lines: 3, Set: 2, Refused: 1}},
		`{"cluster":"c","release":"22.05","rows":1,"jobs":1,"steps":0,"reservations":0,"refused":0,"resumed":0,"seconds":0}`: {
			History: &adopt.Report{Cluster: "c", Release: "22.05", Rows: 1, Jobs: 1}},
	} {
		if text, err := r.text(); err != nil || text != want {
			t.Errorf("%s, %v; want %s", text, err, want)
		}
	}
}
