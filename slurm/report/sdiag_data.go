package report

import (
	"dev.muster/api"
	"dev.muster/slurm/data"
	"dev.muster/slurm/show"
)

// diagTable makes the object of the leader's counts. Queues that muster does not have are zero: agents, the database's.
var diagTable = data.Table[api.StatsResponse]{Schema: "stats_msg", Members: []data.Member[api.StatsResponse]{
	{Path: "parts_packed", Of: func(*api.StatsResponse) data.Value { return data.Num(1) }},
	{Path: "req_time", Of: func(r *api.StatsResponse) data.Value { return show.Unix(r.Now) }},
	{Path: "req_time_start", Of: func(r *api.StatsResponse) data.Value { return show.Unix(r.Since) }},
	{Path: "server_thread_count", Of: func(r *api.StatsResponse) data.Value { return data.Num(r.Threads) }},
	{Path: "agent_queue_size", Of: zeroCount},
	{Path: "agent_count", Of: zeroCount},
	{Path: "agent_thread_count", Of: zeroCount},
	{Path: "dbd_agent_queue_size", Of: zeroCount},
	{Path: "gettimeofday_latency", Of: zeroCount},
	{Path: "schedule_cycle_max", Of: cycleMax},
	{Path: "schedule_cycle_last", Of: cycleLast},
	{Path: "schedule_cycle_sum", Of: cycleSum},
	{Path: "schedule_cycle_total", Of: cycleCount},
	{Path: "schedule_cycle_mean", Of: cycleMean},
	{Path: "schedule_cycle_mean_depth", Of: cycleDepth},
	{Path: "schedule_cycle_per_minute", Of: func(r *api.StatsResponse) data.Value {
		return data.Num(int(float64(r.Cycles.Count) / max(r.Now.Sub(r.Since).Minutes(), 1)))
	}},
	{Path: "schedule_cycle_depth", Of: depthSum},
	{Path: "schedule_exit.end_job_queue", Of: cycleCount},
	{Path: "schedule_exit.default_queue_depth", Of: zeroCount},
	{Path: "schedule_exit.max_job_start", Of: zeroCount},
	{Path: "schedule_exit.max_rpc_cnt", Of: zeroCount},
	{Path: "schedule_exit.max_sched_time", Of: zeroCount},
	{Path: "schedule_exit.licenses", Of: zeroCount},
	{Path: "schedule_queue_length", Of: queueLength},
	{Path: "jobs_submitted", Of: func(r *api.StatsResponse) data.Value { return data.Num(r.Jobs.Submitted) }},
	{Path: "jobs_started", Of: func(r *api.StatsResponse) data.Value { return data.Num(r.Jobs.Started) }},
	{Path: "jobs_completed", Of: func(r *api.StatsResponse) data.Value { return data.Num(r.Jobs.Completed) }},
	{Path: "jobs_canceled", Of: func(r *api.StatsResponse) data.Value { return data.Num(r.Jobs.Canceled) }},
	{Path: "jobs_failed", Of: func(r *api.StatsResponse) data.Value { return data.Num(r.Jobs.Failed) }},
	{Path: "jobs_pending", Of: func(r *api.StatsResponse) data.Value { return data.Num(r.Pending) }},
	{Path: "jobs_running", Of: func(r *api.StatsResponse) data.Value { return data.Num(r.Running) }},
	{Path: "job_states_ts", Of: func(r *api.StatsResponse) data.Value { return show.Unix(r.Now) }},
	{Path: "bf_backfilled_jobs", Of: backfilled},
	{Path: "bf_last_backfilled_jobs", Of: backfilled},
	{Path: "bf_backfilled_het_jobs", Of: zeroCount},
	{Path: "bf_cycle_counter", Of: cycleCount},
	{Path: "bf_cycle_mean", Of: cycleMean},
	{Path: "bf_depth_mean", Of: cycleDepth},
	{Path: "bf_depth_mean_try", Of: cycleDepth},
	{Path: "bf_cycle_sum", Of: cycleSum},
	{Path: "bf_cycle_last", Of: cycleLast},
	{Path: "bf_cycle_max", Of: cycleMax},
	{Path: "bf_exit.end_job_queue", Of: cycleCount},
	{Path: "bf_exit.bf_max_job_start", Of: zeroCount},
	{Path: "bf_exit.bf_max_job_test", Of: zeroCount},
	{Path: "bf_exit.bf_max_time", Of: zeroCount},
	{Path: "bf_exit.bf_node_space_size", Of: zeroCount},
	{Path: "bf_exit.state_changed", Of: zeroCount},
	{Path: "bf_last_depth", Of: queueLength},
	{Path: "bf_last_depth_try", Of: queueLength},
	{Path: "bf_depth_sum", Of: depthSum},
	{Path: "bf_depth_try_sum", Of: depthSum},
	{Path: "bf_queue_len", Of: queueLength},
	{Path: "bf_queue_len_mean", Of: cycleDepth},
	{Path: "bf_queue_len_sum", Of: depthSum},
	{Path: "bf_table_size", Of: zeroCount},
	{Path: "bf_table_size_sum", Of: zeroCount},
	{Path: "bf_table_size_mean", Of: zeroCount},
	{Path: "bf_when_last_cycle", Of: func(r *api.StatsResponse) data.Value { return show.Unix(r.Cycles.At) }},
	{Path: "bf_active", Of: func(*api.StatsResponse) data.Value { return data.Bool(false) }},
	{Path: "rpcs_by_message_type", Of: func(r *api.StatsResponse) data.Value {
		return data.Records(&callTable, r.Calls)
	}},
	{Path: "rpcs_by_user", Of: func(r *api.StatsResponse) data.Value { return data.Records(&callerTable, r.Users) }},
	{Path: "pending_rpcs"},
	{Path: "pending_rpcs_by_hostlist"},
}}

