package control

import "strings"

// configKeys is how Slurm spells the keys of slurm.conf.
const configKeys = "AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageHost AccountingStorageExternalHost " +
	"AccountingStorageParameters AccountingStoragePort AccountingStorageTRES AccountingStorageType AccountingStorageUser " +
	"AccountingStoreFlags AcctGatherEnergyType AcctGatherFilesystemType AcctGatherInterconnectType AcctGatherNodeFreq " +
	"AcctGatherProfileType AllowSpecResourcesUsage AuthAltTypes AuthAltParameters AuthInfo AuthType BatchStartTimeout " +
	"BcastExclude BcastParameters BOOT_TIME BurstBufferType CliFilterPlugins ClusterName CommunicationParameters CompleteWait " +
	"CoreSpecPlugin CpuFreqDef CpuFreqGovernors CredType DebugFlags DefMemPerCPU DependencyParameters DisableRootJobs " +
	"EioTimeout EnforcePartLimits Epilog EpilogMsgTime EpilogSlurmctld ExtSensorsType ExtSensorsFreq FairShareDampeningFactor " +
	"FederationParameters FirstJobId GetEnvTimeout GresTypes GpuFreqDef GroupUpdateForce GroupUpdateTime HASH_VAL " +
	"HealthCheckInterval HealthCheckNodeState HealthCheckProgram InactiveLimit InteractiveStepOptions JobAcctGatherFrequency " +
	"JobAcctGatherType JobAcctGatherParams JobCompHost JobCompLoc JobCompPort JobCompType JobCompUser JobContainerType " +
	"JobCredentialPrivateKey JobCredentialPublicCertificate JobDefaults JobFileAppend JobRequeue JobSubmitPlugins " +
	"KillOnBadExit KillWait LaunchParameters LaunchType Licenses LogTimeFormat MailDomain MailProg MaxArraySize MaxDBDMsgs " +
	"MaxJobCount MaxJobId MaxMemPerNode MaxNodeCount MaxStepCount MaxTasksPerNode MCSPlugin MCSParameters MessageTimeout " +
	"MinJobAge MpiDefault MpiParams MULTIPLE_SLURMD NEXT_JOB_ID NodeFeaturesPlugins OverTimeLimit PluginDir PlugStackConfig " +
	"PowerParameters PowerPlugin PreemptMode PreemptType PreemptExemptTime PrEpParameters PrEpPlugins PriorityParameters " +
	"PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityDecayHalfLife PriorityCalcPeriod PriorityFavorSmall " +
	"PriorityFlags PriorityMaxAge PriorityUsageResetPeriod PriorityType PriorityWeightAge PriorityWeightAssoc " +
	"PriorityWeightFairShare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData " +
	"ProctrackType Prolog PrologEpilogTimeout PrologSlurmctld PrologFlags PropagatePrioProcess PropagateResourceLimits " +
	"PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram " +
	"ResumeRate ResumeTimeout ResvEpilog ResvOverRun ResvProlog ReturnToService RoutePlugin SchedulerParameters " +
	"SchedulerTimeSlice SchedulerType ScronParameters SelectType SelectTypeParameters SlurmUser SlurmctldAddr SlurmctldDebug " +
	"SlurmctldHost SlurmctldLogFile SlurmctldPort SlurmctldSyslogDebug SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg " +
	"SlurmctldTimeout SlurmctldParameters SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort SlurmdSpoolDir " +
	"SlurmdSyslogDebug SlurmdTimeout SlurmdUser SlurmSchedLogFile SlurmSchedLogLevel SlurmctldPidFile SlurmctldPlugstack " +
	"SLURM_CONF SLURM_VERSION SrunEpilog SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes SuspendExcParts " +
	"SuspendProgram SuspendRate SuspendTime SuspendTimeout SwitchParameters SwitchType TaskEpilog TaskPlugin TaskPluginParam " +
	"TaskProlog TCPTimeout TmpFS TopologyParam TopologyPlugin TrackWCKey TreeWidth UsePam UnkillableStepProgram " +
	"UnkillableStepTimeout VSizeFactor WaitTime X11Parameters "

// spelt is a key as Slurm spells it, or as it is where Slurm has no such key.
func spelt(key string) string {
	for k := range strings.FieldsSeq(configKeys) {
		if strings.EqualFold(k, key) {
			return k
		}
	}
	return key
}
