package cluster

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reasonRow explains a word that squeue and scontrol show as a job's reason. test produces it: FILE/TITLE is a
// scenario of sched/testdata/scenarios, PACKAGE.TestNAME a test.
type reasonRow struct {
	word         Reason
	what, do     string
	test         string
	shownAtItEnd bool
}

func reasonTable() []reasonRow {
	at := func(word Reason, what, do, test string) reasonRow { return reasonRow{word, what, do, test, false} }
	end := func(word Reason, what, do, test string) reasonRow { return reasonRow{word, what, do, test, true} }
	return []reasonRow{
		at(WaitPriority, "others go first, and it would delay one of them", "`muster why JOB` names what would help, often a shorter `--time`", "backfill/a long job does not"),
		at(WaitResources, "it goes first in a partition, and what it asks for is in use", "wait for the planned start, or ask for less: `muster why JOB`", "backfill/a short job passes the blocked one"),
		at(WaitDependency, "a job that it waits for is not over", "wait, or `scontrol update jobid=N dependency=`", "order/a dependency is waited for"),
		at(WaitDependencyNever, "its dependency can not come true any more", "`scancel`, or `scontrol update jobid=N dependency=`", "order/a dependency that can not come true any more"),
		at(WaitBegin, "its `--begin`, or the pause after a requeue, is not over", "wait, or `scontrol update jobid=N starttime=now`", "order/a begin time is waited for"),
		at(WaitHeldUser, "its user holds it", "`scontrol release N`", "order/held jobs are passed over, and go on when released"),
		at(WaitHeldAdmin, "an operator holds it", "ask the operators", "order/a job on hold that an admin holds says so"),
		at(WaitArrayLimit, "as many tasks of the array run as its `%` allows", "`scontrol update jobid=N arraytaskthrottle=M`", "order/no more tasks of an array at once than its limit"),
		at(WaitPartitionTime, "its time limit is above the partition's", "`scontrol update jobid=N timelimit=…`, or another partition", "order/jobs over a partition's time limit wait"),
		at(WaitPartitionNodes, "it asks for more nodes than the partition has, or allows", "fewer nodes, or another partition", "order/jobs over a partition's number of nodes wait"),
		at(WaitPartitionConfig, "the partition's nodes together can not hold its tasks", "fewer tasks, or another partition", "reasons/more tasks than the partition holds"),
		at(WaitPartitionDown, "the partition starts nothing", "wait for the operators, or another partition", "order/a partition that is down starts nothing"),
		at(WaitPartitionInactive, "the partition starts nothing and takes nothing", "wait for the operators, or another partition", "reasons/a partition that is inactive starts nothing"),
		at(WaitNodeNotAvail, "nodes of its `--nodelist` are out of service (UnavailableNodes), or it would run into a reservation", "leave the nodes open, or ask for less time", "reasons/a node asked for is out of service"),
		at(WaitNodesDown, "all nodes that could run it are out of service", "wait for them, or ask for other nodes", "reasons/all nodes that would do are out of service"),
		at(WaitLicenses, "others hold the licenses", "wait; `scontrol show licenses`", "nodes/licenses"),
		at(WaitReservation, "its reservation has not begun", "wait; `scontrol show reservation`", "reservations/inside from its begin on"),
		at(WaitResvDeleted, "its reservation is gone, it is held", "an operator's `scontrol release N`", "reservations/waiting jobs are held when it is gone"),
		at(WaitRequeueHeld, "`scontrol requeuehold` put it back", "`scontrol release N`", "cluster.TestRequeue"),
		at(WaitLaunchFailedHeld, "no node could launch it", "see `muster why N` for the nodes' words, then `scontrol release N`", "cluster.TestLaunchFailed"),
		at("QOSUsageThreshold", "its user has used more than the QOS allows to go on with", "another QOS, or wait until usage has faded: `sshare`", "sched.TestUsageThreshold"),
		at("Job's account not permitted to use this partition", "AllowAccounts or DenyAccounts of the partition", "another account or partition", "reasons/a partition for other accounts"),
		at("Job's QOS not permitted to use this partition", "AllowQos or DenyQos of the partition", "another QOS or partition", "reasons/a partition for other QOS"),
		end(EndNonZeroExit, "its script failed", "read its output", "reasons/a script that fails"),
		end(EndTimeLimit, "it ran to its time limit", "ask for more `--time`", "backfill/the blocked one starts when it was planned to"),
		end(EndDeadline, "it could not end before its `--deadline`", "a later deadline, or `--time-min`", "times/a job that can not end before its deadline is removed as soon as that is certain"),
		end(EndLaunchFailure, "a node could not launch it", "see its output and `scontrol show node`", "cluster.TestLaunchOfAllocation"),
		end(EndNodeDown, "one of its nodes died", "submit it again, or `--requeue`", "cluster.TestNodeDown"),
		end(EndBadConstraints, "no set of nodes can ever run it", "ask for what `sinfo` shows", "reasons/what can never run ends at once"),
		end(EndOutOfMemory, "it used more memory than it asked for", "ask for more `--mem`", "reasons/more memory than there is"),
	}
}

// unseen are words that no command shows.
var unseen = map[Reason]string{NoReason: "shown as None", EndPreempted: "of Expire alone; such jobs show no reason"}

