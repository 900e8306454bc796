package submit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// MaxScript bounds what is read of a script. The server's own limit (4 MiB) is far
// below; this one only keeps `sbatch < /dev/zero` from eating the memory.
const MaxScript = 64 << 20

// ParseSbatch reads sbatch's command line, its script with the options in it, and its
// environment; the command line wins over the environment, and that over the script.
func ParseSbatch(argv []string, sys *front.Sys) (*Request, error) { return parseSbatch(argv, sys, nil) }

func parseSbatch(argv []string, sys *front.Sys, site *siteOptions) (*Request, error) {
	r := newRequest(opt.Sbatch, argv, sys)
	siteDefaults(r, site)
	lines, rest, err := parseLines(opt.Sbatch, argv)
	if err != nil {
		return nil, err
	}
	// Slurm finds wrong values on the command line before it looks for the script.
	scratch := newRequest(opt.Sbatch, argv, sys)
	for k := len(lines) - 1; k >= 0; k-- {
		if k == 0 { // the others are looked at alone
			scratch = newRequest(opt.Sbatch, argv, sys)
		}
		if err := scratch.apply(lines[k], FromLine); err != nil {
			return nil, err
		}
	}
	found := slices.Concat(lines...)
	r.Client.ExportFile, r.exportFile = scratch.Client.ExportFile, scratch.exportFile
	r.Client.TestOnly = scratch.Client.TestOnly
	env := fromEnv(opt.Sbatch, sys)
	if err := takeScript(r, found, env, lines[0], rest); err != nil {
		return nil, err
	}
	if err := r.complete(env, lines); err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r, r.finishParts()
}

// takeScript takes the job's script, of --wrap, a file or the input, with the options in it. With --external the job
// has none.
func takeScript(r *Request, found, env, first []opt.Found[Request], rest []string) error {
	r.Job.Kind = cluster.Batch
	wrap, wrapped := lastValue(found, "wrap")
	_, external := lastValue(found, "external")
	switch {
	case external && wrapped:
		return r.fail("--wrap option not permitted with --external option")
	case external && len(rest) > 0:
		return r.fail("Script arguments not permitted with --external option")
	case external:
		r.Job.Kind = cluster.External
		nameAfter(r, "external")
		return nil
	case wrapped && len(rest) > 0:
		r.wrap(wrap)
		return r.fail("Script arguments not permitted with --wrap option")
	case wrapped:
		r.wrap(wrap)
		return nil
	}
	if err := r.readScript(first, rest); err != nil {
		return err
	}
	_, line := lastValue(found, "ignore-pbs")
	_, inEnv := lastValue(env, "ignore-pbs")
	return r.directives(scriptLabel(rest), line || inEnv)
}

func scriptLabel(rest []string) string {
	if len(rest) > 0 {
		return rest[0]
	}
	return "stdin"
}

// wrap makes the script of --wrap.
func (r *Request) wrap(command string) {
	r.Script = []byte("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + command + "\n")
	nameAfter(r, "wrap")
}

// nameAfter names the job after its script, unless the defaults of its user or site have named it.
func nameAfter(r *Request, script string) {
	if !r.named {
		r.Job.Name = script
	}
}

// fail is one line with sbatch's name and exit code 1.
func (r *Request) fail(lines ...string) error {
	e := &opt.UsageError{Code: opt.CodeError, Refused: true}
	for _, l := range lines {
		e.Lines = append(e.Lines, "error: "+l)
	}
	return opt.Named(r.prog, "", "", e)
}

// readScript finds, reads and checks the batch script.
func (r *Request) readScript(found []opt.Found[Request], rest []string) error {
	var text []byte
	var err error
	if len(rest) == 0 {
		text, err = io.ReadAll(io.LimitReader(r.sys.Stdin, MaxScript))
		r.typed = append([]byte{}, text...)
		nameAfter(r, "sbatch")
	} else {
		dir, _ := lastValue(found, "chdir")
		file := r.findScript(rest[0], dir)
		text, err = front.ReadFileLimited(file, MaxScript)
		r.Job.Command, r.Job.Args = file, rest[1:]
		nameAfter(r, path.Base(rest[0]))
	}
	if errors.Is(err, syscall.EISDIR) {
		text, err = nil, nil // as Slurm says of a directory
	}
	if err != nil {
		return r.fail("Unable to open file " + scriptLabel(rest))
	}
	return r.checkScript(text)
}

// checkScript refuses what cannot be a script. One without #! is run by bash, where
// Slurm refuses it: the line is put in front, so that every node sees the same.
func (r *Request) checkScript(text []byte) error {
	switch {
	case len(text) == 0:
		return r.fail("Batch script is empty!")
	case len(bytes.TrimLeft(text, " \t\r\n\v\f")) == 0:
		return r.fail("Batch script contains only whitespace!")
	case bytes.IndexByte(text, 0) >= 0:
		return r.fail("The Slurm controller does not allow scripts that", `contain a NULL character '\0'.`)
	case bytes.Contains(text, []byte("\r\n")):
		return r.fail(`Batch script contains DOS line breaks (\r\n)`, `instead of expected UNIX line breaks (\n).`)
	}
	if !bytes.HasPrefix(text, []byte("#!")) {
		r.note("script has no interpreter line (#!): running it with /bin/bash")
		text = append([]byte("#!/bin/bash\n"), text...)
		r.addedShebang = true
	}
	r.Script = text
	return nil
}

// findScript looks in the working directory, then in PATH; . and / start a path.
func (r *Request) findScript(name, dir string) string {
	cwd, err := r.sys.Getwd()
	if err != nil {
		cwd = "."
	}
	if dir == "" {
		dir = cwd
	} else if !path.IsAbs(dir) {
		dir = path.Join(cwd, dir)
	}
	switch {
	case name == "":
		return name
	case name[0] == '/':
		return name
	case name[0] == '.':
		return path.Join(cwd, name)
	}
	if file := path.Join(dir, name); exists(file) {
		return file
	}
	for d := range strings.SplitSeq(r.sys.Getenv("PATH"), ":") {
		if file := path.Join(d, name); d != "" && exists(file) {
			return file
		}
	}
	return path.Join(cwd, name)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
