--[[ charges memory as cores: a job that asks for more memory a core than there is gets more cores,
     and none may ask for all memory of a node without having it alone ]]
local per_core = 4000
local function log_prefix(uid) return string.format("job_submit(uid=%d): ", uid) end
function slurm_job_submit(job_desc, part_list, submit_uid)
	local mem = job_desc.min_mem_per_node
	if mem ~= nil and mem == 0 and job_desc.shared ~= 0 then
		slurm.log_user("--mem=0 needs --exclusive")
		return slurm.ERROR
	end
	local percpu = job_desc.min_mem_per_cpu
	if percpu ~= nil and percpu > per_core then
		local cores = math.ceil(percpu / per_core)
		local asked = job_desc.cpus_per_task
		if asked == slurm.NO_VAL16 then asked = 1 end
		job_desc.min_mem_per_cpu = per_core
		job_desc.cpus_per_task = asked * cores
		slurm.log_info("%s%d CPUs a task for %d MB each", log_prefix(submit_uid), job_desc.cpus_per_task, percpu)
	end
	return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
return slurm.SUCCESS
