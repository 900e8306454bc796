package sacctmgr

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/show"
	"dev.muster/slurm/slurmtest"
)

// mgrLines are lines of sacctmgr with what they say, and what of the changes that they ask for; none if "".
var mgrLines = []struct{ line, says, asks string }{
	{"delete user alice partition=debug", " Nothing deleted", ""},
	{"delete user partition=debug", " Nothing deleted", ""},
	{"delete user alice account=team-a partition=debug", " Nothing deleted", ""},
	{"delete user alice cluster=oracle",
		" Deleting user associations...\n  C = oracle     A = team-a     U = alice    \n" +
			" Deleting users (No Associations)...\n  alice", `"user":{"name":"alice"`},
	{"delete user adminlevel=operator", " Deleting users...\n  bob", `"name":"bob"`},
	{"delete user adminlevel=administrator", " Nothing deleted", ""},
	{"delete account where user=nobody", " Nothing deleted", ""},
	{"delete account team-b user=carol",
		" Deleting account associations...\n  C = oracle     A = team-b     U = carol", `"carol"`},
	{"delete account team-a user=alice",
		" Deleting account associations...\n  C = oracle     A = team-a     U = alice    \n", `"alice"`},
	{"delete account where parent=team-a", " Nothing deleted", ""},
	{"delete account", " No conditions given to remove, not executing.", ""},
	{"delete account foo=bar",
		" Unknown condition: foo=bar\n Use keyword 'set' to modify value\n No conditions given", ""},
	{"delete qos foo=bar", " Use keyword 'set' to modify SLURM_PRINT_VALUE\n No conditions given", ""},
	{"delete qos name=,", " Nothing deleted", ""},
	{"delete user ,", " Nothing deleted", ""},
	{"delete account account=,", " Nothing deleted", ""},
	{"delete user partition=,", " No conditions given to remove, not executing.", ""},
	{"modify user user=, set adminlevel=administrator", " Nothing modified", ""},
	{"modify user cluster=oracle set adminlevel=administrator", " There was a problem with your 'where' options.", ""},
	{"modify qos id=, set priority=3", " Nothing modified", ""},
	{"modify job jobid=, set comment=x", "sacctmgr: fatal: Bad job/step specified: ", ""},
	{"delete account team-b", " Deleting accounts...\n  team-b", `"user":{"name":"bob","admin_level":"Operator"}`},
	{"modify qos high set maxjob=3", " Modified qos", `"name":"MaxJobsPerUser","max":3`},
	{"modify qos high set grpjob=3", " Modified qos", `"name":"GrpJobs","max":3`},
	{"modify qos high set maxsubmitjobsp=3", " Modified qos", `"name":"MaxSubmitJobsPerUser","max":3`},
	{"modify qos high set maxtresp=cpu=3", " Modified qos", `"name":"MaxTRES","tres":"cpu","max":3`},
	{"modify qos high set mint=cpu=3", " Unknown option: mint=cpu=3", ""},
	{"modify qos high set maxtresperu=cpu=3", " Modified qos", `"name":"MaxTRESPerUser","tres":"cpu","max":3`},
	{"modify qos high set maxtrespj=cpu=3 maxtresminspj=cpu=4 maxtrespn=cpu=5", " Modified qos",
		`{"name":"MaxTRES","tres":"cpu","max":3},{"name":"MaxTRESMins","tres":"cpu","max":4},` +
			`{"name":"MaxTRESPerNode","tres":"cpu","max":5}`},
	{"modify account team-a set maxjo=3", " Modified account associations", `"name":"MaxJobs","max":3`},
	{"modify account team-a set maxtresp=cpu=3", " Modified account associations", `"name":"MaxTRES","tres":"cpu","max":3`},
	{"modify account team-a set maxw=3 grpt=cpu=3", " Unknown option: grpt=cpu=3", ""},
	{"modify account team-a set grpn=3", " Modified account associations", `"name":"GrpTRES","tres":"node","max":3`},
	{"modify account team-a set maxjobsp=3", " Unknown option: maxjobsp=3", ""},
	{"-P show qos high format=name,maxtrespj,maxtresminspj,maxtrespn",
		"Name|MaxTRES|MaxTRESMins|MaxTRESPerNode\nhigh|||", ""},
	{"delete qos id=99", " Nothing deleted", ""},
	{"delete qos id=2", " Deleting QOS(s)...\n  high", `"high"`},
	{"modify user where account=team-a set adminlevel=administrator",
		" There was a problem with your 'where' options.", ""},
	{"modify user where adminlevel=operator set fairshare=3", " There was a problem with your 'where' options.", ""},
	{"modify account where user=alice set description=x", " There was a problem with your 'where' options.", ""},
	{"modify account where organization=x set fairshare=3", " There was a problem with your 'where' options.", ""},
	{"modify user where defaultaccount=team-b set adminlevel=none", " Modified users...\n  bob", `"bob"`},
	{"modify user where name=carol account=team-b set fairshare=3",
		" Modified user associations...\n  C = oracle     A = team-b               U = carol", `"carol"`},
	{"modify user where name=carol partition=debug set fairshare=3", " Nothing modified", ""},
	{"modify qos where id=2 set priority=3", " Modified qos...\n  high", `"high"`},
	{"modify account where parent=root name=team-a set fairshare=9", "  C = oracle     A = team-a of root", `"team-a"`},
	{"add account", " Need name of account to add.", ""},
	{"add account name=", " No blank names are allowed when adding.\n Nothing new added.\n", ""},
	{"add user", " Need name of user to add.", ""},
	{"add qos", " Need name of qos to add.", ""},
	{"add account x fairshare=abc",
		"sacctmgr: error: Invalid value for FairShare (abc)\n Unknown option: fairshare=abc\n", ""},
	{"add account x maxjobs=abc",
		"sacctmgr: error: Invalid value for MaxJobs (abc)\n Unknown option: maxjobs=abc\n", ""},
	{"add account x maxwall=abc", " Bad MaxWall time format: maxwall=abc\n Unknown option: maxwall=abc\n", ""},
	{"add account x grptres=abc",
		"slurmdb_format_tres_str: no TRES id found for abc\n Unknown option: grptres=abc\n", ""},
	{"add user dave account=team-a defaultaccount=nope", " This account 'nope' doesn't exist.", ""},
	{"add user dave account=team-a defaultaccount=team-b",
		"  U = dave      A = team-a     C = oracle    \n  U = dave      A = team-b     C = oracle", `"team-b"`},
	{"add user dave account=team-a adminlevel=boss", " Adding User(s)\n  dave\n Associations =", `"dave"`},
	{"modify user bob set adminlevel=boss", " Nothing modified", ""},
	{"modify user bob set adminlevel=none", " Modified users...\n  bob", `"None"`},
	{"modify user bob set rawusage=0", "sacctmgr: error: An account must be specified", ""},
	{"modify user bob set rawusage=5", "sacctmgr: error: An account must be specified", ""},
	{"modify user bob where account=team-b set rawusage=5", " Modified user associations...", `"usage":{"raw":5}`},
	{"modify account team-b set rawusage=0", " Modified account associations...", `"reset":true`},
	{"modify account team-b set rawusage=", " Modified account associations...", `"reset":true`},
	{"modify account team-b set rawusage=12.5", " Modified account associations...", `"usage":{"raw":12.5}`},
	{"modify account team-b set rawusage=-5",
		"sacctmgr: error: Invalid value for RawUsage (-5)\n You didn't give me anything to set", ""},
	{"modify account team-b set rawusage=nan", "sacctmgr: error: Invalid value for RawUsage (nan)", ""},
	{"modify qos high set rawusage=7", " Modified qos...\n  high", `"usage":{"raw":7}`},
	{"modify qos high set rawusage=-1", " Bad RawUsage value: -1", ""},
	{"modify user bob set newname=rob", "muster's users keep their names", ""},
	{"modify user bob set foo", " Bad format on foo: End your option with an '=' sign", ""},
	{"modify account team-a set parent=nope", " Parent Account nope doesn't exist.", ""},
	{"modify account team-a set name=x", " Can't modify the name of an account", ""},
	{"modify qos high set priority=x", "Invalid value for Priority (x)\n You didn't give me anything to set", ""},
	{"show tres gres/gpu format=id", " 1001 \n", ""},
	{"show tres name=gpu format=id", " 1001 \n", ""},
	{"show tres type=gres/gpu format=id", " 1001 \n", ""},
	{"-nP show assoc onlydefaults format=user,account", "alice|team-a\nbob|team-b\n", ""},
	{"-nP show assoc account=root withsub user= format=account", "root\nteam-a\nteam-b\n", ""},
	{"-nP show assoc wopi user=carol,root format=user,account", "carol|team-b\ncarol|team-a\nroot|root\n", ""},
	{"-nP show assoc wopl user=bob", "oracle|team-b|bob|\n", ""},
	{"-nP show assoc withraw user=alice format=id,parentid,lft,rgt", "5|3|11|12\n", ""},
	{"-nP show assoc 3,4 format=id", "3\n4\n", ""},
	{"show assoc nope", "sacctmgr: error: Invalid value for AssocId (nope)\n", ""},
	{"show assoc id=x", "sacctmgr: error: Invalid value for AssocId (x)\n", ""},
	{"-nP show cluster wolimits", "oracle||0|0\n", ""},
	{"-nP show tres withdeleted type=cpu", "cpu||1\n", ""},
	{"show event event=nope", " Unknown event type: 'nope'  Valid events are Cluster and Node.\n", ""},
	{"show event node1", " Unknown event type: 'node1'", ""},
	{"show event states=nope", "Invalid state: nope\nValid node states are: DRAIN FAIL", ""},
	{"show event user=nobody_x", "sacctmgr: error: Invalid user id: nobody_x\n", ""},
	{"show event start=x", "Invalid time specification (pos=0): x\n", ""},
	{"-P show event event=cluster", "Cluster|TRES|TimeStart|TimeEnd|Cluster Nodes\n", ""},
	{"-P show resource withclusters", "Name|Server|Type|Count|% Allocated|ServerType|Cluster|% Allowed\n", ""},
	{"show resource foo=1", " Unknown condition: foo=1\n Use keyword 'set' to modify SLURM_PRINT_VALUE", ""},
	{"add resource x", "muster's sacctmgr has no resource: licenses are part of the configuration", ""},
	{"delete cluster", " No conditions given to remove, not executing.", ""},
	{"delete cluster nope", " Nothing deleted", ""},
	{"delete cluster oracle", " Cluster oracle is what the servers of muster form", ""},
	{"show transactions action=nope", "sacctmgr: error: You gave a bad action 'nope'.\n", ""},
	{"show transactions start=x", "Invalid time specification (pos=0): x\n", ""},
	{"-nP show cluster format=cluster,class", "oracle|\n", ""},
	{"-nP show cluster format=clusternodes,nodecount,tres",
		"gpu-node-[001-008]|8|billing=128,cpu=128,energy=0,fs/disk=0,gres/gpu:h100=64,gres/gpu=64,mem=500G," +
			"node=8,", ""},
	{"-nP show account user=alice withassoc format=account,user", "root|\nteam-a|alice\nteam-b|\n", ""},
	{"-nP show user account=team-b withassoc format=user,account", "alice|\nbob|team-b\n", ""},
	{"-nP show account parent=root withassoc format=account,user", "root|\nteam-a|\nteam-b|\n", ""},
}

