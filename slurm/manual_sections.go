package slurm

import (
	"slices"
	"strings"

	"dev.muster/slurm/format"
	"dev.muster/slurm/report"
	"dev.muster/slurm/show"
)

// Section is a part of a manual besides the options.
type Section struct {
	Title string
	Text  string
	Rows  []Row
}

// Row is a word and what it means.
type Row struct{ Word, Means string }

// sections are those of a command's manual.
func sections(name string) (list []Section) {
	switch name {
	case "squeue":
		list = append(places(show.JobPlaces(), "of jobs"), places(show.StepPlaces(), "of steps, with --steps")...)
		list = append(list, jobStates(), reasonsHint())
	case "sinfo":
		list = append(places(show.InfoPlaces(), "of nodes and partitions"), nodeStates())
	case "sacct":
		text := "NAME%WIDTH sets a width; a negative one is left-justified.\n"
		text += strings.Join(report.SacctFields(), ", ") + "."
		list = append(list, Section{Title: "fields of --format", Text: text}, jobStates())
	case "sbatch", "salloc", "srun":
		list = append(list, jobVariables())
	}
	if text := exits()[name]; text != "" {
		list = append(list, Section{Title: "exit status", Text: text})
	}
	if rows := examples()[name]; rows != nil {
		list = append(list, Section{Title: "examples", Rows: rows})
	}
	return list
}

// places are the letters of -o and the names of -O.
func places(cols []format.Place, of string) []Section {
	letters, names := Section{Title: "letters of --format, " + of}, Section{Title: "fields of --Format, " + of}
	letters.Text = "A width may stand between % and the letter, %.12i is right-justified."
	var all []string
	for _, c := range cols {
		word := strings.Join(c.Names, ", ")
		if c.Code != 0 {
			letters.Rows = append(letters.Rows, Row{"%" + string(c.Code), strings.TrimSuffix(c.Head+": "+word, ": ")})
		}
		all = append(all, c.Names...)
	}
	slices.Sort(all)
	names.Text = "NAME:WIDTH sets a width.\n" + strings.Join(slices.Compact(all), ", ") + "."
	return []Section{letters, names}
}

func jobStates() Section {
	s := Section{Title: "states of jobs"}
	for _, st := range show.JobStates() {
		s.Rows = append(s.Rows, Row{st.Short + ", " + st.Long, st.Means})
	}
	return s
}

func reasonsHint() Section {
	return Section{Title: "reasons", Text: "The words in the column of reasons, and what to do about each, " +
		"are in muster-reasons(7); muster why JOB tells them with numbers, and what would start the job sooner."}
}

func nodeStates() Section {
	return Section{Title: "states of nodes", Rows: []Row{
		{"idle", "no job is there"}, {"mixed", "jobs have a part of it"}, {"allocated", "jobs have all of it"},
		{"completing", "a job there is over, its processes are not"},
		{"drained", "an operator keeps jobs away, and none is there"}, {"draining", "the same, and some are"},
		{"down", "it cannot be used"}, {"maint, reserved", "a reservation has it"},
		{"planned", "it is kept free for a job that starts soon"},
		{"powered_down, powering_up", "it is switched off, or on its way back"},
		{"*", "behind a state: it does not answer"},
	}}
}

// jobVariables are those that a job finds, of which scripts ask most often.
func jobVariables() Section {
	text := "Variables of a script and of the tasks of srun. docs/slurm-compat.md lists the others."
	return Section{Title: "variables of the job", Text: text, Rows: JobVariables()}
}

// JobVariables are the variables of a job that manuals tell of; each is set in a job that asks for what it tells.
func JobVariables() []Row {
	return []Row{
		{"SLURM_JOB_ID", "the job's number"}, {"SLURM_JOB_NAME", "its name"},
		{"SLURM_ARRAY_JOB_ID, SLURM_ARRAY_TASK_ID", "number of the array, and of the task in it"},
		{"SLURM_SUBMIT_DIR", "where it was submitted"}, {"SLURM_JOB_PARTITION", "its partition"},
		{"SLURM_JOB_NODELIST", "its nodes; scontrol show hostnames lists them one by one"},
		{"SLURM_JOB_NUM_NODES", "how many they are"}, {"SLURM_NTASKS", "tasks, where it asked for some"},
		{"SLURM_CPUS_PER_TASK", "CPUs of each, where it asked for them"}, {"SLURM_CPUS_ON_NODE", "CPUs on this node"},
		{"SLURM_MEM_PER_NODE", "MB of memory on each node, where it asked for them"},
		{"SLURM_GPUS_ON_NODE", "GPUs on this node"}, {"CUDA_VISIBLE_DEVICES", "which they are"},
		{"SLURM_PROCID, SLURM_LOCALID, SLURM_NODEID", "in tasks of srun: rank, rank on the node, number of the node"},
		{"SLURM_STEP_ID", "in tasks of srun: number of the step"},
	}
}

