package cluster

import (
	"cmp"
	"time"
)

// KeyLife is for how long after a submission its key names the job that it made, even if that has been purged.
const KeyLife = 5 * time.Minute

// SpentKey is the key of a submission whose job has left live state: made again, the submission must not become
// another job.
type SpentKey struct {
	UID uint32    `json:"uid"`
	Key string    `json:"key"`
	Job JobID     `json:"job"`
	At  time.Time `json:"at"` // when it was submitted
}

func spentLess(x, y *SpentKey) bool {
	return cmp.Or(cmp.Compare(x.UID, y.UID), cmp.Compare(x.Key, y.Key)) < 0
}

// keepKey keeps the key of a job that is purged for as long as the submission may be made again.
func (t *tx) keepKey(j *Job) {
	if j.Key == "" || t.at.Sub(j.Submitted) >= KeyLife {
		return
	}
	k := &SpentKey{
		UID: j.Spec.UID,
		Key: j.Key,
		Job: cmp.Or(j.ArrayID, j.ID),
		At:  j.Submitted,
	}
	putItem(t, t.spent, k)
}

// forgetKeys drops keys that are too old.
func (t *tx) forgetKeys() {
	var old []*SpentKey
	t.spent.Scan(func(k *SpentKey) bool {
		if t.at.Sub(k.At) >= KeyLife {
			old = append(old, k)
		}
		return true
	})
	for _, k := range old {
		dropItem(t, t.spent, k)
	}
}