var rewrite = flag.Bool("rewrite", false, "rewrite docs/reasons.md")

const reasonsFile = "../docs/reasons.md"

// TestReasons keeps docs/reasons.md as the table is (-rewrite does it), the table as the constants are, and each
// row's scenario or test there.
func TestReasons(t *testing.T) {
	rows := map[Reason]bool{}
	for _, r := range reasonTable() {
		rows[r.word] = true
		if !produced(t, r.test) {
			t.Errorf("%s: there is no %s", r.word, r.test)
		}
	}
	for name, word := range reasonConsts(t) {
		if !rows[word] && unseen[word] == "" {
			t.Errorf("%s (%q) is not in the table of reasons", name, word)
		}
	}
	limits, err := os.ReadFile("../sched/limit_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range limitTable() {
		if !strings.Contains(string(limits), r.name+"=") {
			t.Errorf("TestLimits has no case for %s", r.name)
		}
	}
	want := reasonsText()
	if *rewrite {
		if err := os.WriteFile(reasonsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if now, err := os.ReadFile(reasonsFile); err != nil || string(now) != want {
		t.Errorf("%v: %s is stale: go test ./cluster -run TestReasons -rewrite", err, reasonsFile)
	}
}

// produced reports whether a scenario or test exists.
func produced(t *testing.T, name string) bool {
	if file, title, ok := strings.Cut(name, "/"); ok {
		text, err := os.ReadFile("../sched/testdata/scenarios/" + file + ".txt")
		return err == nil && strings.Contains("\n"+string(text), "\n== "+title+"\n")
	}
	pkg, test, _ := strings.Cut(name, ".")
	files, err := filepath.Glob("../" + pkg + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}

// reasonConsts reads the constants of type Reason from job.go.
func reasonConsts(t *testing.T) map[string]Reason {
	f, err := parser.ParseFile(token.NewFileSet(), "job.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Reason{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := v.Type.(*ast.Ident); ok && id.Name == "Reason" && len(v.Values) == 1 {
			out[v.Names[0].Name] = Reason(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`))
		}
		return true
	})
	if len(out) < 20 {
		t.Fatalf("job.go has only %d reasons", len(out))
	}
	return out
}

func reasonsText() string {
	var b strings.Builder
	b.WriteString("# Why a job waits, and how it ended\n\nThe words that `squeue` (%r, %R) and `scontrol show job` show as a job's reason. `muster why JOB` (and `scontrol -d show job JOB`) tells all causes with numbers, who holds what\n" +
		"it is to get and until when, and what would start it sooner. None stands for a job that no cycle has looked at yet. This file is printed from a table: `go test ./cluster -run TestReasons -rewrite`.\n")
	for _, ended := range []bool{false, true} {
		b.WriteString(map[bool]string{false: "\n## Jobs that wait\n", true: "\n## Jobs that ended\n"}[ended])
		b.WriteString("\n| reason | what it means | what to do | shown by |\n|---|---|---|---|\n")
		for _, r := range reasonTable() {
			if r.shownAtItEnd == ended {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.word, r.what, r.do, r.test)
			}
		}
	}
	b.WriteString("\n## Limits\n\nWith `AccountingStorageEnforce=limits`. Such jobs do not hold back others. `sacctmgr show assoc` and `sacctmgr show qos` list the limits;\n" +
		"sched.TestLimits has a case for each.\n\n| limit | reasons | what it means | what to do |\n|---|---|---|---|\n")
	for _, r := range limitTable() {
		what, do := limitMeaning(r.what)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, strings.Join(limitWords(&r), ", "), what, do)
	}
	return b.String()
}

// limitWords lists the words of a limit, of those on resources for CPUs, memory, nodes and GPUs.
func limitWords(r *limitRow) (out []string) {
	kinds := []string{""}
	if strings.Contains(r.word, "*") {
		kinds = []string{"cpu", "mem", "node", "gres/gpu"}
	}
	for _, qos := range []bool{false, true} {
		if !qos && (r.whose == scopeUser || r.whose == scopeAccount || r.what == ofLeast) || qos && r.whose == scopeAssoc {
			continue // not of both
		}
		for _, k := range kinds {
			out = append(out, string(r.reason(qos, k)))
		}
	}
	return out
}

// limitMeaning says what a limit counts, and what helps.
func limitMeaning(m measure) (what, do string) {
	switch m {
	case ofSubmits:
		return "jobs in the queue and running", "refused at submission: wait until some are over"
	case ofRunning:
		return "jobs that run", "wait until one is over"
	case ofWall:
		return "the job's time limit", "ask for less `--time`"
	case ofJob:
		return "what the job asks for", "ask for less"
	case ofNode:
		return "what the job asks for on each node", "ask for less, or for more nodes"
	case ofLeast:
		return "what the job asks for is too little", "ask for more, or another QOS"
	case ofJobMins:
		return "what the job asks for, times its time limit", "ask for less, or less `--time`"
	case ofHeld:
		return "what running jobs hold, with what the job asks for", "wait until some are over, or ask for less"
	case ofRunMins:
		return "what running jobs hold, times the minutes left to them", "wait, or ask for less `--time`"
	}
	return "what was used up", "wait until usage has faded, or another account"
}
