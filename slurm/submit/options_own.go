package submit

import "dev.muster/slurm/opt"

// optionsOwn are options that Slurm does not have.
var optionsOwn = []opt.Option[Request]{
	{Long: "nccl-env", On: opt.All, Env: "NCCL_ENV", Newer: true, Group: opt.GPU,
		Help: "tell NCCL the ports nearest to each task's GPUs",
		Set: func(r *Request, _ string) error {
			r.Job.NCCLEnv = true
			return nil
		}},
}
