package submit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// The Set functions of rows that do more than keep a word.

func setArray(r *Request, v string) error {
	if v == "" { // an unset variable: a plain job, as in Slurm
		return nil
	}
	a, ok := values.ParseArray(v)
	if !ok {
		return opt.Refused("Invalid job array specification")
	}
	r.Job.Array = a
	return nil
}

func setBegin(r *Request, v string) error { return r.setWhen("begin", v, &r.Job.Begin) }

func setDeadline(r *Request, v string) error { return r.setWhen("deadline", v, &r.Job.Deadline) }

func (r *Request) setWhen(long, v string, dst *time.Time) error {
	t, pos, ok := values.ParseWhen(v, r.sys.Now())
	if !ok {
		e := opt.Errorf(opt.CodeUsage, "error: Invalid --%s specification", long)
		if v != "" {
			e.Lines = append([]string{"Invalid time specification (pos=" + strconv.Itoa(pos) + "): " + v}, e.Lines...)
		}
		return e
	}
	*dst = t
	return nil
}

func setBurstBufferFile(r *Request, v string) error {
	text, err := r.sys.ReadFile(v, MaxScript)
	if err != nil {
		return opt.Errorf(opt.CodeError, "error: Invalid --bbf specification")
	}
	r.Job.BurstBuffer = string(text)
	return nil
}

func setCoreSpec(r *Request, v string) error { return setOptional(v, &r.Job.CoreSpec) }

func setThreadSpec(r *Request, v string) error {
	var n int
	if err := values.SetCount(v, 1, &n); err != nil {
		return err
	}
	r.Job.ThreadSpec = &n
	return nil
}

func setRelative(r *Request, v string) error { return setOptional(v, &r.Step.Relative) }

func setOptional(v string, dst **int) error {
	var n int
	if err := values.SetCount(v, 0, &n); err != nil {
		return err
	}
	*dst = &n
	return nil
}

func setDelayBoot(r *Request, v string) error { return values.SetLimit(v, &r.Job.DelayBoot) }

func setDepends(r *Request, v string) error {
	d, ok := values.ParseDepends(v)
	if !ok {
		return opt.Refused("Job dependency problem")
	}
	r.Job.Depends = d
	return nil
}

func setDistribution(r *Request, v string) error {
	if size := r.sys.Getenv("SLURM_DIST_PLANESIZE"); r.prog == opt.Srun && size != "" && strings.EqualFold(v, "plane") {
		v += "=" + size
	}
	plane, err := values.ParseDistribution(v)
	r.Job.Distribution, r.Job.PlaneSize = v, plane
	return err
}

// setHosts reads a host list, or the file that it names if there is a slash in it.
func (r *Request) setHosts(v string, dst *[]cluster.NodeName) error {
	if strings.Contains(v, "/") {
		err := readHostFile(r.sys, v, dst, &r.hosts)
		if u, ok := err.(*opt.UsageError); ok {
			u.Lines = u.Lines[:1]
		}
		return err
	}
	names, err := hostlist.Expand(v)
	if err != nil {
		return opt.Refused("Invalid node name specified")
	}
	*dst, r.hosts = front.NodeNames(names), allNames(names)
	return nil
}

// allNames keeps repetitions: with -m arbitrary each name is a task's.
func allNames(names []string) []cluster.NodeName {
	out := make([]cluster.NodeName, len(names))
	for i, n := range names {
		out[i] = cluster.NodeName(n)
	}
	return out
}

func readHostFile(s *front.Sys, path string, dst, all *[]cluster.NodeName) error {
	text, err := s.ReadFile(path, front.MaxHostFile)
	if err != nil && !errors.Is(err, syscall.EISDIR) {
		return &opt.UsageError{Code: opt.CodeError, Lines: []string{
			"error: slurm_allocate_resources error opening file " + path + ", " + front.PlainError(err),
			"error: Invalid --nodefile node file"}}
	}
	var words []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		names, err := hostlist.Expand(strings.TrimSpace(line))
		if err != nil {
			return opt.Refused("Invalid node name specified")
		}
		words = append(words, names...)
	}
	if len(words) == 0 {
		return &opt.UsageError{
			Code:  opt.CodeUsage,
			Lines: []string{"error: Hostlist is empty!", "error: Invalid --nodefile node file"},
		}
	}
	*dst, *all = front.NodeNames(words), allNames(words)
	return nil
}

