package client

import "dev.muster/agent/step"

// actionKind is what to do next for a job on a node.
type actionKind uint8

const (
	confirm    actionKind = iota // tell the servers that the attempt is known here
	startBatch                   // run the script
	term                         // TERM, then CONT, to everything
	kill                         // KILL everything
	batchOver                    // the batch script ended: report it
	stop                         // TSTP to the tasks, ahead of freeze
	freeze                       // stop everything
	thaw                         // continue, and say so
	deliver                      // signals that users asked for
	warn                         // the signal ahead of the time limit
	lost                         // the attempt should run here but nothing is known of it
	finished                     // nothing is left: say so
	stray                        // a step nobody wants: kill and forget it
	startProlog
	prologFailed
	startFetch
	fetchFailed
	startEpilog
	setMemory  // limit the memory of what runs
	tellStuck  // processes outlive KILL: tell of them
	killScript // the prolog or epilog takes too long
	nothing    // wait
)

// action is one thing to do; Run does them in order.
type action struct {
	kind actionKind
	job  *jobHere
	step step.ID // for stray
}