// exits are what the codes of commands mean.
func exits() map[string]string {
	return map[string]string{
		"sbatch": "0: the script was taken; 1: it was not. With --wait the job's own code.",
		"srun": "The greatest code of a task; 128 and the signal of one that was killed; 1 where nothing could " +
			"be started. Ctrl-C twice ends it with 130.",
		"salloc":   "The exit status of the command that it ran; 1 without an allocation.",
		"scancel":  "0, also where nothing was left to cancel; 1 where a job could not be cancelled.",
		"squeue":   answered,
		"sinfo":    answered,
		"sacct":    answered,
		"swait":    "0: no step runs; 1: --timeout is over; 2: something was wrong.",
		"scontrol": "0, or 1 where something was refused.",
	}
}

const answered = "0, or 1 where the question could not be answered."

func examples() map[string][]Row {
	return map[string][]Row{
		"sbatch": {
			{"sbatch train.sbatch", "submit a script; lines #SBATCH of it are options"},
			{"sbatch -N4 --gpus-per-node=8 -t 12:00:00 train.sbatch", "with other options than the script has"},
			{"sbatch --array=0-99%10 sweep.sbatch", "a hundred tasks, ten at a time"},
			{"sbatch --dependency=afterok:17 eval.sbatch", "after job 17 has ended well"},
			{"sbatch --test-only train.sbatch", "when it would start, without submitting it"},
		},
		"srun": {
			{"srun -N2 --gpus-per-node=8 nvidia-smi -L", "a step in an allocation of its own"},
			{"srun --mpi=pmix -n64 ./solver", "in a script: an MPI program of 64 tasks"},
			{"srun --jobid 17 --overlap --pty bash", "a shell beside what job 17 runs"},
			{"srun --container-image=nvcr.io#nvidia/pytorch:25.01-py3 python train.py", "in an image"},
		},
		"salloc": {
			{"salloc --gpus=1 -t 1:00:00", "a shell with a GPU for an hour"},
		},
		"scancel": {
			{"scancel 17", "end job 17"},
			{"scancel 17_3", "end one task"},
			{"scancel -u $USER -t PENDING", "all of one's own that wait"},
			{"scancel -s USR1 -b 17", "a signal to the script"},
		},
		"squeue": {
			{"squeue --me", "one's own jobs"},
			{"squeue --start", "when those that wait start"},
			{"squeue -o '%.12i %.9P %.20j %.8T %R'", "chosen columns"},
			{"squeue --follow -j 17", "each change of it, until it has ended"},
		},
		"sinfo": {
			{"sinfo", "partitions and their nodes by state"},
			{"sinfo -N -l", "a line for each node"},
			{"sinfo -R", "why nodes are out of service"},
			{"sinfo -o '%n %G %t'", "chosen columns"},
		},
		"sacct": {
			{"sacct -X -S now-7days", "a week's jobs without their steps"},
			{"sacct -j 17 -o JobID,State,ExitCode,MaxRSS,Elapsed", "what one used"},
			{"sacct -a -s FAILED,OUT_OF_MEMORY -S now-1day", "what failed today"},
		},
		"scontrol": {
			{"scontrol show job 17", "all of a job"},
			{"scontrol update jobid=17 timelimit=2:00:00", "change one"},
			{"scontrol hold 17", "keep it from starting"},
			{"scontrol update nodename=n[1-4] state=drain reason='bad cable'", "take nodes out of service"},
		},
		"sacctmgr": {
			{"sacctmgr add account vision", "make an account"},
			{"sacctmgr add user alice account=vision", "let a user use it"},
			{"sacctmgr modify account vision set GrpTRES=gres/gpu=64", "limit it"},
			{"sacctmgr show assoc tree", "show all"},
		},
		"sreport": {
			{"sreport cluster AccountUtilizationByUser start=now-30days -T gres/gpu -t hours",
				"GPU hours by account and user"},
		},
	}
}