func setNodeFile(r *Request, v string) error {
	err := readHostFile(r.sys, v, &r.Job.NodeList, &r.hosts)
	if u, ok := err.(*opt.UsageError); ok {
		u.Code = opt.CodeUsage
	}
	return err
}

func setExclusive(r *Request, v string) error {
	switch strings.ToLower(v) {
	case "":
		r.Job.Sharing = cluster.ShareExclusive
		r.Step.Exact = true
	case "user":
		r.Job.Sharing = cluster.ShareUser
	case "mcs":
		r.Job.Sharing = cluster.ShareMCS
	default:
		return opt.ErrSpec
	}
	return nil
}

func setExportFile(r *Request, v string) error {
	if r.Client.ExportFile == v && r.exportFile != nil {
		return nil // a descriptor can be read but once
	}
	r.Client.ExportFile = v
	text, err := readExportFile(r.sys, v)
	if err != nil {
		return opt.Errorf(opt.CodeError, "error: Could not open user environment file %s", v)
	}
	r.exportFile = text
	return nil
}

// setNodeInfo reads S[:C[:T]]; * leaves a level open, as one that is not given, whatever an option before it said,
// and of a range the least counts.
func setNodeInfo(r *Request, v string) error {
	nth := [...]string{"first", "second", "third"}
	dst := [...]*int{&r.Job.SocketsPerNode, &r.Job.CoresPerSocket, &r.Job.ThreadsPerCore}
	for _, level := range dst {
		*level = 0
	}
	for i, word := range strings.Split(v, ":") {
		if i >= len(dst) {
			break
		}
		word, _, _ = strings.Cut(word, "-")
		if word == "*" || word == "" {
			continue
		}
		if values.SetCount(word, 0, dst[i]) != nil {
			return opt.Errorf(opt.CodeError, "error: Invalid numeric value \"%s\" for %s arg of -B.", word, nth[i])
		}
	}
	return nil
}

// setGetUserEnv reads [TIMEOUT][MODE], MODE being S or L.
func setGetUserEnv(r *Request, v string) error {
	switch strings.Trim(v, "0123456789") {
	case "", "s", "S", "l", "L":
		r.Job.UserEnv = true
		return nil
	}
	return opt.ErrSpec
}

func setUID(r *Request, v string) error {
	if r.sys.UID != 0 {
		return opt.Errorf(opt.CodeUsage, "error: --uid only permitted by root user")
	}
	u, ok := front.LookupUser(v)
	if !ok {
		return opt.ErrSpec
	}
	r.Client.UID = &u.UID
	r.Job.UID = u.UID
	if r.Client.GID == nil {
		r.Job.GID = u.GID
	}
	return nil
}

func setGID(r *Request, v string) error {
	if r.sys.UID != 0 {
		return opt.Errorf(opt.CodeUsage, "error: --gid only permitted by root user")
	}
	g, ok := front.LookupGroup(v)
	if !ok {
		return opt.ErrSpec
	}
	r.Client.GID = &g
	r.Job.GID = g
	return nil
}

func setGPUsPerNode(r *Request, v string) error {
	if err := values.SetGPUs(v, &r.gpusPerNode); err != nil {
		return err
	}
	r.Job.GPUsPerNode = true
	return nil
}

func setGRES(r *Request, v string) error {
	if v == "help" {
		return values.Answer(0, "Valid gres options are:\ngpu[[:type]:count]")
	}
	if v == "" {
		return opt.Refused("Invalid Trackable RESource (TRES) specification")
	}
	list, ok := values.ParseGRES(v)
	if !ok {
		return opt.Errorf(opt.CodeError, values.BadGRES)
	}
	r.gres = list
	return nil
}

func setGRESFlags(r *Request, v string) error {
	switch strings.ToLower(v) {
	case "disable-binding", "enforce-binding", "one-task-per-sharing", "multiple-tasks-per-sharing", "allow-task-sharing":
		r.Job.GRESFlags = strings.ToLower(v)
		return nil
	}
	return opt.ErrSpec
}

func setImmediate(r *Request, v string) error {
	n := 0
	if v != "" && values.SetCount(v, 0, &n) != nil {
		return opt.Errorf(opt.CodeError, "error: Invalid numeric value \"%s\" for immediate.", v)
	}
	d := time.Duration(n) * time.Second
	r.Client.Immediate = &d
	return nil
}

func setJobID(r *Request, v string) error {
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil || n == 0 {
		return opt.ErrNumber
	}
	r.Client.JobID = uint32(n)
	return nil
}

