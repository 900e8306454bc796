package step

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/cluster"
)

func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewTimers(func(sp Spec) (time.Duration, cluster.ExitStatus) {
			return time.Duration(sp.ID.Job) * time.Minute, cluster.ExitStatus{Code: int(sp.ID.Job)}
		})
		defer r.Close()
		var specs []Spec
		for i := 1; i <= 3; i++ {
			specs = append(specs, Spec{ID: ID{Job: cluster.JobID(i)}, Tasks: []Task{{Rank: i}}, Note: []byte{byte(i)}})
		}
		begin := time.Now()
		r.Start(specs...)
		r.Start(specs[0])
		for range 3 {
			if st := <-r.Changes(); st.State != Running || st.Note[0] != byte(st.ID.Job) {
				t.Errorf("%+v", st)
			}
		}
		r.Freeze(specs[1].ID, true)
		if st := <-r.Changes(); !st.Frozen {
			t.Errorf("%+v", st)
		}
		if st := <-r.Changes(); st.State != Ended || st.Tasks[0].Exit.Code != 1 || time.Since(begin) != time.Minute {
			t.Errorf("%+v after %v", st, time.Since(begin))
		}
		r.Signal(specs[2].ID, syscall.SIGTERM, All)
		if st := <-r.Changes(); st.Tasks[0].Exit.Signal != 15 || time.Since(begin) != time.Minute {
			t.Errorf("%+v", st)
		}
		time.Sleep(time.Hour)
		r.Freeze(specs[1].ID, false)
		<-r.Changes()
		if st := <-r.Changes(); st.State != Ended || time.Since(begin) != 63*time.Minute {
			t.Errorf("%+v after %v", st, time.Since(begin))
		}
		r.Forget(specs[0].ID, specs[1].ID)
		if list, _ := r.List(); len(list) != 1 {
			t.Errorf("%+v", list)
		}
		if _, err := r.Attach(specs[2].ID); err == nil {
			t.Error("attached to a timer")
		}
		r.Start(Spec{ID: ID{Job: 9}, Tasks: []Task{{}}})
	})
}
