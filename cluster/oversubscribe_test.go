package cluster

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestCPUUse counts on random sets what CPUUse keeps as sets.
func TestCPUUse(t *testing.T) {
	const cpus = 8
	rnd := rand.New(rand.NewPCG(1, 2))
	var u CPUUse
	var given []IDSet
	for range 2000 {
		if k := len(given); k > 0 && rnd.IntN(2) == 0 {
			k = rnd.IntN(k)
			u.TakeBack(given[k])
			given = append(given[:k:k], given[k+1:]...)
		} else {
			set := RangeIDSet(rnd.IntN(4), 3+rnd.IntN(5))
			if !u.Taken(4).Intersect(set).Empty() {
				continue
			}
			u.Give(set, true)
			given = append(given, set)
		}
		for n := 1; n <= 5; n++ {
			var want IDSet
			for c := range cpus {
				has := 0
				for _, g := range given {
					has += map[bool]int{true: 1}[g.Has(c)]
				}
				if has > 4 {
					t.Fatalf("CPU %d is given %d times", c, has)
				}
				if has >= n {
					want = want.Union(NewIDSet(c))
				}
			}
			if got := u.Taken(n); !got.Equal(want) {
				t.Fatalf("after %v: CPUs with %d jobs are %s, want %s", given, n, got, want)
			}
		}
	}
	for _, g := range given {
		u.TakeBack(g)
	}
	if !u.CPUs.Empty() || !u.Shared.Empty() || u.Again != nil {
		t.Errorf("after the last has left there is %+v", u)
	}
	u.Give(RangeIDSet(0, 3), false)
	if got := u.Taken(4); !got.Equal(RangeIDSet(0, 3)) {
		t.Errorf("a job that lets nobody beside it leaves all but %s", got)
	}
}

// TestParseOverSubscribe reads what slurm.conf may say.
func TestParseOverSubscribe(t *testing.T) {
	for text, want := range map[string]string{"no": "NO", "Exclusive": "EXCLUSIVE", "YES": "YES:4",
		"force": "FORCE:4", "FORCE:1": "FORCE:1", "yes:12": "YES:12",
		"": "", "maybe": "", "YES:0": "", "YES:x": "", "NO:2": "", "FORCE:70000": ""} {
		if got, err := ParseOverSubscribe(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestJobsPerCPU tells who shares CPUs with whom.
func TestJobsPerCPU(t *testing.T) {
	asks, does := &JobSpec{Layout: &Layout{}, Sharing: ShareOver}, &JobSpec{Layout: &Layout{}}
	for text, want := range map[string][2]int{
		"": {0, 0}, "NO": {0, 0}, "EXCLUSIVE": {0, 0}, "YES:3": {3, 0}, "YES:1": {0, 0}, "FORCE:2": {2, 2},
		"FORCE:1": {0, 0}, "FORCE": {4, 4},
	} {
		p := &Partition{OverSubscribe: text}
		if got := [2]int{p.JobsPerCPU(asks), p.JobsPerCPU(does)}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestPartitionSharing tells what a partition makes of a job's wish.
func TestPartitionSharing(t *testing.T) {
	for text, want := range map[string][2]Sharing{"": {ShareDefault, ShareUser},
		"EXCLUSIVE": {ShareExclusive, ShareExclusive}, "YES:2": {ShareDefault, ShareUser},
		"FORCE:2": {ShareOver, ShareOver}, "FORCE:1": {ShareDefault, ShareUser}} {
		p := &Partition{OverSubscribe: text}
		if got := [2]Sharing{p.Sharing(&JobSpec{Layout: &Layout{}}), p.Sharing(&JobSpec{Layout: &Layout{}, Sharing: ShareUser})}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
