package conf

import (
	"fmt"
	"slices"
	"strings"
)

// cgroupNeedless are keys of cgroup.conf that say how Slurm finds its cgroups, or what newer versions of it dropped.
var cgroupNeedless = []string{"cgroupautomount", "cgroupmountpoint", "cgroupplugin",
	"cgroupreleaseagentdir", "enablecontrollers", "ignoresystemd",
	"ignoresystemdonfailure", "taskaffinity", "constrainkmemspace", "allowedkmemspace", "maxkmempercent",
	"minkmemspace"}

// cgroupLine reads a line of cgroup.conf. Jobs are held to their share unless it says not to: where it is silent, too.
func (r *reader) cgroupLine(file string, n int, ps []pair) {
	for _, p := range ps {
		no := strings.EqualFold(p.value, "no")
		c := &r.cfg.Constrain
		switch {
		case p.key == "constraincores":
			c.NoCores = no
		case p.key == "constraindevices":
			c.NoDevices = no
		case p.key == "constrainramspace":
			c.NoMemory = no
		case slices.Contains(cgroupNeedless, p.key):
			r.fine = append(r.fine,
				fmt.Sprintf("%s:%d: %s=%s needs no setting: cgroups are found, and kernel memory counts as memory",
					file, n, p.typed, p.value))
		default:
			r.note(file, n,
				"%s=%s has no effect: a job has the memory that it was given, and no swap beside it", p.typed,
				p.value)
		}
	}
}
