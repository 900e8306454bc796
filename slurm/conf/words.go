package conf

import (
	"fmt"
	"slices"
	"strings"

	"dev.muster/cluster/hostlist"
)

// paramWord is a word of one of Slurm's keys of many words that sets nothing here: what stands in its place, or
// what is not done. needless ones ask for what is so anyway, and only a check of all tells of them.
type paramWord struct {
	word     string
	why      string
	needless bool
}

// paramKey is a key of many words. Those that are honoured are read elsewhere.
type paramKey struct {
	key      string
	honoured string // by other parts of this package
	words    []paramWord
}

var paramKeys = [...]paramKey{
	{"LaunchParameters", "nccl_env remove_ipc use_interactive_step", []paramWord{
		{"batch_step_set_cpu_freq", "--cpu-freq sets no frequency", false},
		{"cray_net_exclusive", "there is no Cray network", true},
		{"disable_send_gids", "groups are those that the server knows, whatever the node's database says", false},
		{
			"enable_nss_slurm",
			"a job has its user's ids and groups without a look at the node's database; names are looked up there",
			true,
		},
		{"lustre_no_flush", "Lustre's locks are not touched between steps", true},
		{"mem_sort", "free memory is not sorted (zonesort) before steps", false},
		{"mpir_use_nodeaddr", "debuggers get the names of nodes, not their addresses", false},
		{"slurmstepd_memlock", "the supervisor is not locked into memory", false},
		{"slurmstepd_memlock_all", "the supervisor is not locked into memory", false},
		{
			"test_exec",
			"srun does not look for the program before it starts tasks: each task says itself that it cannot be found",
			false,
		},
	}},
	{"PrologFlags", "contain x11", []paramWord{
		{"alloc", "the prolog runs when a job gets its nodes, always", true},
		{"deferbatch", "a job begins when the prolog is over on all its nodes", true},
		{"forcerequeueonfail", "it would requeue jobs with --no-requeue too whose prolog fails", false},
		{"nohold", "it would let salloc go on before the prolog is over", false},
		{"runinjob", "prolog and epilog run outside the job's cgroup", false},
		{"serial", "prologs and epilogs of several jobs run side by side on a node", false},
	}},
	{"X11Parameters", "home_xauthority", nil},
	{"CommunicationParameters", "notify_local", []paramWord{
		{"block_null_hash", "members know each other by certificates", true},
		{"checkghalquiesce", "there is no Cray network", true},
		{"disableipv4", "--bind says which addresses daemons listen at", false},
		{"enableipv6", "IPv6 addresses need no setting", true},
		{"keepaliveinterval", "calls find out by themselves whether the other side lives", true},
		{"keepaliveprobes", "calls find out by themselves whether the other side lives", true},
		{"keepalivetime", "calls find out by themselves whether the other side lives", true},
		{"noaddrcache", "nodes tell their addresses when they come", true},
		{"noctldinaddrany", "--bind says which addresses daemons listen at", false},
		{"noinaddrany", "--bind says which addresses daemons listen at", false},
		{"host_unreach_retry_count", "calls are tried again until their time is over", true},
	}},
	{"PrivateData", "events jobs nodes reservations usage users none", []paramWord{
		{"accounts", "all users see which accounts there are; users keeps who is in them", false},
		{"cloud", "nodes of clouds are shown, also while they are off", true},
		{"partitions", "all users see the partitions; Hidden=YES leaves one out of lists", false},
	}},
	{"FederationParameters", "fed_display", nil},
	{"SlurmctldParameters", "allow_user_triggers", []paramWord{
		{"cloud_dns", "nodes tell their addresses when they come", true},
		{"cloud_reg_addrs", "nodes tell their addresses when they come", true},
		{"enable_configless", "nodes get the configuration from the servers, always", true},
		{"idle_on_node_suspend", "it would show nodes as idle at once when they are suspended", false},
		{"max_dbd_msg_action", "there is no database daemon to wait for", true},
		{
			"node_reg_mem_percent",
			"a node that has less memory than declared serves with what it has, and sinfo -R says so", true,
		},
		{"power_save_interval", "nodes are switched when it is time, not at intervals", true},
		{"power_save_min_interval", "nodes are switched when it is time, not at intervals", true},
		{
			"preempt_send_user_signal",
			"it would send the signal of --signal to jobs that are preempted, in place of SIGTERM", false,
		},
		{"reboot_from_controller", "RebootProgram runs on the node itself", false},
		{"user_resv_delete", "it would let users delete reservations that they may use", false},
	}},
	{"SlurmdParameters", "", []paramWord{
		{"config_overrides", "a node has what it finds, not what slurm.conf says", false},
		{"l3cache_as_socket", "sockets are the machine's, not groups of cores that share an L3 cache", false},
		{"numa_node_as_socket", "sockets are the machine's, not NUMA nodes", false},
		{"shutdown_on_reboot", "the client is ended by the machine's own shutdown", true},
	}},
	{"TaskPluginParam", "", []paramWord{
		{"none", "it would bind no tasks where --cpu-bind says nothing", false},
		{"autobind", "it would choose a binding where none fits by itself", false},
		{"cores", "it would bind tasks to cores where --cpu-bind says nothing", false},
		{"slurmdoffspec", "the daemons may run on the CPUs of CoreSpecCount and CpuSpecList", false},
		{"sockets", "it would bind tasks to sockets where --cpu-bind says nothing", false},
		{"threads", "it would bind tasks to threads where --cpu-bind says nothing", false},
		{"verbose", "it would have --cpu-bind=verbose for all steps", false},
	}},
	{"TopologyParam", "topooptional", []paramWord{
		{"dragonfly", "jobs are placed by leaf switches and those above, as in a tree", false},
	}},
	{"SchedulerParameters", "", []paramWord{ // besides those of schedulerWords and needless
		{"allow_zero_lic", "it would accept jobs that ask for more licenses than there are, and hold them back", false},
		{"bf_job_part_count_reserve", "it would keep nodes free for so many jobs of each partition only", false},
		{"delay_boot", "it would be the --delay-boot of jobs without one", false},
		{"disable_hetjob_steps", "it would forbid steps over several components", false},
		{"enable_hetjob_steps", "steps may always go over several components", true},
		{"ignore_prefer_validation", "it would accept a --prefer that no node can fulfil", false},
		{"max_array_tasks", "it would bound the number of an array's tasks below MaxArraySize", false},
		{"max_script_size", "it would bound scripts: here the bound is 4 MiB", false},
		{"no_backup_scheduling", "the server that leads schedules", true},
		{
			"no_env_cache",
			"it would fail jobs whose user's environment cannot be loaded in time, in place of using a cached one",
			false,
		},
		{"requeue_setup_env_fail", "it would requeue jobs whose user's environment cannot be loaded", false},
		{"salloc_wait_nodes", "a job begins when all its nodes have confirmed it", true},
		{"sbatch_wait_nodes", "a job begins when all its nodes have confirmed it", true},
		{"spec_cores_first", "it would have CoreSpecCount take the first cores, not the last", false},
		{"whole_hetjob", "it would have an action on one component of a heterogeneous job be one on all", false},
	}},
}

