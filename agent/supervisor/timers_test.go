package supervisor

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api/stream"
	"dev.muster/cluster"
)

func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewTimers(func(sp step.Spec) (time.Duration, cluster.ExitStatus) {
			return time.Duration(sp.ID.Job) * time.Minute, cluster.ExitStatus{Code: int(sp.ID.Job)}
		})
		defer r.Close()
		var specs []step.Spec
		for i := 1; i <= 3; i++ {
			specs = append(specs, step.Spec{
				ID: step.ID{Job: cluster.JobID(i)}, Tasks: []step.Task{{Rank: i}}, Note: []byte{byte(i)},
			})
		}
		begin := time.Now()
		r.Start(specs...)
		r.Start(specs[0])
		for range 3 {
			if st := <-r.Changes(); st.State != step.Running || st.Note[0] != byte(st.ID.Job) {
				t.Errorf("%+v", st)
			}
		}
		r.Freeze(specs[1].ID, true)
		if st := <-r.Changes(); !st.Frozen {
			t.Errorf("%+v", st)
		}
		st := <-r.Changes()
		if st.State != step.Ended || st.Tasks[0].Exit.Code != 1 || time.Since(begin) != time.Minute {
			t.Errorf("%+v after %v", st, time.Since(begin))
		}
		r.Signal(specs[2].ID, syscall.SIGTERM, step.All)
		if st := <-r.Changes(); st.Tasks[0].Exit.Signal != 15 || time.Since(begin) != time.Minute {
			t.Errorf("%+v", st)
		}
		time.Sleep(time.Hour)
		r.Freeze(specs[1].ID, false)
		<-r.Changes()
		if st := <-r.Changes(); st.State != step.Ended || time.Since(begin) != 63*time.Minute {
			t.Errorf("%+v after %v", st, time.Since(begin))
		}
		r.Forget(specs[0].ID, specs[1].ID)
		if list, _ := r.List(); len(list) != 1 {
			t.Errorf("%+v", list)
		}
		if _, err := r.Attach(specs[2].ID); err == nil {
			t.Error("attached to a timer")
		}
		r.Start(step.Spec{ID: step.ID{Job: 9}, Tasks: []step.Task{{}}})
	})
}

// TestTimersAttach: an srun of a step without processes hears that it ended, early or late, and ends it.
func TestTimersAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewTimers(func(step.Spec) (time.Duration, cluster.ExitStatus) {
			return time.Second, cluster.ExitStatus{Code: 3}
		})
		defer r.Close()
		go func() {
			for range r.Changes() {
			}
		}()
		id := func(n int) step.ID { return step.ID{Job: 1, Attempt: 1, Step: n, Node: "n1"} }
		spec := func(n int) step.Spec {
			read := step.IO{Kind: step.Stream}
			return step.Spec{ID: id(n), Tasks: []step.Task{{Stdout: read, Stderr: read}}}
		}
		quiet := step.Spec{ID: id(2), Tasks: []step.Task{{Stdout: step.IO{Kind: step.File}}}}
		if err := r.Start(spec(0), spec(1), quiet); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Attach(id(2)); err == nil {
			t.Error("the output of a file is read")
		}
		ends := func(n int, sig syscall.Signal) (kinds []stream.Kind, e stream.TaskExit) {
			c, err := r.Attach(id(n))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := stream.WriteFrame(c, stream.Frame{Kind: stream.Hello}); err != nil {
				t.Fatal(err)
			}
			for {
				f, err := stream.ReadFrame(c)
				if err != nil {
					t.Fatal(kinds, err)
				}
				switch f.Kind {
				case stream.Welcome:
					if sig == 0 {
						break
					}
					if err := stream.WriteFrame(c, stream.SignalFrame(stream.AllTasks, int(sig))); err != nil {
						t.Fatal(err)
					}
				case stream.Exit:
					if e, err = f.TaskExit(); err != nil {
						t.Fatal(err)
					}
				}
				if kinds = append(kinds, f.Kind); f.Kind == stream.Done {
					return kinds, e
				}
			}
		}
		if kinds, e := ends(1, syscall.SIGINT); e.Signal != int(syscall.SIGINT) {
			t.Errorf("interrupted: %v %+v", kinds, e)
		}
		for range 2 { // as it ends, and afterwards
			if kinds, e := ends(0, 0); len(kinds) != 5 || e.Code != 3 {
				t.Errorf("%v %+v", kinds, e)
			}
		}
	})
}
