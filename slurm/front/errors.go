package front

import (
	"errors"
	"slices"

	"dev.muster/api"
	"dev.muster/cluster"
)

// slurmErrors gives each kind of error Slurm's text and number.
var slurmErrors = [...]struct {
	kind cluster.ErrKind
	no   int
	text string
}{
	{cluster.ErrPartition, 2000, "Invalid partition name specified"},
	{cluster.ErrNoPartition, 2001, "No partition specified or system default partition"},
	{cluster.ErrAccess, 2002, "Access/permission denied"},
	{cluster.ErrNodesOutside, 2004, "Requested nodes not in this partition"},
	{cluster.ErrNodeCount, 2006, "Node count specification invalid"},
	{cluster.ErrTaskCount, 0, "Task count specification invalid"},
	{cluster.ErrNodeName, 2009, "Invalid node name specified"},
	{cluster.ErrTooBig, 2011, "Pathname of a file, directory or other parameter too long"},
	{cluster.ErrNodeConfig, 2014, "Requested node configuration is not available"},
	{cluster.ErrPending, 2016, "Job is pending execution"},
	{cluster.ErrJobID, 2017, "Invalid job id specified"},
	{cluster.ErrFinished, 2021, "Job/step already completing or completed"},
	{cluster.ErrEnded, 0, "Job has already finished"},
	{cluster.ErrBusy, 2015, "Requested nodes are busy"},
	{cluster.ErrPartitionDown, 2013, "Required partition not available (inactive or drain)"},
	{cluster.ErrCircular, 2041, "Circular job dependency"},
	{cluster.ErrPartInUse, 2047, "Partition is in use"},
	{cluster.ErrDependency, 2029, "Job dependency problem"},
	{cluster.ErrExternalJob, 2189, "Invalid configuration for external job"},
	{cluster.ErrBatchOnly, 2030, "Only batch jobs are accepted or processed"},
	{cluster.ErrTimeLimit, 2051, "Requested time limit is invalid (missing or exceeds some limit)"},
	{cluster.ErrTimeMin, 0, "Invalid time-min specification (exceeds job's time or other limits)"},
	{cluster.ErrResvSkip, 0, "Reservation given is not skipable, try deleting instead"},
	{cluster.ErrStepCPUs, 2045, "More processors requested than permitted"},
	{cluster.ErrStepMem, 2044, "Memory required by task is not available"},
	{cluster.ErrGRES, 2072, "Invalid generic resource (gres) specification"},
	{cluster.ErrStepGRES, 2072, "Invalid generic resource (gres) specification"},
	{cluster.ErrStepNodes, 2006, "Node count specification invalid"},
	{cluster.ErrArray, 2077, "Invalid job array specification"},
	{cluster.ErrFeature, 2031, "Invalid feature specification"},
	{cluster.ErrPrefer, 0, "Invalid preferred feature specification"},
	{cluster.ErrNice, 2078, "Invalid --nice value"},
	{cluster.ErrUser, 2010, "Invalid user id"},
	{cluster.ErrDisabled, 2032, "Requested operation is presently disabled"},
	{cluster.ErrNotSuspended, 2062, "Job is not suspended"},
	{cluster.ErrNotRunning, 2020, "Job is not running"},
	{cluster.ErrSuspended, 0, "Job is current suspended, requested operation disabled"},
	{cluster.ErrStepExists, 0, "Job step already exists"},
	{cluster.ErrPortsBusy, 2059, "Required ports are in use"},
	{cluster.ErrPortsMany, 2060, "Requires more ports than can be reserved"},
	{cluster.ErrNodeState, 2048, "Invalid node state specified"},
	{cluster.ErrLicense, 2048, "Invalid license specification"},
	{cluster.ErrAccount, 2045, "Invalid account or account/partition combination specified"},
	{cluster.ErrQOS, 2066, "Invalid qos specification"},
	{cluster.ErrWCKey, 2057, "Invalid wckey specification"},
	{cluster.ErrPolicy, 2050, "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"},
	{cluster.ErrNotHeld, 2033, "Job is in held state, pending scheduler release"},
	{cluster.ErrPriorityReset, 2079, "Changes to job priority are not persistent, change nice instead"},
	{cluster.ErrGroup, 2057, "User's group not permitted to use this partition"},
	{cluster.ErrNotPending, 2021, "Job is no longer pending execution"},
	{cluster.ErrReservation, 2070, "Requested reservation is invalid"},
	{cluster.ErrResvName, 2074, "Duplicate reservation name"},
	{cluster.ErrResvTime, 2052, "Invalid time specified"},
	{cluster.ErrResvOverlap, 2071, "Requested reservation overlaps with another reservation"},
	{cluster.ErrResvBusy, 2016, "Requested nodes are busy"},
	{cluster.ErrResvInUse, 2068, "Requested reservation is in use"},
	{cluster.ErrResvCores, 0, "Core-based reservation can not be updated"},
	{cluster.ErrResvCoreCount, 0, "Core count for reservation node list is not consistent!"},
	{cluster.ErrCPUCount, 0, "CPU count specification invalid"},
	{cluster.ErrResvAccess, 2069, "Access denied to requested reservation"},
	{cluster.ErrTrigger, 2089, "Duplicate event trigger"},
	{cluster.ErrBurst, 2094, "Burst Buffer request invalid"},
	{cluster.ErrBurstDenied, 2092, "Burst Buffer permission denied"},
	{cluster.ErrNoTrigger, 3, "No such process"},
	{cluster.ErrBeginTime, 2052, "Invalid time specified"},
	{cluster.ErrResumeTime, 2048, "You can only specify a resume time when DOWNING or DRAINING a node. Request denied"},
	{cluster.ErrReasonNeeded, 2180, "You must specify a reason when DOWNING or DRAINING a node. Request denied"},
	{cluster.ErrNoChange, 2181, "No changes specified"},
	{cluster.ErrUnsupported, 1010, "Requested operation not supported on this system"},
	{cluster.ErrHetPart, 2108, "Operation not permitted on individual component of heterogeneous job"},
	{cluster.ErrHetLeader, 2109, "Job not heterogeneous job leader"},
	{cluster.ErrCron, 0, "Cannot cancel scrontab jobs without --cron flag."},
	{cluster.ErrSubmissions, 2040, "System submissions disabled"},
	{cluster.ErrFedFeature, 7102, "Invalid cluster feature specification"},
	{cluster.ErrClusterName, 7104, "Invalid cluster name"},
	{cluster.ErrToken, 1007, "Protocol authentication error"},
	{cluster.ErrQueueFull, 2035, "Slurm temporarily unable to accept job, sleeping and retrying"},
}

// contactText is what Slurm's commands say when no server answers.
const contactText = "Unable to contact slurm controller (connect failure)"

// ErrorText words an error as Slurm does, with its number (0 if it has none).
func ErrorText(err error) (string, int) {
	var e *api.Error
	if errors.Is(err, api.ErrUnreachable) {
		return contactText, 1800
	}
	if !errors.As(err, &e) {
		return err.Error(), 0
	}
	if e.Kind == cluster.ErrNoLeader { // programs know an outage by Slurm's words, and take others for an answer
		return contactText + ": " + e.Message, 1800
	}
	for _, row := range slurmErrors {
		if e.Kind == row.kind && e.Kind != "" {
			return row.text, row.no
		}
	}
	return e.Message, 0
}

// IsKind reports whether a server refused for one of these reasons.
func IsKind(err error, kinds ...cluster.ErrKind) bool {
	var e *api.Error
	return errors.As(err, &e) && slices.Contains(kinds, e.Kind)
}

// IsUnreachable reports whether no server could be asked.
func IsUnreachable(err error) bool {
	return errors.Is(err, api.ErrUnreachable) || IsKind(err, cluster.ErrAway)
}