// TestSacctmgrLines: what sacctmgr says to a line, and that it changes what is meant and nothing else.
func TestSacctmgrLines(t *testing.T) {
	for _, l := range mgrLines {
		f := slurmtest.New()
		f.Own = f.Mux()
		slurmtest.WithBooks(f.Own, f)
		sys := slurmtest.Sys("sacctmgr", "/")
		var out bytes.Buffer
		sys.Stdout, sys.Stderr, sys.Dial, sys.UID = &out, &out, f.Dial(t), 0
		Run(sys, append([]string{"-i"}, strings.Fields(l.line)...))
		text := out.String()
		if !strings.Contains(text, l.says) {
			t.Errorf("%s says\n%s\nwant\n%s", l.line, text, l.says)
		}
		log := strings.Join(f.Log, "\n")
		if l.asks == "" && log != "" || !strings.Contains(log, l.asks) {
			t.Errorf("%s asks for %q, want %q", l.line, log, l.asks)
		}
	}
}

// TestLoadQOS: load makes and changes the QOS of a file of Slurm 25.11 and newer, which may preempt later ones.
func TestLoadQOS(t *testing.T) {
	const tree = "Cluster - 'oracle':Fairshare=1\nParent - 'root'\n"
	for _, c := range []struct{ file, says, asks string }{
		{"QOS - 'normal':Description='Normal'\nQOS - 'gold':Priority=7:Flags='DenyOnLimit':MaxTRESPerJob=cpu=5:Preempt='late'\n" +
			"QOS - 'late':MaxJobsPU=2:MaxWallDurationPerJob=30\n" + tree + "Account - 'a1':Description='x':QOS='gold'\n",
			" Added QOS gold\n Added QOS late\n", `"preempt":["late"]`},
		{"QOS - 'high':Priority=8\n" + tree, " Changed QOS high\n", `"name":"high","priority":8`},
		{"QOS - 'high':Foo=8\n" + tree, " Unknown option: Foo=8\n", ""},
		{tree + "QOS - 'high':Priority=8\n", " You need to specify all QOS before the 'Cluster - $NAME'", ""},
		{"QOS - 'high':Priority=9\n", " Nothing new added.", ""},
	} {
		f := slurmtest.New()
		f.Own = f.Mux()
		slurmtest.WithBooks(f.Own, f)
		sys := slurmtest.Sys("sacctmgr", "/")
		var out bytes.Buffer
		sys.Stdout, sys.Stderr, sys.Dial, sys.UID = &out, &out, f.Dial(t), 0
		file := filepath.Join(t.TempDir(), "books.cfg")
		if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		Run(sys, []string{"-i", "load", file})
		log := strings.Join(f.Log, "\n")
		if !strings.Contains(out.String(), c.says) || !strings.Contains(log, c.asks) || c.asks == "" && log != "" {
			t.Errorf("%s says\n%s\nand asks for\n%s\nwant\n%s\nand\n%s", c.file, out.String(), log, c.says, c.asks)
		}
	}
}

