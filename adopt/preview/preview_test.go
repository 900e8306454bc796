package preview

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dev.muster/slurm/conf"
)

// site reads files as the command does.
func site(t *testing.T, files map[string]string) *Site {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &Site{Source: "DIR", Commands: []string{"squeue", "sinfo"}}
	var err error
	s.Config, s.Notes, s.Fine, s.Refused, err = conf.Inspect(filepath.Join(dir, "slurm.conf"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// find returns the items of a name.
func find(r *Report, name string) (out []Item) {
	for _, list := range r.lists() {
		for _, it := range list {
			if it.Name == name {
				out = append(out, it)
			}
		}
	}
	return out
}

// TestLost compares the phrases that mark a loss with the notes of package conf, setting by setting.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		line, name string
		want       Verdict
	}{
		{"UsePam=1", "UsePam", Lost},
		{"UsePam=0", "UsePam", Needless},
		{"GpuFreqDef=high", "GpuFreqDef", Lost},
		{"CpuFreqDef=Performance", "CpuFreqDef", Lost},
		{"LicenseParameters=x", "LicenseParameters", Lost},
		{"SwitchParameters=x", "SwitchParameters", Lost},
		{"JobCompHost=db", "JobCompHost", Lost},
		{"PrEpParameters=x", "PrEpParameters", Lost},
		{"MCSParameters=x", "MCSParameters", Lost},
		{"PowerParameters=x", "PowerParameters", Lost},
		{"AcctGatherNodeFreq=30", "AcctGatherNodeFreq", Lost},
		{"MaxBatchRequeue=4", "MaxBatchRequeue", Different},
		{"EpilogTimeout=4", "EpilogTimeout", Different},
		{"FastSchedule2=4", "FastSchedule2", Lost},
		{"MpiDefault=lam", "MpiDefault", Lost},
		{"TreeWidth=4", "TreeWidth", Needless},
		{"SlurmctldPort=4", "SlurmctldPort", Needless},
		{"SchedulerParameters=bf_interval=30", "SchedulerParameters", Needless},
		{"MaxJobCount=4", "MaxJobCount", Adopted},
		{"SwitchType=switch/none", "SwitchType", ""},
		{"SwitchType=switch/nvidia_imex", "SwitchType", Lost},
		{"SwitchType=switch/hpe_slingshot", "SwitchType", Lost},
		{"AcctGatherEnergyType=acct_gather_energy/none", "AcctGatherEnergyType", Needless},
		{"AcctGatherEnergyType=acct_gather_energy/ipmi", "AcctGatherEnergyType", Lost},
		{"SelectType=select/linear", "SelectType", Different},
		{"SelectType=select/cons_tres", "SelectType", Adopted},
		{"SelectType=select/mine", "SelectType", Lost},
		{"PreemptType=preempt/qos", "PreemptType", Adopted},
		{"TopologyPlugin=topology/3d_torus", "TopologyPlugin", Lost},
		{"JobSubmitPlugins=require_timelimit", "JobSubmitPlugins", Adopted},
		{"JobSubmitPlugins=pbs", "JobSubmitPlugins", Lost},
		{"Prolog=/etc/p", "Prolog", Adopted},
		{"AuthType=auth/munge", "AuthType", Needless},
		{"MpiDefault=pmix", "MpiDefault", Adopted},
		{"JobCompType=jobcomp/elasticsearch", "JobCompType", Lost},
	} {
		t.Run(c.line, func(t *testing.T) {
			r := Make(site(t, map[string]string{"slurm.conf": "ClusterName=c\n" + c.line + "\n"}))
			got := find(r, c.name)
			lost := slices.ContainsFunc(got, func(it Item) bool { return it.Verdict == Lost })
			if c.want == "" && len(got) > 0 || lost != (r.Lost > 0) {
				t.Fatalf("%+v, %d lost", got, r.Lost)
			}
			if c.want != "" && !slices.ContainsFunc(got, func(it Item) bool { return it.Verdict == c.want }) {
				t.Errorf("%+v, want %s", got, c.want)
			}
			if lost != (c.want == Lost) {
				t.Errorf("%+v, want %s", got, c.want)
			}
			for _, it := range got {
				if it.Action == "" {
					t.Errorf("%+v: no action", it)
				}
			}
		})
	}
}

// TestNotesOnPlugins: a remark on a plugin that muster has is shown along with it.
func TestNotesOnPlugins(t *testing.T) {
	r := Make(site(t, map[string]string{"slurm.conf": "ClusterName=c\nPreemptType=preempt/partition_prio\n" +
		"NodeName=n CPUs=4\nPartitionName=p Nodes=n PriorityJobFactor=2\n"}))
	got := find(r, "PreemptType")
	if len(got) != 2 || got[0].Verdict != Different || got[1].Verdict != Adopted {
		t.Errorf("%+v", got)
	}
}

// TestSpanks: built in, by a hook, and without a counterpart.
func TestSpanks(t *testing.T) {
	r := Make(site(t, map[string]string{"slurm.conf": "ClusterName=c\n", "plugstack.conf": "required spank_pyxis.so\n" +
		"optional x11.so\noptional auks.so\noptional msr-safe.so\nrequired /opt/own.so\n"}))
	want := map[string]Verdict{"spank_pyxis.so": Adopted, "x11.so": Adopted, "auks.so": Different, "msr-safe.so": Lost,
		"/opt/own.so": Lost}
	got := find(r, "SPANK")
	for _, it := range got {
		if want[it.Value] != it.Verdict || it.How == "" || !strings.Contains(it.Where, "plugstack.conf:") {
			t.Errorf("%+v, want %s", it, want[it.Value])
		}
	}
	if len(got) != len(want) || r.Lost != 2 {
		t.Errorf("%+v, %d lost", got, r.Lost)
	}
}

// TestSize counts declared and living nodes.
func TestSize(t *testing.T) {
	s := site(t, map[string]string{"slurm.conf": "ClusterName=c\nNodeName=n[1-3] CPUs=4 RealMemory=2048 " +
		"Gres=gpu:a100:2\nNodeName=m CPUs=2 Gres=gpu:1\nPartitionName=p Nodes=n[1-3]\nPartitionName=q Nodes=m\n"})
	z := Make(s).Size
	if z.Nodes != 4 || z.CPUs != 14 || z.GPUs["a100"] != 6 || z.GPUs["gpu"] != 1 || len(z.Partitions) != 2 ||
		z.Jobs != nil {
		t.Errorf("%+v", z)
	}
	s.Live, s.Jobs = true, "RUNNING\nPENDING\nPENDING\n"
	s.Nodes = "NodeName=n1 CPUEfctv=14 CPUTot=16 Gres=gpu:h100:8(S:0-1),gpu:a100:2(S:0,1),tmp:4 State=IDLE " +
		"RealMemory=64000\n" +
		"NodeName=n2 CPUTot=16 Gres=(null) OS=Linux Gres RealMemory=x State=DOWN*\nNo such node\n"
	z = Make(s).Size
	if z.Nodes != 2 || z.CPUs != 32 || z.GPUs["h100"] != 8 || z.GPUs["a100"] != 2 || z.MemoryMB != 64000 ||
		z.States["DOWN*"] != 1 || z.Jobs["PENDING"] != 2 {
		t.Errorf("%+v", z)
	}
}

// TestDatabase: counts, the estimate, and what is not imported.
func TestDatabase(t *testing.T) {
	s := &Site{Show: "NEXT_JOB_ID = 1000001\nFirstJobId = 1\nAccountingStoreFlags = job_comment,job_script\n" +
		"ClusterName = big\nSLURM_VERSION = 23.11.4\nMailProg = (null)\n",
		Reservations: "ReservationName=a X=1\nReservationName=b\n",
		Dump: "# To edit\nCluster - 'c':Fairshare=1\nParent - 'root'\nUser - 'root':AdminLevel='Administrator'\n" +
			"Account - 'a':Fairshare=1\nUser - 'x':Fairshare=1\nUser - 'x'\nnonsense\nUser - \n"}
	r := Make(s)
	d := r.Database
	if r.Cluster != "big" || r.Release != "23.11.4" || d.JobIDs != 1000000 || d.Seconds != 200 || d.Bytes != 5.5e9 {
		t.Errorf("%+v", r)
	}
	if d.Counts["accounts"] != 2 || d.Counts["users"] != 2 || !IsDump(s.Dump) || IsDump("x") || IsDump("") {
		t.Errorf("%v", d.Counts)
	}
	if got := find(r, "current reservations"); len(got) != 1 || got[0].Value != "2" {
		t.Errorf("%+v", got)
	}
	if got := find(r, "scripts and environments of old jobs"); len(got) != 1 || r.Lost != 1 {
		t.Errorf("%+v, %d lost", got, r.Lost)
	}
}

// TestPrograms: what stands in crontabs and units, once for each file.
func TestPrograms(t *testing.T) {
	s := &Site{Commands: []string{"squeue", "sacct", "sinfo"}, Scheduled: []File{
		{"/etc/cron.d/x", "# sinfo\n*/5 * * * * root /usr/bin/squeue -h|wc -l; squeue\n1 1 * * * root my-squeue\n"},
		{"/u/exp.service", "[Unit]\nDescription=squeue things\nExecStart=/opt/prometheus-slurm-exporter -x\n"},
		{"/u/web.service", "ExecStart=/usr/bin/slurm-web-agent\n"},
		{"/etc/pam.d/sshd", "account required pam_slurm_adopt.so\n"},
		{"/var/spool/cron/u", "@daily sview & $(sacct -X)\n"},
	}}
	var got []string
	for _, it := range programs(s) {
		got = append(got, it.Where+" "+it.Name+" "+string(it.Verdict))
	}
	want := []string{"/etc/cron.d/x:2 squeue works", "/u/exp.service:3 prometheus-slurm-exporter different",
		"/u/web.service:1 slurm-web-agent different", "/etc/pam.d/sshd:1 pam_slurm_adopt.so different",
		"/var/spool/cron/u:1 sview lost", "/var/spool/cron/u:1 sacct works"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	s.Scheduled = []File{{"x", strings.Repeat("squeue\n", 10)}}
	for range 2 * maxHits {
		s.Scheduled = append(s.Scheduled, s.Scheduled[0])
	}
	if n := len(programs(s)); n != maxHits {
		t.Errorf("%d, want %d", n, maxHits)
	}
}

// TestPrint: texts of a site control neither a terminal nor a page.
func TestPrint(t *testing.T) {
	s := site(t, map[string]string{"slurm.conf": "ClusterName=c<b>\nProlog=/x\x1b[31m\nUsePam=1\nNodeName=n\n"})
	s.Scripts = []string{"job_submit.lua:3: syntax\nerror"}
	r := Make(s)
	var text, page strings.Builder
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Cluster c<b>, Slurm, read from DIR", "Lost in muster (2)", "Prolog=/x?[31m",
		"UsePam", "job_submit.lua:3: syntax?error", "Next steps"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s\nlacks %s", text.String(), want)
		}
	}
	if strings.Contains(text.String(), "\x1b") || strings.Contains(page.String(), "\x1b") ||
		strings.Contains(page.String(), "<b>") || !strings.Contains(page.String(), "<td>UsePam</td>") {
		t.Errorf("%s\n%s", text.String(), page.String())
	}
}
