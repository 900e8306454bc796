package main

// A cell is one life: a program, in a shape, that is ended in one way.
type cell struct {
	shape, program, end string
}

func (c cell) name() string { return c.shape + "/" + c.program + "/" + c.end }

// shape is how the program gets into a job. The text is bash; $P is the command line of the
// program, $W words for every submission (partition, nodes). A batch shape prints the job's id on its first
// line; the others are the front-end itself, that the harness may signal.
type shape struct {
	batch bool
	text  string
	tasks int // probes that must be ready before it is ended
}

var shapes = map[string]shape{
	"script": {true, batch(`$P`) + `-n1 job`, 1},
	"exec":   {true, batch(`exec $P`) + `-n1 job`, 1},
	"srun":   {true, batch(`srun $P; echo "rc \$?"`) + `-n2 job`, 2},
	"last":   {true, batch(`exec srun $P`) + `-n2 job`, 2},
	"wide":   {true, batch(`srun $P; echo "rc \$?"`) + `-N2 -n2 job`, 2},
	"trap": {true, batch(`trap 'echo script TERM' TERM; trap 'echo script USR1' USR1; srun $P & `+
		`while ! wait -f \$!; do kill -0 \$! 2>/dev/null || break; done; echo over`) + `-n2 job`, 2},
	"steps": {true, batch(`srun --exact -N1 -n1 --mem=150 $P & srun --exact -N1 -n1 --mem=150 $P & wait; echo over`) +
		`-N1 -n2 --mem=400 job`, 2},
	"stept":  {true, batch(`srun -t 1 $P; echo "rc \$?"`) + `-n2 job`, 2},
	"bad":    {true, batch(`srun -K $P; echo "rc \$?"`) + `-n2 job`, 2},
	"array":  {true, batch(`srun $P; echo "rc \$?"`) + `-n1 -a 0-1 -o out.%a -e err.%a job`, 2},
	"het":    {true, batch(`srun --het-group=0,1 $P; echo "rc \$?"`) + `-n1 : -n1 job`, 2},
	"alone":  {false, `exec srun -J $NAME $W -n2 $P`, 2},
	"alonek": {false, `exec srun -J $NAME $W -n2 -K $P`, 2},
	"salloc": {false, `exec salloc -J $NAME $W -n2 srun $P`, 2},
	"pty":    {false, `exec script -qec "srun -J $NAME $W -n1 --pty $P" /dev/null`, 1},
}

func batch(body string) string {
	return "cat >job <<END\n#!/bin/bash\n" + body + "\nEND\nsbatch --parsable -o out -e err -J $NAME $W "
}

// end is how a life ends: bash, where $J is the job and $F the front-end's process; what to submit for it;
// and whether it needs nodes of its own.
type end struct {
	text  string
	words string // for the submission
	own   bool   // on nodes that nothing else uses ($N)
	first bool   // times count from the first event: when it comes is not exact
}

var ends = map[string]end{
	"natural":   {text: ``},
	"cancel":    {text: `scancel $J`},
	"kill":      {text: `scancel -s KILL $J`},
	"term":      {text: `scancel -s TERM $J; sleep 4; scancel $J`},
	"usr1":      {text: `scancel -s USR1 $J; sleep 2; scancel $J`},
	"batch":     {text: `scancel -b -s USR1 $J; sleep 2; scancel $J`},
	"full":      {text: `scancel -f -s USR1 $J; sleep 2; scancel $J`},
	"bfull":     {text: `scancel -b -f -s USR1 $J; sleep 2; scancel $J`},
	"int":       {text: `scancel -s INT $J; sleep 2; scancel $J`},
	"cont":      {text: `scancel -s STOP $J; sleep 2; scancel -s CONT $J; sleep 1; scancel $J`},
	"step":      {text: `scancel $J.0`},
	"stepusr1":  {text: `scancel -s USR1 $J.0; sleep 2; scancel $J`},
	"stepterm":  {text: `scancel -s TERM $J.0; sleep 4; scancel $J`},
	"steplimit": {first: true},
	"limit":     {words: "-t 1", first: true},
	"warn":      {words: "-t 2 --signal=USR1@90", first: true},
	"warnb":     {words: "-t 2 --signal=B:USR1@90", first: true},
	"requeue":   {text: `scontrol requeuehold $J; until_ 200 state_is PENDING $J; scancel $J; until_ 100 acct_ended $J`, words: "--requeue"},
	"suspend":   {text: `scontrol suspend $J; sleep 2; scontrol resume $J; sleep 1; scancel $J`},
	"preempt":   {text: `preempt`, own: true, words: "--requeue -p low -w $N"},
	"grace":     {text: `preempt`, own: true, words: "-p graceful -w $N"},
	"cancelp":   {text: `preempt`, own: true, words: "-p cancelled -w $N"},
	"down":      {text: `scontrol update nodename=$N state=down reason=cell; sleep 1; scontrol update nodename=$N state=resume`, own: true, words: "--no-requeue -w $N"},
	"drain":     {text: `scontrol update nodename=$N state=drain reason=cell; sleep 2; scancel $J; until_ 150 all_ended $J; scontrol update nodename=$N state=resume`, own: true, words: "-w $N"},
	"cc":        {text: `kill -INT $F; sleep 2; scancel $J`},
	"cccc":      {text: `kill -INT $F; sleep .3; kill -INT $F`},
	"cccccc":    {text: `kill -INT $F; sleep .3; kill -INT $F; sleep .3; kill -INT $F`},
	"fterm":     {text: `kill -TERM $F`},
	"fhup":      {text: `kill -HUP $F`},
	"fkill":     {text: `kill -KILL $F; sleep 3; scancel $J`},
	"step1":     {text: `scancel $J.1; sleep 4; scancel $J`},
	"fusr1":     {text: `kill -USR1 $F; sleep 2; scancel $J`},
}

// plan names the cells: programs and ends for groups of shapes.
var plan = []struct{ shapes, programs, ends string }{
	{"script exec", "save plain stubborn", "cancel-kill-term-usr1-batch-full-bfull-limit-requeue"},
	{"script srun", "parent worker", "cancel-usr1-batch-full-bfull-int-warn-warnb"},
	{
		"srun", "save plain stubborn",
		"cancel-kill-term-usr1-batch-full-bfull-int-cont-step-stepusr1-stepterm-limit-warn-warnb-requeue-suspend",
	},
	{"last trap wide", "save stubborn", "cancel-kill-term-usr1-batch-full-step-limit-warn-warnb-requeue"},
	{"steps", "save plain stubborn", "cancel-kill-term-usr1-step1-limit-warn-suspend"},
	{"array", "save plain", "cancel-kill-term-usr1-step-limit-requeue"},
	{"het", "save plain", "cancel-kill-term-usr1-step-limit"},
	{
		"alone salloc", "save plain stubborn",
		"cancel-kill-term-usr1-step-stepterm-limit-cc-cccc-cccccc-fterm-fhup-fkill-fusr1",
	},
	{"pty", "save plain", "cancel-kill-term-usr1-step-limit"},
	{"srun alone", "save plain stubborn", "preempt-grace-cancelp-down-drain"},
	{"script exec srun steps alone array", "short exit3 segv hog forks pieces", "natural"},
	{"alone", "pieces", "cancel"},
	{"srun alone", "fail1", "cancel"},
	{"bad alonek", "fail1", "natural"},
	{"stept", "save plain stubborn", "steplimit"},
}
