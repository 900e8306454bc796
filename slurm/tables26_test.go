package slurm

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/front"
	"dev.muster/slurm/slurmtest"
)

// TestTables26 compares muster's tables with the names that Slurm 26.05 prints and documents: testdata/26.05 holds one
// per line, behind the table that it is of. muster knows each one, or refuses it with a reason.
func TestTables26(t *testing.T) {
	for _, c := range []struct {
		file string
		says func(t *testing.T, table, name string) (text string, unknown *regexp.Regexp)
		rows int // at least: a file that was cut short covers nothing
	}{
		{"options", sayOption, 740}, {"columns", sayColumn, 470}, {"states", sayState, 60},
		{"scontrol", sayControl, 230}, {"sacctmgr", sayManager, 300}, {"conf", sayKey, 460},
	} {
		t.Run(c.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata/26.05", c.file+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			rows := strings.Split(strings.TrimSpace(string(text)), "\n")
			if len(rows) < c.rows {
				t.Fatalf("%s: %d rows, want %d", c.file, len(rows), c.rows)
			}
			for _, row := range rows {
				table, name, _ := strings.Cut(row, " ")
				if strings.Contains(documented, " "+table+"/"+name+" ") {
					continue
				}
				if text, unknown := c.says(t, table, name); unknown.MatchString(text) {
					t.Errorf("%s %s is unknown: %s", table, name, text)
				}
			}
			for table := range tablesOf(rows) {
				if strings.Contains(anyName, " "+table+" ") {
					continue
				}
				if text, unknown := c.says(t, table, bogus(table)); !unknown.MatchString(text) {
					t.Errorf("%s takes any name: %s", table, text)
				}
			}
		})
	}
}

// documented are the names that muster rejects like unknown ones, as docs/slurm-compat.md says.
const documented = " keys-events/CondFlags keys-events/MaxCPUs keys-events/MinCPUs keys-job/TRES " +
	"keys-accounts/Flags keys-clusters/Classification keys-clusters/RPC "

// anyName are the tables of files that muster does not read: it notes each of their keys, whatever it is called.
const anyName = " acct_gather.conf helpers.conf mpi.conf oci.conf cgroup.conf burst_buffer.conf sprio-letters "

// tablesOf returns the tables that rows are of.
func tablesOf(rows []string) map[string]bool {
	tables := map[string]bool{}
	for _, row := range rows {
		table, _, _ := strings.Cut(row, " ")
		tables[table] = true
	}
	return tables
}

// bogus is a name that a table does not have. Letters of columns are one byte: what follows is text.
func bogus(table string) string {
	if strings.HasSuffix(table, "-letters") {
		return "!"
	}
	return "nixda"
}

func line26(t *testing.T, words ...string) string {
	f := slurmtest.New()
	if words[0] != "scontrol" {
		f.Own = f.Mux()
		slurmtest.WithBooks(f.Own, f)
	}
	return runLine(f, t, 0, nil, words...)
}

var unknownOption = regexp.MustCompile(`unrecognized option|is ambiguous`)

func sayOption(t *testing.T, command, name string) (string, *regexp.Regexp) {
	return line26(t, command, "--"+name+"=1x", "--help"), unknownOption
}

var unknownColumn = regexp.MustCompile(`(?i)invalid|unknown field|not understood`)

// columnWords are the commands of the tables of columns, in front of a name.
var columnWords = map[string]string{
	"squeue-letters": "squeue -h -o %", "squeue-names": "squeue -h -O ", "sinfo-letters": "sinfo -h -o %",
	"sinfo-names": "sinfo -h -O ", "sacct": "sacct -n -o ", "sstat": "sstat -n -j 735.0 -o ",
	"sprio-letters": "sprio -h -o %", "sshare": "sshare -n -o ",
}

func sayColumn(t *testing.T, table, name string) (string, *regexp.Regexp) {
	return line26(t, strings.Fields(columnWords[table]+name)...), unknownColumn
}

var unknownState = regexp.MustCompile(`(?i)invalid|bad state|unrecognized`)

func sayState(t *testing.T, command, name string) (string, *regexp.Regexp) {
	flag := "-t"
	if command == "sacct" {
		flag = "-s"
	}
	return line26(t, command, flag, name), unknownState
}

// unknownWord matches what scontrol says of a word that it does not know. With a line "why:" it is refused for a
// reason.
var unknownWord = regexp.MustCompile(`(?s)^(--- stderr\n)?(scontrol: error: )?` +
	`(invalid (keyword|entity):|Update of this parameter is not supported: [^\n]*\n+(scontrol: error: )?` +
	`Request aborted\n|Error parsing flags|Unknown parameter|Invalid input: [^\n]*\nRequest aborted\nValid states)[^|]*$`)

func sayControl(t *testing.T, table, name string) (string, *regexp.Regexp) {
	says := ""
	switch table {
	case "verbs":
		if name == "shutdown" {
			return "", unknownWord
		}
		says = line26(t, "scontrol", name)
	case "show":
		says = line26(t, "scontrol", "show", name)
	case "reservation-flags":
		says = line26(t, "scontrol", "update", "reservationname=nix", "flags="+name)
	case "node-states":
		says = line26(t, "scontrol", "update", "nodename=gpu-node-001", "reason=x", "state="+name)
	default:
		entity := strings.TrimPrefix(table, "update-")
		id := map[string]string{"job": "jobid=734", "step": "stepid=735.0", "node": "nodename=gpu-node-001",
			"partition": "partitionname=train", "reservation": "reservationname=nix"}[entity]
		if name == "ResetAccrueTime" {
			return line26(t, "scontrol", "update", id, name), unknownWord
		}
		if name == "Flags" || name == "State" && entity == "node" {
			return "", unknownWord // tables of their own
		}
		if strings.EqualFold(name, entity+"name") || strings.EqualFold(name, entity+"id") {
			return "", unknownWord
		}
		says = line26(t, "scontrol", "update", id, name+"=1")
	}
	if strings.Contains(says, "why: ") {
		says = "refused | " + says
	}
	return says, unknownWord
}

