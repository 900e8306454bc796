package api

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestLongFilters: a filter of very many values says the same as a short one, and takes no longer for each job.
func TestLongFilters(t *testing.T) {
	job := &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "mine", UID: 7, Partitions: []string{"gpu"}}}
	other := &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "theirs", UID: 8}}
	q := JobQuery{Users: []uint32{7}, Names: []string{"mine"}, Partitions: []string{"gpu"}}
	for _, long := range []bool{false, true} {
		if long {
			for i := range 100_000 {
				q.Users = append(q.Users, uint32(1000+i))
				q.Names = append(q.Names, fmt.Sprint("other", i))
				q.Partitions = append(q.Partitions, fmt.Sprint("p", i))
			}
			q.Users, q.Names, q.Partitions = q.Users[1:], q.Names[1:], q.Partitions[1:] // what is sought stands last
			q.Users, q.Names, q.Partitions = append(q.Users, 7), append(q.Names, "mine"), append(q.Partitions, "gpu")
		}
		began, matches := time.Now(), q.Filter()
		for range 10_000 {
			if !matches(job) || matches(other) {
				t.Fatalf("long: %v: own %v, other %v", long, matches(job), matches(other))
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("20,000 jobs take %v", took)
		}
		if q.Matches(job) != true || q.Matches(other) {
			t.Error("Matches says something else")
		}
	}
	read := func(body string, e Endpoint[EventQuery, Event]) error {
		_, err := e.read(t.Context(), []byte(body))
		return err
	}
	e := Endpoint[EventQuery, Event]{Access: User}
	if err := read(`{"jobs":{"users":[7],"phases":[0]}}`, e); err != nil {
		t.Error(err)
	}
	states := `{"jobs":{"phases":[0`
	for range maxWords {
		states += ",0"
	}
	if read(states+`]}}`, e) == nil {
		t.Error("any number of states is taken")
	}
	users := `{"jobs":{"users":[0`
	for range maxFollowed {
		users += ",0"
	}
	if read(users+`]}}`, e) == nil {
		t.Error("any number of users is followed")
	}
}
