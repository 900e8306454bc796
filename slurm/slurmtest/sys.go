package slurmtest

import (
	"bytes"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// Sys is a user's shell in dir.
func Sys(prog, dir string, env ...string) *front.Sys {
	return &front.Sys{
		Prog: prog, Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Environ: env,
		Getwd: func() (string, error) { return dir, nil },
		Now:   func() time.Time { return time.Date(2026, 11, 21, 14, 30, 0, 0, time.UTC) },
		UID:   1000, GID: 1000, Umask: 0o22,
		Rlimits: func() []cluster.Rlimit {
			return []cluster.Rlimit{{Name: "CORE", Soft: 0}, {Name: "NOFILE", Soft: 1024}}
		},
	}
}
