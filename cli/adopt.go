package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// adoptOption is an option of pam_slurm_adopt: what may be said of it, its default first.
type adoptOption struct {
	name   string
	values []string
}

var adoptOptions = []adoptOption{
	{"action_no_jobs", []string{"deny", "ignore"}},
	{"action_adopt_failure", []string{"allow", "deny"}},
	{"action_generic_failure", []string{"ignore", "allow", "deny"}},
	{"action_unknown", []string{"newest", "deny"}},
}

// parseAdopt reads name=value arguments.
func parseAdopt(argv []string) (map[string]string, error) {
	set := map[string]string{}
	for _, o := range adoptOptions {
		set[o.name] = o.values[0]
	}
	for _, a := range argv {
		name, value, _ := strings.Cut(a, "=")
		i := slices.IndexFunc(adoptOptions, func(o adoptOption) bool { return o.name == name })
		if i < 0 {
			var names []string
			for _, o := range adoptOptions {
				names = append(names, o.name)
			}
			return nil, fmt.Errorf("%s is not known: want %s", a, strings.Join(names, ", "))
		}
		if !slices.Contains(adoptOptions[i].values, value) {
			return nil, fmt.Errorf("%s: want %s=%s", a, name, strings.Join(adoptOptions[i].values, " or "))
		}
		set[name] = value
	}
	return set, nil
}

// runAdopt is called by pam_exec for an account or a session: the process that called it, sshd say, becomes part of
// the newest job of the user on this node. Its exit code is the answer: 0 lets the user in. Texts on its output are
// for the user.
func runAdopt(sys *front.Sys, argv []string) int {
	const denied = 1
	set, err := parseAdopt(argv)
	if err != nil {
		fmt.Fprintln(sys.Stderr, "muster pam-adopt:", err)
		return denied
	}
	user, kind := sys.Getenv("PAM_USER"), sys.Getenv("PAM_TYPE")
	switch {
	case user == "" || kind == "":
		fmt.Fprintln(sys.Stderr,
			"muster pam-adopt: PAM_USER and PAM_TYPE are not set: pam_exec calls this program; "+
				"see docs/configuration.md")
		return denied
	case user == "root", kind != "account" && kind != "open_session":
		return 0
	}
	if err := os.Unsetenv("HOME"); err != nil { // below which users could have a daemon that answers as they like
		fmt.Fprintln(sys.Stderr, "muster pam-adopt:", err)
		return denied
	}
	_, err = front.Call(sys, api.AdoptSession, api.AdoptRequest{
		User: user, PID: os.Getppid(), Only: set["action_unknown"] == "deny",
	})
	if err == nil {
		return 0
	}
	action := "action_generic_failure"
	var e *api.Error
	if errors.As(err, &e) {
		switch e.Code {
		case cluster.Denied:
			action = "action_unknown"
		case cluster.NotFound:
			action = "action_no_jobs"
		case cluster.Conflict:
			action = "action_adopt_failure"
		}
	}
	if set[action] != "deny" {
		return 0
	}
	fmt.Fprintf(sys.Stdout, "Access denied by muster: %v\n", err)
	return denied
}