func zeroCount(*api.StatsResponse) data.Value {
	return data.Num(0)
}

func cycleCount(r *api.StatsResponse) data.Value {
	return data.Num(r.Cycles.Count)
}

func cycleMean(r *api.StatsResponse) data.Value {
	return data.Num(mean(r.Cycles.Sum, r.Cycles.Count))
}

func cycleDepth(r *api.StatsResponse) data.Value {
	return data.Num(r.Cycles.Depth / max(r.Cycles.Count, 1))
}

func queueLength(r *api.StatsResponse) data.Value {
	return data.Num(r.Cycles.Queue)
}

func backfilled(r *api.StatsResponse) data.Value {
	return data.Num(r.Jobs.Backfilled)
}

// callTable makes the objects of calls, by what was called.
var callTable = data.Table[api.CallCount]{Schema: "stats_msg_rpc_type", Members: []data.Member[api.CallCount]{
	{Path: "type_id", Of: func(*api.CallCount) data.Value { return data.Num(0) }},
	{Path: "message_type", Of: func(c *api.CallCount) data.Value { return data.Text(c.Name) }},
	{Path: "count", Of: func(c *api.CallCount) data.Value { return data.Num(c.N) }},
	{Path: "queued", Of: func(*api.CallCount) data.Value { return data.Num(0) }},
	{Path: "dropped", Of: func(*api.CallCount) data.Value { return data.Num(0) }},
	{Path: "cycle_last", Of: func(*api.CallCount) data.Value { return data.Num(0) }},
	{Path: "cycle_max", Of: func(*api.CallCount) data.Value { return data.Num(0) }},
	{Path: "total_time", Of: func(c *api.CallCount) data.Value { return data.Num(c.Time.Microseconds()) }},
	{Path: "average_time", Of: func(c *api.CallCount) data.Value { return data.Num(mean(c.Time, c.N)) }},
}}

// callerTable makes the objects of calls, by who called.
var callerTable = data.Table[api.CallCount]{Schema: "stats_msg_rpc_user", Members: []data.Member[api.CallCount]{
	{Path: "user_id", Of: func(c *api.CallCount) data.Value { return data.Num(c.UID) }},
	{Path: "user", Of: func(c *api.CallCount) data.Value { return show.Killer(&c.UID) }},
	{Path: "count", Of: func(c *api.CallCount) data.Value { return data.Num(c.N) }},
	{Path: "total_time", Of: func(c *api.CallCount) data.Value { return data.Num(c.Time.Microseconds()) }},
	{Path: "average_time", Of: func(c *api.CallCount) data.Value { return data.Num(mean(c.Time, c.N)) }},
}}

// StatsTable makes the object of sacctmgr show stats.
var StatsTable = data.Table[api.StatsResponse]{Schema: "stats_rec", Members: []data.Member[api.StatsResponse]{
	{Path: "time_start", Of: func(r *api.StatsResponse) data.Value { return show.Unix(r.Since) }},
	{Path: "RPCs", Of: func(r *api.StatsResponse) data.Value { return data.Records(&statsCallTable, r.Calls) }},
	{Path: "users", Of: func(r *api.StatsResponse) data.Value { return data.Records(&statsUserTable, r.Users) }},
}}

var statsCallTable = data.Table[api.CallCount]{Schema: "stats_rpc", Members: []data.Member[api.CallCount]{
	{Path: "rpc", Of: func(c *api.CallCount) data.Value { return data.Text(c.Name) }},
	{Path: "count", Of: func(c *api.CallCount) data.Value { return data.Num(c.N) }},
	{Path: "time.average", Of: func(c *api.CallCount) data.Value { return data.Num(mean(c.Time, c.N)) }},
	{Path: "time.total", Of: func(c *api.CallCount) data.Value { return data.Num(c.Time.Microseconds()) }},
}}

var statsUserTable = data.Table[api.CallCount]{Schema: "stats_user", Members: []data.Member[api.CallCount]{
	{Path: "user", Of: func(c *api.CallCount) data.Value { return show.Killer(&c.UID) }},
	{Path: "count", Of: func(c *api.CallCount) data.Value { return data.Num(c.N) }},
	{Path: "time.average", Of: func(c *api.CallCount) data.Value { return data.Num(mean(c.Time, c.N)) }},
	{Path: "time.total", Of: func(c *api.CallCount) data.Value { return data.Num(c.Time.Microseconds()) }},
}}

func cycleMax(r *api.StatsResponse) data.Value {
	return data.Num(r.Cycles.Max.Microseconds())
}

func cycleLast(r *api.StatsResponse) data.Value {
	return data.Num(r.Cycles.Last.Microseconds())
}

func cycleSum(r *api.StatsResponse) data.Value {
	return data.Num(r.Cycles.Sum.Microseconds())
}

func depthSum(r *api.StatsResponse) data.Value { return data.Num(r.Cycles.Depth) }
