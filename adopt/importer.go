package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Bounds of one command: a larger one is not sent, but for a single job with many steps.
const (
	batchBytes = 1 << 20
	batchJobs  = 2000
)

// overlap is how long before the newest change of the last dump jobs are looked at again, in seconds: a transaction
// may have been under way when that was made.
const overlap = 86400

// Importer brings the jobs of a source into a cluster.
type Importer struct {
	Source *Source
	Gap    uint32
	// Send brings a command to the cluster; nil: nothing is to change.
	Send func(*cluster.ImportHistory) error
	// Refused gets a line of JSON for each row that cannot be taken over.
	Refused io.Writer
	// Tell hears how many rows are done, of how many.
	Tell func(done, all int64)

	jobs int // that one command carries; 0: batchJobs
}

// Report is what an import has done.
type Report struct {
	Cluster string `json:"cluster"`
	Release string `json:"release"`
	Rows    int64  `json:"rows"`  // of the job table
	Jobs    int64  `json:"jobs"`  // sent
	Steps   int64  `json:"steps"` // sent
	Resvs   int64  `json:"reservations"`
	Refused int64  `json:"refused"`
	Resumed int64  `json:"resumed"`           // rows of the job table that were sent before
	Already bool   `json:"already,omitempty"` // all of this dump was imported before
	DryRun  bool   `json:"dry_run,omitempty"`
}

// importing is an import under way.
type importing struct {
	*Importer
	report  Report
	batch   cluster.ImportHistory
	bytes   int
	from    int64 // rows that were passed before the batch
	refused int64 // rows of the batch
	// sent has the answer to the batch before, which is under way while this one is read; nil: none is.
	sent chan error
}

// Run brings in what a cluster lacks: known is how far it says that it is, of this cluster; nil: it has nothing.
func (i *Importer) Run(known *cluster.Import) (Report, error) {
	s := i.Source
	w := &importing{Importer: i, report: Report{Cluster: s.Cluster, Rows: s.Jobs, DryRun: i.Send == nil,
		Release: fmt.Sprintf("%d.%02d", s.Release/100, s.Release%100)}}
	since := int64(0)
	if known != nil {
		since = max(known.Newest-overlap, 0)
		if known.Source == s.Mark {
			w.from = known.Passed
			w.report.Resumed = known.Passed
			w.report.Already = known.Over
		}
	}
	if w.report.Already {
		return w.report, nil
	}
	w.begin()
	err := s.reservations(w.addResv, w.refuse)
	if err == nil {
		err = s.Runs(w.from, since, w.add, w.refuse)
	}
	if err == nil {
		w.batch.Import.Over = true
		w.batch.Import.Passed = s.Jobs
		err = w.send()
	}
	return w.report, errors.Join(err, w.wait())
}

// wait returns what became of the batch that is under way.
func (w *importing) wait() error {
	if w.sent == nil {
		return nil
	}
	err := <-w.sent
	w.sent = nil
	return err
}

// begin begins a batch.
func (w *importing) begin() {
	s := w.Source
	w.batch = cluster.ImportHistory{From: w.from, Gap: cluster.JobID(w.Gap), Import: cluster.Import{Cluster: s.Cluster,
		Release: s.Release, Source: s.Mark, Passed: w.from, Highest: cluster.JobID(s.Highest)}}
	w.bytes = 0
	w.refused = 0
}

// add adds a run to the batch.
func (w *importing) add(r *Run) error {
	size := 0
	for _, text := range r.Texts {
		size += len(text)
	}
	if w.bytes > 0 && (w.bytes+size > batchBytes || len(w.batch.Jobs) == cmp.Or(w.jobs, batchJobs)) {
		if err := w.send(); err != nil {
			return err
		}
	}
	w.bytes += size
	w.batch.Jobs = append(w.batch.Jobs, r.Texts[0])
	w.batch.Steps = append(w.batch.Steps, r.Texts[1:]...)
	w.batch.Import.Passed = r.Taken
	w.batch.Import.NewestNow = max(w.batch.Import.NewestNow, r.Job.Imported.Changed)
	w.Tell(r.Taken, w.Source.Jobs)
	return nil
}

// addResv adds a reservation to the batch.
func (w *importing) addResv(text wire.RawMessage) error {
	if w.bytes > 0 && (w.bytes+len(text) > batchBytes || len(w.batch.Resvs) == batchJobs) {
		if err := w.send(); err != nil {
			return err
		}
	}
	w.bytes += len(text)
	w.batch.Resvs = append(w.batch.Resvs, text)
	return nil
}

// refuse notes a row that cannot be taken over.
func (w *importing) refuse(r Refused) error {
	text, err := wire.Marshal(r)
	if err != nil {
		return err
	}
	w.refused++
	w.report.Refused++
	_, err = w.Refused.Write(append(text, '\n'))
	return err
}

// send sends the batch once the one before is taken, and begins another one.
func (w *importing) send() error {
	if err := w.wait(); err != nil {
		return err
	}
	batch := w.batch
	batch.Import.Refused = w.refused
	if w.Send != nil {
		w.sent = make(chan error, 1)
		go func(sent chan error) { sent <- w.Send(&batch) }(w.sent)
	}
	w.report.Jobs += int64(len(batch.Jobs))
	w.report.Steps += int64(len(batch.Steps))
	w.report.Resvs += int64(len(batch.Resvs))
	w.from = batch.Import.Passed
	w.begin()
	return nil
}
