package pmi

import (
	"strconv"
	"strings"
	"sync"
)

// born is what a server knows of the task that has asked for its step.
type born struct {
	known   chan struct{} // closed once it is known, or will not be
	once    sync.Once
	spawner string
	tasks   []int // of each program
	begun   int   // tasks of this node that have begun with PMI
}

// askBirth asks the hub about the task that has asked for this step. Tasks wait for the answer.
func (s *Server) askBirth() {
	s.born = &born{known: make(chan struct{})}
	s.link.Call(HubNode, callBirth, appendTexts(nil, ""), func(data []byte, err error) {
		defer s.unborn()
		spawner, preput, tasks, wrong := readBirth(data)
		if err == nil {
			err = wrong
		}
		if err != nil {
			s.say("the task that has asked for this step: %v", err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.born.spawner, s.born.tasks = spawner, tasks
		for i := 0; i < len(preput); i += 2 {
			s.kvs[preput[i]] = preput[i+1]
		}
	})
}

// unborn ends the wait for the answer.
func (s *Server) unborn() {
	if s.born != nil {
		s.born.once.Do(func() { close(s.born.known) })
	}
}

// begin has a task that begins with PMI wait until it is known who has asked for it, and tells the hub of the last one.
func (s *Server) begin() {
	if s.born == nil {
		return
	}
	<-s.born.known
	s.mu.Lock()
	s.born.begun++
	all := s.born.begun == len(s.setup.Local())
	s.mu.Unlock()
	if all {
		s.link.Call(HubNode, callBegun, appendTexts(nil, ""), func([]byte, error) {})
	}
}

// appnum is the number of the program that a task runs, among those that were asked for.
func (r *rank) appnum() string {
	number := 0
	if b := r.server.born; b != nil {
		for left := r.rank; number+1 < len(b.tasks) && left >= b.tasks[number]; number++ {
			left -= b.tasks[number]
		}
	}
	return strconv.Itoa(number)
}

// spawn asks for further tasks.
func (r *rank) spawn(words *spawnWords, c command, done func(job string, err error)) {
	s, err := words.read(c.args, c.programs)
	if err != nil {
		r.spawned("", err, done)
		return
	}
	s.Rank = r.rank
	r.server.link.Call(HubNode, callSpawn, s.encode(), func(job []byte, err error) {
		r.spawned(string(job), err, done)
	})
}

// spawned tells a task of those that it has asked for.
func (r *rank) spawned(job string, err error, done func(job string, err error)) {
	if err != nil {
		r.server.say("task %d: MPI_Comm_spawn: %s", r.rank, strings.TrimPrefix(err.Error(), callSpawn+" "))
	}
	done(job, err)
}
