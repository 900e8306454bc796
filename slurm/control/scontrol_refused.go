package control

import (
	"slices"
	"strings"
)

// refusedKeys are keys, flags and words of Slurm that muster does not support, with the reason and the alternative.
var refusedKeys = [...]struct{ of, keys, why string }{
	{"job", "reboot", "muster does not reboot nodes for a job: an administrator can, with scontrol reboot"},
	{"job", "userid", "the user of a job cannot be changed; with JobName=, UserID= selects the user's jobs"},
	{"node", "certtoken", "nodes join with the tokens of muster token create, not with CertToken"},
	{"node", "cpubind", "nodes have no default binding: set --cpu-bind at each srun, or SLURM_CPU_BIND"},
	{"node", "gres", "a node reports its devices itself, within the limits of gres.conf: change that file"},
	{"node", "instanceid instancetype", "instances of clouds are not recorded: use Extra= or Comment="},
	{"partition", "cpubind", "partitions have no default binding: set --cpu-bind at each srun, or SLURM_CPU_BIND"},
	{"partition", "powerdownonidle", "SuspendTime= of slurm.conf powers idle nodes down; SuspendExcParts= excepts partitions"},
	{"partition", "topology", "all partitions use the same topology, that of topology.conf"},
	{"flag", "force_start", "a reservation begins at StartTime; with FLEX, its jobs may start before"},
	{"flag", "license_only", "a reservation has nodes; with FLAGS=ANY_NODES, its licenses are reserved for jobs on any node"},
}

// refusal returns the lines that say why a key (or flag) is refused, none for one that Slurm does not have either.
func refusal(of, key string) []string {
	key = strings.ToLower(key)
	for _, r := range refusedKeys {
		if r.of == of && slices.Contains(strings.Fields(r.keys), key) {
			return []string{"why: " + r.why}
		}
	}
	return nil
}
