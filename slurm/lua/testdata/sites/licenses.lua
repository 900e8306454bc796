-- a script that calls matlab needs a licence of it
function slurm_job_submit(job_desc, part_list, submit_uid)
	local script = job_desc.script
	if script ~= nil and string.match(script, "matlab") then
		if job_desc.licenses == nil then
			job_desc.licenses = "matlab:1"
		elseif not string.find(job_desc.licenses, "matlab") then
			job_desc.licenses = job_desc.licenses .. ",matlab:1"
		end
		slurm.user_msg("note: a matlab licence was added to your job")
	end
	return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
return slurm.SUCCESS