var unknownField = regexp.MustCompile(`(?i)unknown (field|condition|option|entity)|` +
	`invalid (keyword|entity)|no valid entity`)

var unknownVerb = regexp.MustCompile(`invalid keyword`)

// managerWho names a record of each entity that can be changed.
var managerWho = map[string]string{"account": "name=team-a", "user": "name=alice", "qos": "name=high",
	"cluster": "name=oracle", "job": "jobid=734"}

// managerEntities are the entities of tables that are not called like them.
var managerEntities = map[string]string{"general": "account", "runawayjob": "runawayjobs"}

func sayManager(t *testing.T, table, name string) (string, *regexp.Regexp) {
	kind, entity, ok := strings.Cut(table, "-")
	if e := managerEntities[entity]; e != "" {
		entity = e
	} else if !strings.HasSuffix(entity, "qos") {
		entity = strings.TrimSuffix(entity, "s")
	}
	switch {
	case name == "coordinator", name == "job": // they are not shown
		return line26(t, "sacctmgr", "-i", front.Choose(name == "job", "modify", "delete"), name), unknownField
	case table == "entities":
		return line26(t, "sacctmgr", "-n", "show", name), unknownField
	case !ok:
		return line26(t, "sacctmgr", "-i", name), unknownVerb
	case kind == "fields":
		return line26(t, "sacctmgr", "-n", "show", entity, "format="+name), unknownField
	}
	set := name + front.Choose(strings.Contains(name, "TRES"), "=cpu=1", "=1")
	if name == "Preempt" {
		set = "Preempt=normal"
	}
	who := managerWho[entity]
	says := ""
	for _, words := range []string{
		"-n show " + entity + " " + front.Choose(bareWord.MatchString(name), name, set),
		"-i modify " + entity + " where " + who + " set " + set,
		"-i modify " + entity + " where " + who + " " + set + " set comment=x",
		"-i add coordinator " + set,
	} {
		if strings.Contains(words, "coordinator") && entity != "coordinator" {
			continue
		}
		if says = line26(t, append([]string{"sacctmgr"}, strings.Fields(words)...)...); !unknownField.MatchString(says) {
			break
		}
	}
	return says, unknownField
}

// bareWord matches words of sacctmgr show that stand without a value.
var bareWord = regexp.MustCompile(`^(With|WO|Tree|Only|All_)`)

var unknownKey = regexp.MustCompile(`is not a setting of|nothing comes of it|nixda is neither|nixda is not known|` +
	`not a SwitchName|is not known: want AutoBasePath`)

// keyLines are lines of a file for a key of a table; %s is the key.
var keyLines = map[string][2]string{
	"slurm.conf-node": {"slurm.conf", "NodeName=n2 %s=7"}, "slurm.conf-down": {"slurm.conf", "DownNodes=n1 %s=7"},
	"slurm.conf-partition": {"slurm.conf", "PartitionName=p1 %s=7"},
	"slurm.conf-nodeset":   {"slurm.conf", "NodeSet=s1 %s=7"},
	"gres.conf":            {"gres.conf", "Name=gpu %s=7"},
}

// sayKey says what is noted of a key with a value that most of them refuse, and whether it changes nothing in silence.
func sayKey(t *testing.T, table, name string) (string, *regexp.Regexp) {
	place, ok := keyLines[table]
	if !ok {
		place = [2]string{table, "%s=7"}
	}
	if table == "slurm.conf-"+strings.ToLower(strings.TrimSuffix(name, "Name")) || name == "DownNodes" {
		return "", unknownKey // what the line is of
	}
	if name == "Reason" {
		place[1] = strings.Replace(place[1], " %s", " State=DRAIN %s", 1)
	}
	if strings.Contains(" Nodes Switches LinkSpeed ", " "+name+" ") && table == "topology.conf" {
		place[1] = "SwitchName=s1 %s=n1"
	}
	if table == "topology.yaml" {
		place[1] = "- topology: t\n  tree:\n    switches:\n    - switch: s\n      %s: x"
	}
	before, old := readConf(t, place[0], strings.ReplaceAll(strings.ReplaceAll(place[1], " %s=7", ""), " %s=n1", ""))
	says, cfg := readConf(t, place[0], strings.ReplaceAll(place[1], "%s", name))
	if says == before && reflect.DeepEqual(cfg, old) {
		says += "nothing comes of it"
	}
	return says, unknownKey
}

// readConf returns what is noted of a line of a file, and the configuration with it.
func readConf(t *testing.T, file, line string) (string, *cluster.Config) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"slurm.conf": "ClusterName=c\nNodeName=n1 CPUs=4\n"}
	if file == "topology.conf" {
		files["slurm.conf"] += "TopologyPlugin=topology/tree\n"
	}
	if file == "burst_buffer.conf" {
		files["slurm.conf"] += "BurstBufferType=burst_buffer/lua\n"
		files["burst_buffer.lua"] = "function slurm_bb_setup() return slurm.SUCCESS end\n"
	}
	files[file] += line + "\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, notes, fine, err := conf.Check(filepath.Join(dir, "slurm.conf"))
	says := strings.Join(slices.Concat(notes, fine), "\n")
	if err != nil {
		return says + err.Error(), nil
	}
	cfg.Keys = nil // which are shown again
	return strings.ReplaceAll(says, dir, ""), cfg
}
