// Package queue reads the pending jobs of a Slurm cluster, and makes of each the options with which sbatch submits it
// again. It opens no file and runs no program.
package queue

import (
	"fmt"

	"dev.muster/cluster"
)

// Job is a pending job, or an array with its pending tasks.
type Job struct {
	ID     cluster.JobID // of an array: the array's
	Target string        // how Slurm's commands name it, without tasks that run
	UID    uint32
	GID    uint32
	Name   string

	Fields map[string]string // of scontrol show job
	Moved  cluster.Moved
	Mark   *Mark // nil: it was not prepared before
	Admin  string
	Depend []cluster.JobID // jobs that its dependencies name
	Left   string          // why it stays in Slurm; "": it can be moved
}

// leave records why a job stays in Slurm; the first reason counts.
func (j *Job) leave(format string, args ...any) {
	if j.Left == "" {
		j.Left = fmt.Sprintf(format, args...)
	}
}

// NewMark is that of a job that is not held for the move yet.
func (j *Job) NewMark() *Mark {
	return &Mark{Held: j.Moved.Held, Eligible: j.Moved.Eligible, Accrue: j.Moved.Accrue}
}

// Key names the submission: a second one with the same key makes no second job.
func (j *Job) Key(clusterName string) string {
	return fmt.Sprintf("slurm:%.64s:%d:%d", clusterName, j.ID, j.Moved.Submitted.Unix())
}
