package acct

import (
	"dev.muster/cluster"
	"dev.muster/wire"
)

// putImported stores a record of a Slurm cluster. A job's record that is there is replaced by one that changed later;
// steps and
// reservations are stored as they came last.
func (u *usage) putImported(i *cluster.Imported) error {
	if i.Resv != nil {
		return u.putResv(*i.Resv)
	}
	if s := i.Step; s != nil {
		return u.exec("INSERT OR REPLACE INTO step (job, attempt, step, started, data) VALUES (?, ?, ?, ?, ?)",
			s.ID.Job, s.Attempt, s.ID.Step, unix(s.Started), i.Text)
	}
	j := i.Job
	seq, err := u.insertJob(j, i.Text, 0)
	if err != nil {
		return err
	}
	if seq > 0 {
		return u.count(seq, j.Footprint(), 1)
	}
	var before []byte
	if err := u.row("SELECT data FROM job WHERE job = ? AND submitted = ?", []any{j.ID, unix(j.Submitted)},
		&before); err != nil {
		return err
	}
	var old cluster.Job
	if err := wire.Unmarshal(before, &old); err != nil {
		return err
	}
	if old.Imported == nil || old.Imported.Changed >= j.Imported.Changed {
		return nil
	}
	if seq, err = u.updateJob(j, i.Text); err != nil {
		return err
	}
	return u.count(seq, j.Footprint(), 1)
}

// importedWeight is how many events one record of a Slurm cluster counts in the queue: it comes with its text.
const importedWeight = 8

// weigh returns how many events a batch counts in the queue.
func weigh(events []cluster.Event) int {
	n := len(events)
	for i := range events {
		if events[i].Imported != nil {
			n += importedWeight
		}
	}
	return n
}
