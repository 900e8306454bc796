-- what is interactive has a short limit, a priority of its own, and one node
function slurm_job_submit(job_desc, part_list, submit_uid)
	if job_desc.script == nil or job_desc.script == '' then
		if job_desc.time_limit == slurm.NO_VAL or job_desc.time_limit > 240 then
			job_desc.time_limit = 240
		end
		job_desc.comment = "interactive"
		job_desc.priority = 90000
		job_desc.min_nodes, job_desc.max_nodes = 1, 1
	else
		job_desc.environment.SITE_BATCH = "1"
		job_desc.admin_comment = "by " .. job_desc.user_name .. " from " .. tostring(job_desc.alloc_node)
		job_desc.site_factor = 5
		job_desc.nice = slurm.NICE_OFFSET + 10
	end
	return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
return slurm.SUCCESS
