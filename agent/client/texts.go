package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/api"
	"dev.muster/cluster"
)

// maxTexts bounds the scripts and environments kept in memory.
const maxTexts = 64

// texts are scripts and environments of jobs, each fetched once.
type texts struct {
	server *api.Client

	mu   sync.Mutex // nothing is locked under it
	kept map[cluster.BlobHash]cluster.BlobText
	age  []cluster.BlobHash // the oldest first
}

func newTexts(server *api.Client) *texts {
	return &texts{server: server, kept: map[cluster.BlobHash]cluster.BlobText{}}
}

// get fetches a stored text of a job, if it is not here.
func (t *texts) get(ctx context.Context, job cluster.JobID, hash cluster.BlobHash) (cluster.BlobText, error) {
	if hash == "" {
		return nil, nil
	}
	t.mu.Lock()
	text, ok := t.kept[hash]
	t.mu.Unlock()
	if ok {
		return text, nil
	}
	r, err := t.fetch(ctx, api.BlobRequest{Hash: hash, Job: job})
	if err != nil {
		return nil, fmt.Errorf("fetch stored text %s: %w", hash, err)
	}
	t.keep(hash, r.Text)
	return r.Text, nil
}

// fetchTime is how long a text is asked for while no server can be reached that has it: a leader may just have died.
const fetchTime = 5 * time.Second

// fetch asks the servers for a text, again while none can be reached, or none leads.
func (t *texts) fetch(ctx context.Context, q api.BlobRequest) (r api.BlobResponse, err error) {
	end := time.Now().Add(fetchTime)
	pause := time.Duration(0)
	for {
		r, err = api.Call(ctx, t.server, api.GetBlob, q)
		if !passes(err) || time.Now().After(end) || !backoff.Pause(ctx, &pause) {
			return r, err
		}
	}
}

// passes reports whether a call may be answered after an election.
func passes(err error) bool {
	var e *api.Error
	return errors.Is(err, api.ErrUnreachable) || errors.As(err, &e) && e.Code == cluster.Unavailable
}

// keep forgets the oldest text where there are too many.
func (t *texts) keep(hash cluster.BlobHash, text cluster.BlobText) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.age = append(t.age, hash); len(t.age) > maxTexts {
		delete(t.kept, t.age[0])
		t.age = t.age[1:]
	}
	t.kept[hash] = text
}
