-- nobody lengthens a job by more than a day, comments of staff stay
function slurm_job_submit(job_desc, part_list, submit_uid) return slurm.SUCCESS end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
	if modify_uid == 0 then return slurm.SUCCESS end
	if job_desc.time_limit ~= slurm.NO_VAL and job_desc.time_limit > job_rec.time_limit + 1440 then
		slurm.log_user("job %u: its limit grows by more than a day", job_rec.job_id)
		return slurm.ESLURM_INVALID_TIME_LIMIT
	end
	if job_desc.comment ~= nil then
		job_desc.comment = job_desc.comment .. " (was: " .. tostring(job_rec.comment) .. ")"
	end
	return slurm.SUCCESS
end
return slurm.SUCCESS
