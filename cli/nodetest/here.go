package nodetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/burnin"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// Defaults of a test.
const (
	burninLoad = 60 * time.Second
	burninDisk = 1024 // MB
	// burninTell is how long results are offered to servers that do not answer, and burninAgain how often.
	burninTell  = 10 * time.Minute
	burninAgain = time.Second
)

// Here is muster internal burnin: the test of the machine, in a job of its own. It returns the exit code.
func Here(args []string) int {
	flags := flag.NewFlagSet("muster internal burnin", flag.ContinueOnError)
	seconds := flags.Int("seconds", int(burninLoad/time.Second), "how long each load takes")
	memory := flags.Int64("memory", 0, "MB of memory to test (default: half of what is free)")
	disk := flags.Int("disk", burninDisk, "MB to write to the disk")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	node, self := os.Getenv("SLURMD_NODENAME"), "muster"
	job, _ := strconv.ParseUint(os.Getenv("SLURM_JOB_ID"), 10, 32)
	if node == "" || job == 0 {
		fmt.Fprintln(os.Stderr, "muster internal burnin: it is part of a job; muster burnin NODES submits that")
		return 2
	}
	if path, err := os.Executable(); err == nil {
		self = path
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	parts := burnin.Run(ctx, burnin.Options{Node: cluster.NodeName(node),
		Load: time.Duration(*seconds) * time.Second, MemMB: cluster.MemMB(*memory), DiskMB: *disk,
		Dir: os.TempDir(), Watch: []string{self, "internal", "gpu-helper"}, Find: exec.LookPath, Say: say})
	if ctx.Err() != nil {
		say("ended before the end of the test: nothing is told")
		return 1
	}
	code := 0
	for i := range parts {
		test := &parts[i].Tests[0]
		test.Job = cluster.JobID(job)
		say("%s: %s %s", parts[i].ID, test.Verdict, test.Text)
		if test.Verdict == cluster.BurninFailed {
			code = 1
		}
	}
	if err := tellBurnin(ctx, cluster.BurninDone{Node: cluster.NodeName(node), Parts: parts}); err != nil {
		fmt.Fprintln(os.Stderr, "muster internal burnin: the results could not be told:", err)
		return 1
	}
	return code
}

// away reports whether a call may succeed later: nobody leads, or the daemon restarts.
func away(err error) bool {
	var e *api.Error
	return errors.Is(err, api.ErrUnreachable) || errors.As(err, &e) && e.Code == cluster.Unavailable
}

// tellBurnin hands the results to the servers, and waits for those that do not answer.
func tellBurnin(ctx context.Context, q cluster.BurninDone) error {
	c := &api.Client{Dial: front.DialLocal}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, burninTell)
	defer cancel()
	for {
		_, err := api.Call(ctx, c, api.RecordBurnin, q)
		if err == nil || !away(err) {
			return err
		}
		pause := time.NewTimer(burninAgain)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}