// setJobName keeps a name. A step does not take the name of its job.
func setJobName(r *Request, v string) error {
	if r.prog == opt.Srun && r.from == FromEnv && r.sys.Getenv("SLURM_JOB_ID") != "" {
		return nil
	}
	r.Job.Name, r.named = v, true
	return nil
}

func setKillCommand(r *Request, v string) error {
	if v == "" {
		v = "TERM"
	}
	if r.Client.KillCommand = values.SignalNumber(v); r.Client.KillCommand == 0 {
		return opt.ErrSpec
	}
	return nil
}

func setKillOnBadExit(r *Request, v string) error {
	n := 1
	if v != "" {
		if err := values.SetCount(v, 0, &n); err != nil {
			return err
		}
	}
	yes := n != 0
	r.Step.KillOnBadExit = &yes
	return nil
}

func setKillInvalidDep(r *Request, v string) error {
	yes := strings.EqualFold(v, "yes")
	if !yes && !strings.EqualFold(v, "no") {
		return opt.ErrSpec
	}
	r.Job.KillInvalidDepend = &yes
	return nil
}

func setMailType(r *Request, v string) error {
	list, ok := values.ParseMailTypes(v)
	if !ok {
		return opt.ErrSpec
	}
	r.Job.MailType = list
	return nil
}

func setMailUser(r *Request, v string) error {
	if strings.HasPrefix(v, "-") {
		return fmt.Errorf("--mail-user=%s: an address does not begin with -, which mail programs take for an option", v)
	}
	r.Job.MailUser = v
	return nil
}

// maxURL bounds the address of --notify, in bytes.
const maxURL = 2048

func setNotify(r *Request, v string) error {
	address := cluster.ParseNotify(v).URL
	scheme, rest, ok := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	if !ok || scheme != "http" && scheme != "https" || host == "" || len(v) > maxURL || strings.ContainsAny(v, " \t\r\n") {
		return fmt.Errorf("--notify=%s: want a URL that begins with https:// or http://, of at most %d bytes; "+
			"for chat services slack+https://, mattermost+https:// or teams+https://", v, maxURL)
	}
	r.Job.Notify = v
	return nil
}

// setMem keeps the last of --mem, --mem-per-cpu and --mem-per-gpu, which is of the
// strongest source; checkConflicts refuses two of them from one source.
func (r *Request) setMem(v string, per cluster.MemPer) error {
	mb, ok := values.ParseMem(v)
	if !ok {
		return opt.ErrSpec
	}
	r.memFrom[per] = r.from
	r.Job.Mem = cluster.Mem{Per: per, MB: mb}
	switch {
	case mb == 0 && per == cluster.MemPerCPU: // all of each node's, as with --mem=0
		r.Job.Mem.Per = cluster.MemPerNode
	case mb == 0 && per == cluster.MemPerGPU:
		r.Job.Mem.Per = cluster.MemDefault
	}
	return nil
}

func setNice(r *Request, v string) (err error) {
	r.Job.Nice, err = values.ParseNice(v, r.given && v != "")
	return err
}

func (r *Request) checkNoAllocate() error {
	r.Client.NoAllocate = true
	return nil
}

// setRequeue permits the job to be requeued; SBATCH_REQUEUE does with any value.
func setRequeue(r *Request, v string) error {
	yes := true
	r.Job.Requeue = &yes
	if strings.EqualFold(v, "expedite") {
		survives(r).Expedite = true
		return nil
	}
	if v != "" && r.from != FromEnv {
		return opt.Errorf(opt.CodeError, "error: --requeue=%s: want expedite or no value", v)
	}
	return nil
}

func setNoKill(r *Request, v string) error {
	if v != "" && !strings.EqualFold(v, "off") && !strings.EqualFold(v, "set") {
		return opt.ErrSpec
	}
	r.Job.NoKill = !strings.EqualFold(v, "off")
	r.Step.NoKill = r.Job.NoKill
	return nil
}

// setOOMKillStep reads --oom-kill-step of Slurm 24.05.
func setOOMKillStep(r *Request, v string) error {
	switch v {
	case "", "1":
		r.Way.OOMKillStep = true
	case "0":
		r.Way.OOMKillStep = false
	default:
		return opt.ErrSpec
	}
	return nil
}

