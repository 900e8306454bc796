package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// TestRemovalsOfUser: containers of a user who ends many steps are removed one after the other, those of others
// meanwhile, and one that cannot be removed keeps none of the rest.
func TestRemovalsOfUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1000
		begun := make(chan string, 2*many)
		let := make(chan error)
		q := &removals{remove: func(dir string) error { begun <- dir; return <-let }}
		var want []string
		for i := range many {
			want = append(want, fmt.Sprint("bob", i))
			q.add(bob, want[i])
		}
		q.add(alice, "alice")
		synctest.Wait()
		if n := len(begun); n != 2 {
			t.Errorf("%d are being removed", n)
		}
		for range many + 1 {
			let <- errors.New("it is busy")
		}
		synctest.Wait()
		var got []string
		for range many + 1 {
			if dir := <-begun; dir != "alice" {
				got = append(got, dir)
			}
		}
		if !slices.Equal(got, want) || len(q.left) != 0 {
			t.Errorf("%d were removed, %v are left", len(got), q.left)
		}
		q.add(bob, "later")
		if dir := <-begun; dir != "later" {
			t.Errorf("%s is removed", dir)
		}
		let <- nil
	})
}
