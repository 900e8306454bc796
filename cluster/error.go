package cluster

import "fmt"

// Code is the class of an error; it decides how the edge answers.
type Code string

// The codes.
const (
	Invalid     Code = "invalid"
	NotFound    Code = "not_found"
	Denied      Code = "denied"
	Conflict    Code = "conflict"
	Unavailable Code = "unavailable"
	Internal    Code = "internal"
)

// Kind names what exactly was wrong; the dialect has a table from kinds to Slurm's texts
// and numbers. An error without a kind is told by its message alone.
type ErrKind string

// The kinds.
const (
	ErrJobID         ErrKind = "job_id"
	ErrAway          ErrKind = "away"      // a node does not answer now
	ErrUncertain     ErrKind = "uncertain" // it may be done or not
	ErrNoLeader      ErrKind = "no_leader" // nothing was done; the call may be made again
	ErrPartition     ErrKind = "partition"
	ErrNoPartition   ErrKind = "no_partition"
	ErrPartitionDown ErrKind = "partition_down"
	ErrNodeName      ErrKind = "node_name"
	ErrNodesOutside  ErrKind = "nodes_outside" // of the partition
	ErrNodeCount     ErrKind = "node_count"
	ErrTaskCount     ErrKind = "task_count"
	ErrNodeConfig    ErrKind = "node_config"
	ErrTooBig        ErrKind = "too_big"
	ErrText          ErrKind = "text" // it has a byte in it that texts may not have
	ErrDependency    ErrKind = "dependency"
	ErrArray         ErrKind = "array"
	ErrAccess        ErrKind = "access"
	ErrUser          ErrKind = "user"
	ErrGRES          ErrKind = "gres"
	ErrFeature       ErrKind = "feature"
	ErrPrefer        ErrKind = "prefer"
	ErrNice          ErrKind = "nice"
	ErrPending       ErrKind = "job_pending"
	ErrNotPending    ErrKind = "job_not_pending"
	ErrNotRunning    ErrKind = "job_not_running"
	ErrFinished      ErrKind = "job_finished"
	ErrEnded         ErrKind = "job_ended" // what was to be changed of it
	ErrNotSuspended  ErrKind = "job_not_suspended"
	ErrBatchOnly     ErrKind = "batch_only"
	ErrExternalJob   ErrKind = "external_job"
	ErrDisabled      ErrKind = "disabled"
	ErrBusy          ErrKind = "busy"
	ErrTimeLimit     ErrKind = "time_limit"
	ErrTimeMin       ErrKind = "time_min"
	ErrResumeTime    ErrKind = "resume_time" // of a node that is not taken out of service
	ErrReasonNeeded  ErrKind = "reason_needed"
	ErrNodeState     ErrKind = "node_state"
	ErrUnsupported   ErrKind = "unsupported"
	ErrQueueFull     ErrKind = "queue_full"
	ErrCircular      ErrKind = "circular_dependency"
	ErrPartInUse     ErrKind = "partition_in_use"
	ErrNotHeld       ErrKind = "priority_held"
	ErrPriorityReset ErrKind = "priority_reset"
	ErrGroup         ErrKind = "group" // a partition does not let the user's groups in
	ErrStepCPUs      ErrKind = "step_cpus"
	ErrStepMem       ErrKind = "step_mem"
	ErrStepNodes     ErrKind = "step_nodes"
	ErrStepGRES      ErrKind = "step_gres"
	ErrStepBind      ErrKind = "step_bind"
	ErrStepExists    ErrKind = "step_exists" // where there must be none
	ErrPortsBusy     ErrKind = "ports_busy"  // a step's, on one of its nodes
	ErrPortsMany     ErrKind = "ports_many"  // more than there are
	ErrSuspended     ErrKind = "job_suspended"
	ErrResvSkip      ErrKind = "resv_skip"
	ErrMultiProg     ErrKind = "multi_prog"
	ErrNoChange      ErrKind = "no_change"
	ErrToken         ErrKind = "token"      // it is not taken
	ErrCron          ErrKind = "cron"       // a job of a crontab
	ErrTrigger       ErrKind = "trigger"    // there is such a one
	ErrNoTrigger     ErrKind = "no_trigger" // there is none
	ErrBeginTime     ErrKind = "begin_time"
	ErrLicense       ErrKind = "license"
	ErrReservation   ErrKind = "reservation"
	ErrResvName      ErrKind = "reservation_name" // there is one of that name
	ErrResvTime      ErrKind = "reservation_time"
	ErrResvOverlap   ErrKind = "reservation_overlap"
	ErrResvBusy      ErrKind = "reservation_busy" // nodes to reserve are busy then
	ErrResvInUse     ErrKind = "reservation_in_use"
	ErrResvCores     ErrKind = "reservation_cores"      // what it has of nodes stays as it is
	ErrResvCoreCount ErrKind = "reservation_core_count" // not one number for each node
	ErrCPUCount      ErrKind = "cpu_count"
	ErrResvGPUs      ErrKind = "reservation_gpus" // not so many GPUs, or of no such type
	ErrResvAccess    ErrKind = "reservation_access"
	ErrAccount       ErrKind = "account"
	ErrQOS           ErrKind = "qos"
	ErrWCKey         ErrKind = "wckey"
	ErrJobsActive    ErrKind = "jobs_active"
	ErrHetPart       ErrKind = "het_component" // only the whole heterogeneous job
	ErrHetLeader     ErrKind = "het_leader"    // only its leader
	ErrHetSize       ErrKind = "het_size"
	ErrPolicy        ErrKind = "policy"      // a limit of an association or QOS
	ErrSubmissions   ErrKind = "submissions" // the cluster takes none now
	ErrFedFeature    ErrKind = "cluster_feature"
	ErrClusterName   ErrKind = "cluster_name"
	ErrBurst         ErrKind = "burst"        // a request for a burst buffer
	ErrBurstDenied   ErrKind = "burst_denied" // the user may have none
	ErrFilter        ErrKind = "filter"       // the site's cli_filter.lua is to look at the options; Script is its text
)

// Error is what a rejected command or request answers: for people a message and perhaps a
// hint, for programs a code and a kind.
type Error struct {
	Code    Code    `json:"code"`
	Kind    ErrKind `json:"kind,omitempty"`
	Message string  `json:"message"`
	Hint    string  `json:"hint,omitempty"`
	// Said is what the site's script told the user before.
	Said   []string `json:"said,omitempty"`
	Script string   `json:"script,omitempty"` // see ErrFilter
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(code Code, kind ErrKind, format string, args ...any) *Error {
	return &Error{Code: code, Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// refuseIf is an Error where something is so, and none where it is not: a row of firstError.
func refuseIf(so bool, code Code, kind ErrKind, format string, args ...any) error {
	if !so {
		return nil
	}
	return Errorf(code, kind, format, args...)
}

// firstError is the first of some errors, nil if there is none: what is refused stands in a list, in the order in which
// it is told. All conditions of the list are looked at.
func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}
