package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// socketOption names the socket of the node's daemon, if it is not the usual one.
const socketOption = "socket"

// parseAdopt reads name=value arguments.
func parseAdopt(argv []string) (map[string]string, error) {
	set := map[string]string{}
	for _, o := range adoptOptions {
		set[o.name] = o.values[0]
	}
	for _, a := range argv {
		name, value, _ := strings.Cut(a, "=")
		if name == socketOption && filepath.IsAbs(value) {
			set[name] = value
			continue
		}
		i := slices.IndexFunc(adoptOptions, func(o adoptOption) bool { return o.name == name })
		if i < 0 {
			names := []string{socketOption + "=PATH"}
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

// nodeSocket is where the daemon of a node listens that packages installed.
const nodeSocket = "/run/muster/muster.sock"

// runAdopt is called by pam_exec for an account or a session: the process that called it, sshd say, becomes part of
// the newest job of the user on this node. Its exit code is the answer: 0 lets the user in. Texts on its output are
// for the user.
func runAdopt(sys *front.Sys, argv []string) int {
	text, err := os.ReadFile("/proc/self/environ") // os.Environ has only the first of two values
	if err != nil {
		fmt.Fprintln(sys.Stderr, "muster pam-adopt:", err)
		return denied
	}
	return adoptSession(sys, strings.Split(string(text), "\x00"), argv, front.DialUnix)
}

// denied is the exit code that lets nobody in.
const denied = 1

// adoptSession is runAdopt with the environment as PAM made it. A user may have added to that environment, as pam_env
// allows: only PAM's own two variables count. The daemon at a socket that the user names could answer as the user likes.
func adoptSession(sys *front.Sys, env, argv []string, dial func(path string) (api.Conn, error)) int {
	set, err := parseAdopt(argv)
	if err != nil {
		fmt.Fprintln(sys.Stderr, "muster pam-adopt:", err)
		return denied
	}
	user, userErr := findOnce(env, "PAM_USER")
	kind, kindErr := findOnce(env, "PAM_TYPE")
	if err := cmp.Or(userErr, kindErr); err != nil {
		fmt.Fprintln(sys.Stderr, "muster pam-adopt:", err)
		return denied
	}
	switch {
	case user == "" || kind == "":
		fmt.Fprintln(sys.Stderr,
			"muster pam-adopt: PAM_USER and PAM_TYPE are not set: pam_exec calls this program; "+
				"see docs/configuration.md")
		return denied
	case user == "root", kind != "account" && kind != "open_session":
		return 0
	}
	socket := cmp.Or(set[socketOption], nodeSocket)
	trusted := *sys
	trusted.Environ = []string{"MUSTER_SOCKET=" + socket}
	trusted.Dial = func(context.Context) (api.Conn, error) { return dial(socket) }
	_, err = front.Call(&trusted, api.AdoptSession, api.AdoptRequest{
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

// findOnce returns a variable's value, and refuses a second one: who may add one may not choose what PAM says.
func findOnce(env []string, name string) (value string, err error) {
	found := false
	for _, v := range env {
		n, x, _ := strings.Cut(v, "=")
		if n != name {
			continue
		}
		if found {
			return "", fmt.Errorf(
				"the environment has two values of %s: remove user_readenv=1 from the line of pam_env", name)
		}
		value, found = x, true
	}
	return value, nil
}
