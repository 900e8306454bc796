package control

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// showBurst is scontrol show burstbuffer: what is configured, and the buffers that there are.
func showBurst(c *control) int {
	conf, err := c.cluster()
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_burst_buffer_info error", err)
	}
	b := conf.Config.Burst
	if b == nil {
		return c.complain("No burst buffer data")
	}
	jobs, err := show.ListJobs(c.sys, api.JobQuery{Brief: true})
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_burst_buffer_info error", err)
	}
	_, _ = c.out.WriteString(burstText(b) + burstJobs(jobs.Jobs))
	return 0
}

// burstText is what is configured. No pools are counted.
func burstText(b *cluster.BurstConfig) string {
	flags := front.Choose(b.TearFailed, "TeardownFailure", "DisablePersistent")
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	text := "Name=lua DefaultPool=(null) Granularity=1 TotalSpace=0 FreeSpace=0 UsedSpace=0\n" +
		"  Flags=" + flags + "\n" +
		"  PollInterval=" + seconds(b.Poll) + "\n" +
		"  StageInTimeout=" + seconds(b.StageIn) + " StageOutTimeout=" + seconds(b.StageOut) +
		" ValidateTimeout=" + seconds(b.Validate) + " OtherTimeout=" + seconds(b.Other) + "\n"
	if b.Allow != nil {
		text += "  AllowUsers=" + strings.Join(b.Allow, ",") + "\n"
	}
	if b.Deny != nil {
		text += "  DenyUsers=" + strings.Join(b.Deny, ",") + "\n"
	}
	return text + "  GetSysState=(null)\n  GetSysStatus=(null)\n"
}

// burstJobs are the buffers that there are.
func burstJobs(jobs []*cluster.Job) string {
	var b strings.Builder
	for _, j := range jobs {
		if !cluster.BurstOpen(j) {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("  Allocated Buffers:\n")
		}
		id := strconv.Itoa(int(j.ID))
		if j.ArrayID != 0 && j.Task >= 0 {
			id = fmt.Sprintf("%d_%d(%d)", j.ArrayID, j.Task, j.ID)
		}
		fmt.Fprintf(&b, "    JobID=%s CreateTime=%s Pool=(null) Size=0 State=allocated UserID=%s(%d)\n",
			id, j.Burst.Made.Local().Format("2006-01-02T15:04:05"), j.Spec.User, j.Spec.UID)
	}
	return b.String()
}

// showBurstStatus is scontrol show bbstat, or dwstat: what get_status of the site's script returns.
func showBurstStatus(c *control, args []string) int {
	resp, err := front.Call(c.sys, api.ShowBurstStatus, api.BurstStatusRequest{Args: args})
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_burst_buffer_stat error", err)
	}
	_, _ = c.out.WriteString(resp.Text)
	return 0
}
