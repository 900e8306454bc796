package sacctmgr

import (
	"bytes"
	"strings"
	"testing"

	"dev.muster/slurm/slurmtest"
)

// mgrLines are lines of sacctmgr with what they say, and what of the changes that they ask for; none if "".
var mgrLines = []struct{ line, says, asks string }{
	{"delete user alice partition=debug", " Nothing deleted", ""},
	{"delete user partition=debug", " Nothing deleted", ""},
	{"delete user alice account=team-a partition=debug", " Nothing deleted", ""},
	{"delete user alice cluster=oracle", " Deleting user associations...\n  C = oracle     A = team-a     U = alice    \n" +
		" Deleting users (No Associations)...\n  alice", `"user":{"name":"alice"`},
	{"delete user adminlevel=operator", " Deleting users...\n  bob", `"name":"bob"`},
	{"delete user adminlevel=administrator", " Nothing deleted", ""},
	{"delete account where user=nobody", " Nothing deleted", ""},
	{"delete account team-b user=carol", " Deleting account associations...\n  C = oracle     A = team-b     U = carol", `"carol"`},
	{"delete account team-a user=alice", " Deleting account associations...\n  C = oracle     A = team-a     U = alice    \n", `"alice"`},
	{"delete account where parent=team-a", " Nothing deleted", ""},
	{"delete account", " No conditions given to remove, not executing.", ""},
	{"delete account foo=bar", " Unknown condition: foo=bar\n Use keyword 'set' to modify value\n No conditions given", ""},
	{"delete qos foo=bar", " Use keyword 'set' to modify SLURM_PRINT_VALUE\n No conditions given", ""},
	{"delete qos id=99", " Nothing deleted", ""},
	{"delete qos id=2", " Deleting QOS(s)...\n  high", `"high"`},
	{"modify user where account=team-a set adminlevel=administrator", " There was a problem with your 'where' options.", ""},
	{"modify user where adminlevel=operator set fairshare=3", " There was a problem with your 'where' options.", ""},
	{"modify account where user=alice set description=x", " There was a problem with your 'where' options.", ""},
	{"modify account where organization=x set fairshare=3", " There was a problem with your 'where' options.", ""},
	{"modify user where defaultaccount=team-b set adminlevel=none", " Modified users...\n  bob", `"bob"`},
	{"modify user where name=carol account=team-b set fairshare=3",
		" Modified user associations...\n  C = oracle     A = team-b               U = carol", `"carol"`},
	{"modify user where name=carol partition=debug set fairshare=3", " Nothing modified", ""},
	{"modify qos where id=2 set priority=3", " Modified qos...\n  high", `"high"`},
	{"modify account where parent=root name=team-a set fairshare=9", "  C = oracle     A = team-a of root", `"team-a"`},
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
