package look

import (
	"cmp"
	"fmt"
	"text/tabwriter"
	"time"

	"dev.muster/api"
	"dev.muster/slurm/front"
)

// Idle prints the jobs that have GPUs which do nothing (muster idle). It returns the exit code.
func Idle(sys *front.Sys, least time.Duration) int {
	resp, err := front.Call(sys, api.ListIdle, api.IdleQuery{For: least})
	if err != nil {
		return sys.Fail("%s", err.Error())
	}
	if len(resp.Jobs) == 0 {
		fmt.Fprintln(sys.Stdout, "No job has GPUs that do nothing.")
		return 0
	}
	t := tabwriter.NewWriter(sys.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tUSER\tACCOUNT\tPARTITION\tIDLE\tOF\tSINCE\tFOR\tRULE\tNODES")
	for i := range resp.Jobs {
		one := &resp.Jobs[i]
		j := one.Job
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", j.ID, j.Spec.User, cmp.Or(j.Spec.Account, "-"),
			j.Alloc.Partition, one.Idle, one.GPUs, one.Since.Local().Format("2006-01-02T15:04:05"),
			resp.Now.Sub(one.Since).Round(time.Second), cmp.Or(string(one.Rule), "-"), one.Nodes)
	}
	_ = t.Flush() // to where nothing can be told
	return 0
}
