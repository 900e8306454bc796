-- jobs without a partition may run in all partitions that the user may use and whose limit is long enough
function slurm_job_submit(job_desc, part_list, submit_uid)
	if job_desc.partition ~= nil then return slurm.SUCCESS end
	local names = {}
	for name, part in pairs(part_list) do
		if job_desc.time_limit == slurm.NO_VAL or job_desc.time_limit <= part.max_time then
			names[#names + 1] = name
		end
	end
	table.sort(names, function(a, b) return part_list[a].priority_tier > part_list[b].priority_tier or
		part_list[a].priority_tier == part_list[b].priority_tier and a < b end)
	if #names == 0 then
		slurm.user_msg("no partition takes a job of " .. job_desc.time_limit .. " minutes")
		return slurm.ESLURM_INVALID_PARTITION_NAME
	end
	job_desc.partition = table.concat(names, ",")
	return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
return slurm.SUCCESS
