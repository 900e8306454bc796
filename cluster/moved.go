package cluster

import "time"

// Moved says what a job brings along that has waited in another workload manager: only operators may say so.
type Moved struct {
	// ID is its number there, which it keeps if no job has it here. The next number is taken otherwise.
	ID JobID `json:"id,omitempty"`
	// Submitted, Eligible and Accrue are when it was submitted, when it could have begun, and since when its age
	// counts; zero: not yet, or not known.
	Submitted time.Time `json:"submitted"`
	Eligible  time.Time `json:"eligible,omitzero"`
	Accrue    time.Time `json:"accrue,omitzero"`
	// Held says who holds it.
	Held Hold `json:"held,omitempty"`
}

// check refuses what cannot be, and callers who may not say it.
func (m *Moved) check(t *tx) error {
	return firstError(
		refuseIf(!t.by.Operator(), Denied, ErrAccess, "only operators may move jobs from another cluster"),
		refuseIf(m.Submitted.Unix() <= 0 || m.Submitted.After(t.at), Invalid, "",
			"moved job: it was submitted at %s, before 1970 or in the future", m.Submitted.Format(time.DateTime)),
		refuseIf(m.Held > HeldAdmin, Invalid, "", "moved job: unknown hold: %d", m.Held),
	)
}

// id is the number of the job.
func (m *Moved) id(t *tx) JobID {
	if _, taken := t.jobs.Get(m.ID); taken || m.ID < t.config.FirstJobID || m.ID > t.config.MaxJobID ||
		idBase(t.tables) != 0 { // numbers of a federation tell the cluster
		return t.allotID()
	}
	if m.ID >= t.NextID && m.ID < t.config.MaxJobID {
		keepOld(t, &t.NextID)
		t.NextID = m.ID + 1
	}
	return m.ID
}

// settle gives an entered job the times and the hold that it had. j is not in a table yet.
func (m *Moved) settle(t *tx, j *Job) {
	if m.Held != NotHeld {
		t.setHold(j, m.Held)
	}
	if j.Eligible.Equal(t.at) && !m.Eligible.IsZero() && m.Eligible.Before(t.at) {
		j.Eligible = later(m.Eligible, m.Submitted)
	}
	if !j.Accrue.IsZero() && !m.Accrue.IsZero() && m.Accrue.Before(t.at) {
		j.Accrue = later(m.Accrue, m.Submitted)
	}
}
