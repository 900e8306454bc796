package front

import (
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// This file starts programs with package os alone: os/exec and what it needs would be initialized
// at every start of a front-end, behind the daemons' libraries.

// LookPath finds a program as a shell does.
func LookPath(name string, getenv func(string) string) (string, bool) {
	if strings.Contains(name, "/") {
		return name, Executable(name)
	}
	for dir := range strings.SplitSeq(getenv("PATH"), ":") {
		if dir == "" {
			dir = "."
		}
		if file := dir + "/" + name; Executable(file) {
			return file, true
		}
	}
	return "", false
}

// Executable reports whether file is one that can be run.
func Executable(file string) bool {
	fi, err := os.Stat(file)
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

// Output runs a program and returns what it prints, and whether it ended well.
func Output(name string, args ...string) (text string, ok bool) {
	file, ok := LookPath(name, os.Getenv)
	r, w, err := os.Pipe()
	if !ok || err != nil {
		return "", false
	}
	defer r.Close()
	p, err := os.StartProcess(file, append([]string{name}, args...), &os.ProcAttr{Files: []*os.File{nil, w, nil}})
	w.Close()
	if err != nil {
		return "", false
	}
	all, _ := io.ReadAll(io.LimitReader(r, 1<<20))
	st, err := p.Wait()
	return string(all), err == nil && st.Success()
}

// JobPath returns a PATH for jobs that bring none: the folder of this program, beside which the front-ends lie, and
// then the folders dirs.
func JobPath(dirs string) string {
	exe, err := os.Executable()
	if err != nil || slices.Contains(strings.Split(dirs, ":"), path.Dir(exe)) {
		return "PATH=" + dirs
	}
	return "PATH=" + path.Dir(exe) + ":" + dirs
}