// paramKeyOf finds the key's words; nil if it is none of these.
func paramKeyOf(key string) *paramKey {
	for i := range paramKeys {
		if strings.EqualFold(paramKeys[i].key, key) {
			return &paramKeys[i]
		}
	}
	return nil
}

// params tells, word by word, what a key of many words asks for that is not done, and reports whether it is such a key.
func (r *reader) params(file string, n int, p pair) bool {
	k := paramKeyOf(p.key)
	if k == nil {
		return false
	}
	for word := range strings.SplitSeq(p.value, ",") {
		if word = strings.TrimSpace(word); word != "" {
			r.param(file, n, k, word)
		}
	}
	return true
}

// param tells of one word.
func (r *reader) param(file string, n int, k *paramKey, word string) {
	name, _, _ := strings.Cut(strings.ToLower(word), "=")
	if slices.Contains(strings.Fields(k.honoured), name) {
		return
	}
	i := slices.IndexFunc(k.words, func(w paramWord) bool { return w.word == name })
	switch {
	case i < 0:
		r.note(file, n, "%s=%s is not known; ignored", k.key, word)
	case k.words[i].needless:
		r.fine = append(r.fine,
			fmt.Sprintf("%s:%d: %s=%s needs no setting here: %s", file, n, k.key, word, k.words[i].why))
	default:
		r.note(file, n, "%s=%s has no effect: %s", k.key, word, k.words[i].why)
	}
}

// Spell writes a key of slurm.conf as its manual does; one that it does not know stays as it is.
func Spell(key string) string {
	for _, k := range knownKeys() {
		if strings.EqualFold(k, key) {
			return k
		}
	}
	return key
}

func quoted(v string) string {
	if strings.ContainsAny(v, " \t") {
		return `"` + v + `"`
	}
	return v
}

// word is Key=value, none if there is no value.
func word(key, value string) string {
	if value == "" {
		return ""
	}
	return " " + key + "=" + quoted(value)
}

func line(words ...string) string { return strings.TrimPrefix(strings.Join(words, ""), " ") }

// hosts writes names shortly if they are read in the same order, else as they are.
func hosts[S ~string](names []S) string {
	plain := make([]string, len(names))
	for i, n := range names {
		plain[i] = string(n)
	}
	short := hostlist.Compress(plain)
	if again, err := hostlist.Expand(short); err != nil || !slices.Equal(again, plain) {
		return strings.Join(plain, ",")
	}
	return short
}
