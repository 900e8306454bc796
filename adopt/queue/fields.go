package queue

import "strings"

// neutral are fields of scontrol show job that ask for nothing: what became of a job, and what follows from others.
const neutral = " JobId ArrayJobId ArrayTaskId ArrayTaskThrottle JobName UserId GroupId MCS_label Priority JobState " +
	"Reason Restarts BatchFlag ExitCode DerivedExitCode RunTime SubmitTime EligibleTime AccrueTime StartTime EndTime " +
	"SuspendTime SecsPreSuspend LastSchedEval Scheduler AllocNode:Sid NodeList NumCPUs ReqB:S:C:T TRES ReqTRES " +
	"AllocTRES Command BatchHost Power HetJobId HetJobOffset HetJobIdSet MinCPUsNode PreemptEligibleTime PreemptTime " +
	"SchedNodeList AdminComment SystemComment SubmitLine BurstBuffer CronJob StepMgrEnabled FedOrigin " +
	"FedViableSiblings FedActiveSiblings JOB_GRES GresEnforceBind LicensesAlloc Partition " +
	"CPUs/Task ResizeTime Shared NodeSet SLUID " +
	"OriginalSLUID TotalCPUs ContainerID "

// fieldOption is a field with its option of sbatch: "", another rule sets it; "-", there is none.
type fieldOption struct{ field, nothing, option string }

// fieldOptions lists the fields that ask for something, with the values that ask for nothing.
func fieldOptions() []fieldOption {
	return []fieldOption{
		{"JobName", "", "job-name"},
		{"Partition", "", "partition"},
		{"Account", "(null)", "account"},
		{"QOS", "(null) N/A", "qos"},
		{"TimeLimit", "Partition_Limit", "time"},
		{"TimeMin", "N/A", "time-min"},
		{"Features", "(null)", "constraint"},
		{"Prefer", "(null)", "prefer"},
		{"ClusterFeatures", "(null)", "-"},
		{"ReqNodeList", "(null)", "nodelist"},
		{"ExcNodeList", "(null)", "exclude"},
		{"Deadline", "N/A", "deadline"},
		{"Comment", "(null)", "comment"},
		{"WorkDir", "(null)", "chdir"},
		{"StdOut", "(null)", "output"},
		{"StdErr", "(null)", "error"},
		{"StdIn", "(null) /dev/null", "input"},
		{"Licenses", "(null)", "licenses"},
		{"Network", "(null)", "network"},
		{"Reservation", "(null)", "reservation"},
		{"MailUser", "(null)", "mail-user"},
		{"MailType", "NONE", "mail-type"},
		{"WCKey", "(null)", "wckey"},
		{"Nice", "0", "nice"},
		{"MinMemoryNode", "0", "mem"},
		{"MinMemoryCPU", "0", "mem-per-cpu"},
		{"MinTmpDiskNode", "0", "tmp"},
		{"CoreSpec", "*", "core-spec"},
		{"ThreadSpec", "*", "thread-spec"},
		{"Extra", "(null)", "extra"},
		{"Switches", "", "switches"},
		{"SegmentSize", "0", "segment"},
		{"NtasksPerTRES", "0", "ntasks-per-gpu"},
		{"Contiguous", "", ""},
		{"Reboot", "", ""},
		{"Requeue", "", ""},
		{"OverSubscribe", "OK", ""},
		{"Exclusive", "NO NODE YES USER", "-"},
		{"NumNodes", "", ""},
		{"NumTasks", "", ""},
		{"NtasksPerN:B:S:C", "0:0:*:* 0:0:*:1", ""},
		{"Dependency", "(null)", ""},
		{"TresPerJob", "", ""},
		{"TresPerNode", "", ""},
		{"TresPerSocket", "", ""},
		{"TresPerTask", "", ""},
		{"CpusPerTres", "", ""},
		{"MemPerTres", "", ""},
		{"DelayBoot", "00:00:00", "-"},
		{"Socks/Node", "*", "sockets-per-node"},
		{"Cores/Socket", "*", "cores-per-socket"},
		{"CoresPerSocket", "*", "cores-per-socket"},
		{"Threads/Core", "*", "threads-per-core"},
		{"KillOInInvalidDependent", "No", "-"},
		{"KillOInInvalidDependency", "", "-"},
		{"TresBind", "", "gpu-bind"},
		{"TresFreq", "", "gpu-freq"},
		{"Container", "", "-"},
		{"Gres", "(null)", "gres"},
		{"OverSubscribeMode", "", "-"},
	}
}

// splitFields splits a line of KEY=VALUE. A value goes on to the next word that begins with a key; twice is a key that
// comes again: a user's text that looks like fields could otherwise pass for them.
func splitFields(line string) (fields map[string]string, twice string) {
	fields = map[string]string{}
	last := ""
	for word := range strings.SplitSeq(strings.TrimRight(line, " \r\n"), " ") {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" || !looksLikeKey(key) {
			fields[last] += " " + word
			continue
		}
		if _, known := fields[key]; known {
			twice = key
		}
		fields[key] = value
		last = key
	}
	for key, value := range fields {
		fields[key] = strings.TrimRight(value, " ")
	}
	return fields, twice
}

// keyRunes are the characters of a field's name.
const keyRunes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz/:_"

// looksLikeKey reports whether a word could be a field's name, of any version: such a word in a user's text is taken
// for a field that is not known, and the job stays.
func looksLikeKey(key string) bool {
	return strings.Trim(key, keyRunes) == "" && strings.ToLower(key[:1]) != key[:1]
}