// setTRESBind reads --tres-bind of Slurm 23.11, NAME:[verbose,]TYPE+…: of GPUs it is --gpu-bind in other words.
func setTRESBind(r *Request, v string) error {
	for one := range strings.SplitSeq(v, "+") {
		name, how, _ := strings.Cut(one, ":")
		verbose, kind := "", how
		if rest, ok := strings.CutPrefix(how, "verbose,"); ok {
			verbose, kind = "verbose,", rest
		}
		if name != "gres/gpu" && kind != "none" {
			return opt.Errorf(opt.CodeUsage,
				"error: --tres-bind=%s cannot be done here: only gres/gpu is bound to tasks", one)
		}
		for _, listed := range []string{"map", "mask"} {
			if list, ok := strings.CutPrefix(kind, listed+":"); ok {
				kind = listed + "_gpu:" + list
			}
		}
		if values.CheckGPUBind(verbose+kind) != nil {
			return opt.Errorf(opt.CodeUsage, "error: Invalid --tres-bind argument: %s", one)
		}
		if name == "gres/gpu" {
			r.Job.GPUBind = verbose + kind
		}
	}
	return nil
}

func setNodes(r *Request, v string) error {
	lo, hi, err := values.ParseNodes(v)
	r.Job.MinNodes, r.Job.MaxNodes = lo, hi
	return err
}

func setOpenMode(r *Request, v string) error {
	if v == "" {
		return opt.ErrSpec
	}
	switch first := v[0] | 0x20; first { // the first letter is enough, as in Slurm
	case 'a', 't':
		r.Client.OpenMode = first
		return nil
	}
	return opt.ErrSpec
}

// noPriority is Slurm's mark of a priority that is not set; larger ones do not exist.
const noPriority = 4294967294

func setPriority(r *Request, v string) error {
	if strings.EqualFold(v, "TOP") {
		top := uint32(noPriority - 1)
		r.Job.Priority = &top
		return nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	switch {
	case n < 0:
		return opt.Errorf(opt.CodeUsage, "error: Priority must be >= 0")
	case n >= noPriority:
		return opt.Errorf(opt.CodeUsage, "error: Priority must be < %d", uint32(noPriority))
	case err != nil:
		n = 0
	}
	p := uint32(n)
	r.Job.Priority = &p
	return nil
}

func setResvPorts(r *Request, v string) error {
	n := 0
	if v != "" && values.SetCount(v, 0, &n) != nil {
		return opt.Errorf(opt.CodeError, "error: Invalid numeric value \"%s\" for --resv-port.", v)
	}
	r.Step.Ports = &n
	return nil
}

func setSendLibs(r *Request, v string) error {
	on, ok := values.FlagArg(v)
	if !ok && v != "" {
		return opt.ErrSpec
	}
	r.Bcast.Libs = on || v == ""
	return nil
}

func checkLetters(v, allowed string) error {
	if v == "" || strings.Trim(v, allowed) != "" {
		return opt.ErrSpec
	}
	return nil
}

func setSignal(r *Request, v string) error {
	sig, ok := values.ParseSignal(v)
	if !ok {
		return opt.ErrSpec
	}
	r.Job.Signal = sig
	return nil
}

func setSwitches(r *Request, v string) (err error) {
	r.Job.Switches, r.Job.SwitchWait, err = values.ParseSwitches(v)
	return err
}

func setTmp(r *Request, v string) error {
	mb, ok := values.ParseMem(v)
	if !ok {
		return opt.ErrSpec
	}
	r.Job.TmpMB = int64(mb)
	return nil
}

func setWait(r *Request, v string) error { return setOptional(v, &r.Client.WaitSeconds) }

func checkWaitAllNodes(_ *Request, v string) error {
	var n int
	if err := values.SetCount(v, 0, &n); err != nil {
		return err
	}
	if n > 1 {
		return opt.ErrSpec
	}
	return nil
}

// readAhead is of options that are looked for before the others are read.
func readAhead(*Request, string) error { return nil }

// checkTRESPerTask reads what of --tres-per-task are CPUs and GPUs.
func checkTRESPerTask(r *Request, v string) error {
	for word := range strings.SplitSeq(v, ",") {
		word = strings.Replace(word, "=", ":", 1)
		name, count, ok := strings.Cut(word, ":")
		if !ok {
			return opt.ErrSpec
		}
		if name == "cpu" {
			if err := values.SetCount(count, 1, &r.Job.CPUsPerTask); err != nil {
				return opt.ErrSpec
			}
			continue
		}
		list, ok := values.ParseGRES(word)
		if !ok {
			return opt.ErrSpec
		}
		r.Job.PerTask = append(r.Job.PerTask, list...)
	}
	return nil
}
