-- old names of hardware are rewritten
local renamed = { v100 = "volta", a100 = "ampere" }
function slurm_job_submit(job_desc, part_list, submit_uid)
	if job_desc.features ~= nil then
		job_desc.features = string.gsub(job_desc.features, "[%w]+", renamed)
	end
	if job_desc.features == nil and (job_desc.gres ~= nil or job_desc.tres_per_node ~= nil) then
		job_desc.features = "gpu"
	end
	return 0
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return 0 end
return 0
