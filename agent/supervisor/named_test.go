package supervisor

import (
	"fmt"
	"sync"
	"testing"

	"dev.muster/agent/container"
	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// namedRun is a step in a container of a name, which has not begun.
func namedRun(s *supervisor, number int, name string) *run {
	id := step.ID{Job: 1, Attempt: 1, Step: number, Node: "n0"}
	r := &run{sup: s, id: id, inside: &inside{}}
	r.spec = step.Spec{ID: id, Container: &container.Spec{Container: cluster.Container{Name: name}}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[id] = r
	return r
}

// begin notes that a step has begun, with a task.
func (r *run) begin() {
	r.sup.mu.Lock()
	defer r.sup.mu.Unlock()
	r.launched, r.live = true, 1
	r.tasks = []*task{{run: r, live: true}}
	r.sup.named.leave(r)
}

// TestAwaitName: many steps that wait for one container enter it one after the other, in the order in which they came;
// each is woken when it is its turn, and one that is to end leaves at once.
func TestAwaitName(t *testing.T) {
	const steps = 1000
	s := &supervisor{steps: map[step.ID]*run{}}
	first := namedRun(s, 0, "c")
	if _, err := first.awaitName(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var order []int
	last := (*run)(nil)
	for i := range steps {
		r := namedRun(s, i+1, "c")
		wg.Go(func() {
			with, err := r.awaitName()
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			order = append(order, r.inside.number)
			mu.Unlock()
			if with == nil && r.id.Step != steps {
				t.Errorf("step %d enters no container", r.id.Step)
			}
			r.begin()
		})
		last = r
		awaitQueue(s, i+1)
	}
	if with, err := namedRun(s, steps+1, "other").awaitName(); with != nil || err != nil {
		t.Errorf("a container of another name is entered: %v", err)
	}
	if err := s.signal(last.id, unix.SIGTERM, step.Leaders); err != nil {
		t.Fatal(err)
	}
	awaitQueue(s, steps-1)
	first.begin()
	wg.Wait()
	for i, number := range order[1:] {
		if number != i+2 {
			t.Fatalf("step number %d enters as the %dth", number, i+2)
		}
	}
	if len(s.named.queues) > 0 {
		t.Errorf("%d queues are left", len(s.named.queues))
	}
}

// TestManyWaitForName: a user's steps that wait for containers are bounded, and hold up nobody else's.
func TestManyWaitForName(t *testing.T) {
	s := &supervisor{steps: map[step.ID]*run{}}
	for range maxNamed {
		if err := s.named.enter(bob); err != nil {
			t.Fatal(err)
		}
	}
	for uid, want := range map[uint32]bool{bob: false, alice: true} {
		r := namedRun(s, int(uid), fmt.Sprint("c", uid))
		r.spec.UID = uid
		if _, err := r.awaitName(); (err == nil) != want {
			t.Errorf("user %d: %v", uid, err)
		}
	}
	s.named.exit(bob)
	again := namedRun(s, 0, "c")
	again.spec.UID = bob
	if _, err := again.awaitName(); err != nil {
		t.Errorf("when another has begun: %v", err)
	}
	if len(s.named.waits) != 1 || s.named.waits[bob] != maxNamed-1 {
		t.Errorf("%d users wait", len(s.named.waits))
	}
}

// awaitQueue waits until as many steps wait for a container.
func awaitQueue(s *supervisor, want int) {
	for {
		s.mu.Lock()
		n := 0
		for _, list := range s.named.queues {
			n += len(list)
		}
		s.mu.Unlock()
		if n == want {
			return
		}
	}
}

// TestOpenSpaces: the namespaces of a container are opened while its task is known to be there, and are none of a
// process that has its number later.
func TestOpenSpaces(t *testing.T) {
	var own, got unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &own); err != nil {
		t.Fatal(err)
	}
	one := &task{run: namedRun(&supervisor{steps: map[step.ID]*run{}}, 0, "c"), live: true}
	one.st.PID = unix.Getpid()
	list, err := one.openSpaces([]string{"net", "ipc"})
	defer closeSpaces(list)
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	if err := unix.Fstat(list[0], &got); err != nil || got.Ino != own.Ino {
		t.Errorf("namespace %d is opened, want %d (%v)", got.Ino, own.Ino, err)
	}
	one.live = false
	if list, err := one.openSpaces(nil); err == nil {
		t.Error(fmt.Sprint("namespaces of a task that is gone are opened: ", list))
	}
}
