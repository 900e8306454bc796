// Package faults simulates a long training job on a cluster in which parts fail: the commands are those of a real
// cluster, and what becomes of the job is decided by package cluster and the scheduler. Start with Run.
package faults

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Effect is how a cause shows.
type Effect string

// The effects.
const (
	LosesGPU  Effect = "gpu"   // a GPU falls off the bus, or is no more to be trusted: its node reports the fault
	LosesNode Effect = "node"  // a node goes down without a word
	Hangs     Effect = "hang"  // the ranks of a node are no more heard of; the node itself answers
	Crashes   Effect = "crash" // the program ends with an error; no node is at fault
)

// Cause is a row of a table of faults.
type Cause struct {
	Name   string
	Count  int
	Effect Effect
}

// Llama3 is the table of the 419 unexpected interruptions of 54 days of Llama 3's training on 16,384 GPUs (The Llama 3
// Herd of Models, arXiv:2407.21783, table 5). The effects are an assumption.
var Llama3 = []Cause{
	{"faulty GPU", 148, LosesGPU},
	{"GPU HBM3 memory", 72, LosesGPU},
	{"software bug", 54, Crashes},
	{"network switch or cable", 35, Hangs},
	{"host maintenance", 32, LosesNode},
	{"GPU SRAM memory", 19, LosesGPU},
	{"GPU system processor", 17, LosesGPU},
	{"NIC", 7, Hangs},
	{"NCCL watchdog timeout", 7, Hangs},
	{"silent data corruption", 6, Crashes},
	{"GPU thermal interface and sensor", 6, LosesGPU},
	{"SSD", 3, LosesNode},
	{"power supply", 3, LosesNode},
	{"server chassis", 2, LosesNode},
	{"I/O expansion board", 2, LosesNode},
	{"dependency", 2, Crashes},
	{"CPU", 2, LosesNode},
	{"system memory", 2, LosesNode},
}

// maxFaults bounds the faults of a table.
const maxFaults = 100_000

// Load returns the table of Llama 3's training by its name, llama3, or reads that of a file.
func Load(name string) ([]Cause, error) {
	if name == "llama3" {
		return Llama3, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--faults: %w", err)
	}
	list, err := Read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("--faults %s: %w", name, err)
	}
	return list, nil
}

// Read reads a table with the columns cause, count and effect; the first line names them.
func Read(r io.Reader) (out []Cause, err error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || !slices.Equal(rows[0], []string{"cause", "count", "effect"}) {
		return nil, fmt.Errorf("the first line is %q: want cause,count,effect", strings.Join(first(rows), ","))
	}
	all := 0
	for i, row := range rows[1:] {
		n, err := strconv.Atoi(row[1])
		if err != nil || n < 0 || n > maxFaults {
			return nil, fmt.Errorf("line %d: count %q: want a number from 0 to %d", i+2, row[1], maxFaults)
		}
		known := []Effect{LosesGPU, LosesNode, Hangs, Crashes}
		if !slices.Contains(known, Effect(row[2])) {
			return nil, fmt.Errorf("line %d: effect %q: want gpu, node, hang or crash", i+2, row[2])
		}
		all += n
		out = append(out, Cause{row[0], n, Effect(row[2])})
	}
	if all == 0 || all > maxFaults {
		return nil, fmt.Errorf("%d faults: want 1 to %d", all, maxFaults)
	}
	return out, nil
}

// first returns the first row, if there is one.
func first(rows [][]string) []string {
	if len(rows) == 0 {
		return nil
	}
	return rows[0]
}
