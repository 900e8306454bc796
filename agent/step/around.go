package step

import (
	"errors"
	"strconv"

	"dev.muster/cluster"
)

// Around are the scripts that run before and after a task, as its user and in its place: a small
// process of this program runs the prologs, takes on the variables that they ask for and becomes
// the task. With epilogs it stays as the task's parent and passes signals on.
type Around struct {
	Node    cluster.NodeName
	PIDEnv  string // variable that holds the task's process id
	Login   bool   // the user's login environment lies under the task's
	Prologs []AroundScript
	Epilogs []AroundScript
}

// AroundScript is one script, and what its messages call it.
type AroundScript struct {
	Path   string
	System bool // it came from the configuration, not from the user
}

// Empty reports whether there is nothing to run around the task.
func (a *Around) Empty() bool { return len(a.Prologs)+len(a.Epilogs) == 0 && !a.Login }

// Command is argv run with these scripts around it; self is what calls supervisor.TaskMain.
func (a *Around) Command(self, argv []string) []string {
	out := append(append([]string{}, self...), string(a.Node), a.PIDEnv, strconv.FormatBool(a.Login))
	for _, list := range [][]AroundScript{a.Prologs, a.Epilogs} {
		out = append(out, strconv.Itoa(len(list)))
		for _, s := range list {
			out = append(out, strconv.FormatBool(s.System), s.Path)
		}
	}
	return append(out, argv...)
}

// ParseAround reads what Command wrote behind self.
func ParseAround(args []string) (a Around, argv []string, err error) {
	bad := errors.New("the arguments are not those of a task with scripts around it")
	if len(args) < 5 {
		return a, nil, bad
	}
	a.Node, a.PIDEnv, a.Login, args = cluster.NodeName(args[0]), args[1], args[2] == "true", args[3:]
	for _, list := range []*[]AroundScript{&a.Prologs, &a.Epilogs} {
		if len(args) == 0 {
			return a, nil, bad
		}
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 0 || len(args) < 1+2*n {
			return a, nil, bad
		}
		for i := range n {
			*list = append(*list, AroundScript{Path: args[2+2*i], System: args[1+2*i] == "true"})
		}
		args = args[1+2*n:]
	}
	if len(args) == 0 {
		return a, nil, bad
	}
	return a, args, nil
}
