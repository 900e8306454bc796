-- jobs without a partition go where their number of GPUs belongs
local function gpus(tres)
	if tres == nil then return 0 end
	local total = 0
	for entry in string.gmatch(tres, "[^,]+") do
		local n = string.match(entry, "gres[/:]gpu:?[%a%d_]*:(%d+)$") or string.match(entry, "gpu:(%d+)$")
		if n then total = total + tonumber(n) elseif string.find(entry, "gpu") then total = total + 1 end
	end
	return total
end

function slurm_job_submit(job_desc, part_list, submit_uid)
	if job_desc.partition == nil then
		local n = gpus(job_desc.tres_per_node) * (job_desc.min_nodes ~= slurm.NO_VAL and job_desc.min_nodes or 1) + gpus(job_desc.tres_per_job)
		if n == 0 then
			job_desc.partition = "cpu"
		elseif n <= 4 then
			job_desc.partition = "small"
		else
			job_desc.partition = "large"
		end
		slurm.log_info("slurm_job_submit: job from uid %u, %d GPUs: partition %s", submit_uid, n, job_desc.partition)
	end
	return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
	return slurm.SUCCESS
end

slurm.log_info("initialized")
return slurm.SUCCESS
