package submit

import (
	"cmp"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// Bcast is what --bcast asks for.
type Bcast struct {
	On      bool
	Dest    string // as given
	Exclude string
	Libs    bool
	File    string // the program here
	Path    string // where it goes on a node, before cluster.CastPath
	List    []string
}

// x11Words are the nodes that get a display; all, if none is said. Slurm takes any other word and does nothing.
var x11Words = [...]string{"all", "batch", "first", "last"}

// setX11 reads --x11.
func setX11(r *Request, v string) error {
	for _, w := range x11Words {
		if w == cmp.Or(v, x11Words[0]) {
			r.Way.X11 = w
			return nil
		}
	}
	return opt.Errorf(opt.CodeError, "error: Invalid --x11 specification: %s: want all, batch, first or last", v)
}

// checkAsync refuses what an srun that is gone cannot do.
func checkAsync(r *Request) error {
	no := func(text string) error {
		return opt.Named(r.prog, "", "", opt.Errorf(opt.CodeError, "error: %s", text))
	}
	if !r.Way.Async {
		if r.Client.Parsable {
			return no("--parsable requires --async.")
		}
		return nil
	}
	switch {
	case r.Client.PTY:
		return no("--async and --pty are mutually exclusive.")
	case r.Client.Immediate != nil:
		return no("--immediate and --async are mutually exclusive.")
	case r.Client.JobID == 0:
		return no("--async is only valid for steps submitted within an existing job allocation.")
	case r.Client.Interactive:
		return no("--async and --interactive are mutually exclusive.")
	}
	input := r.Step.Stdin
	for _, with := range []struct {
		name  string
		given bool
	}{
		{"--bcast", r.Bcast.On},
		{"--mpi=" + r.Client.MPI, cluster.ManagerOf(r.Client.MPI) > cluster.ManagerNone},
		{"--prolog", r.Client.Prolog != ""},
		{"--epilog", r.Client.Epilog != ""},
		{"--kill-on-bad-exit", r.From("kill-on-bad-exit") == FromLine},
		{"--wait", r.From("wait") == FromLine},
		{"--input=" + input, input != "" && input != "none" && !front.IsFile(input)},
	} {
		if with.given {
			return r.Cannot("--async with "+with.name, "that is srun's work, which does not stay",
				"leave --async out, and put srun into the background")
		}
	}
	return nil
}
