-- at most two jobs of a user wait for the partition large; reservations are named in messages
function slurm_job_submit(job_desc, part_list, submit_uid)
	if job_desc.partition ~= "large" then return slurm.SUCCESS end
	local n = 0
	for id, job in pairs(slurm.jobs) do
		if job.user_id == submit_uid and job.job_state == 0 then n = n + 1 end
	end
	if n >= 2 then
		slurm.log_user("you have %d jobs waiting, 2 at most", n)
		return slurm.ESLURM_ACCOUNTING_POLICY
	end
	for name, r in pairs(slurm.reservations) do
		slurm.log_user("mind reservation %s", name)
	end
	return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
return slurm.SUCCESS
