package sacctmgr

import (
	"bufio"
	"fmt"
	"strings"

	"dev.muster/api"
	"dev.muster/slurm/front"
	"dev.muster/slurm/report"
)

// stats is sacctmgr show stats: the calls that sdiag shows, in the layout of slurmdbd's. There are no rollups: sums are
// kept as jobs end.
func (m *manager) stats() int {
	resp, err := front.Call(m.sys, api.ShowStats, api.StatsRequest{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return m.wrong("sacctmgr: error: " + text)
	}
	out := bufio.NewWriter(m.sys.Stdout)
	defer out.Flush()
	rule := strings.Repeat("*", 67)
	fmt.Fprintf(out, "%s\nsacctmgr show stats output at %s\nData since                    %s\nAll statistics are in microseconds\n%s\n\n",
		rule, report.StatTime(resp.Now), report.StatTime(resp.Since), rule)
	report.PrintCalls(out, &resp, 20, 10)
	return 0
}

// clear is sacctmgr clear stats: sdiag and show stats count again.
func (m *manager) clear(args []string) int {
	if len(args) == 0 || mgrEntity(args[0]) != "stats" {
		return m.wrong("No valid entity in list command\nInput line must include \"Stats\"")
	}
	if _, err := front.Call(m.sys, api.ShowStats, api.StatsRequest{Reset: true}); err != nil {
		return m.wrong("sacctmgr: error: " + err.Error())
	}
	return 0
}