// TestDefaultAccountStays: an account is not deleted that is the default one of a user with another account.
func TestDefaultAccountStays(t *testing.T) {
	m := &manager{sys: slurmtest.Sys("sacctmgr", "/"), books: &show.Books{BooksResponse: slurmtest.Books()}}
	m.books.Users = []*cluster.User{{Name: "carol", DefaultAccount: "team-a"}}
	for accounts, want := range map[string]int{"team-a": 1, "team-b": 0, "team-a team-b": 0} {
		q := &mgrQuery{where: map[string][]string{"account": strings.Fields(accounts)}}
		if got := m.stillDefault("account", q); got != want {
			t.Errorf("delete account %s: %d, want %d", accounts, got, want)
		}
	}
}

// TestEvents: spans of nodes that were down or drained are events, and conditions select them.
func TestEvents(t *testing.T) {
	spans := []cluster.NodeSpan{
		{Node: "n1", From: 10, To: 20, Down: true, Reason: "dead", By: "root"},
		{Node: "n1", From: 20, To: 30, Down: true, Reason: "dead", By: "root", Lost: true},
		{Node: "n1", From: 30, To: 40}, {Node: "n2", From: 30, Drain: true, Reason: "slow", By: "root"},
	}
	for line, want := range map[string]string{
		"": "n1 n2", "states=down start=now": "n1", "states=down": "", "states=drain": "n2", "states=": "n2",
		"reason=Dead": "n1", "nodes=n[2-3]": "n2", "user=root": "n1 n2", "event=cluster": "", "event=n,c": "n1 n2",
		"states=idle start=now": "",
	} {
		m := &manager{sys: slurmtest.Sys("sacctmgr", "/")}
		q, _ := m.conditions("event", strings.Fields(line))
		ask, code := askEvents(m, q)
		if code != 0 {
			t.Fatalf("%s: refused", line)
		}
		var got []string
		for _, s := range joinedEvents(spans, 5) {
			if ask.takes(q, &s) {
				got = append(got, string(s.Node))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", line, got, want)
		}
	}
}
