-- the QOS follows the account; the user's default account is asked for
local qos = { ["team-a"] = "high", ["team-b"] = "normal" }
function slurm_job_submit(job_desc, part_list, submit_uid)
	local account = job_desc.account
	if account == nil then account = job_desc.default_account end
	if job_desc.qos == nil and account ~= nil and qos[account] ~= nil then
		job_desc.qos = qos[account]
		slurm.log_debug("qos %s for account %s", job_desc.qos, account)
	end
	return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
return slurm.SUCCESS
