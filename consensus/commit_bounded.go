package consensus

import (
	"errors"

	"github.com/hashicorp/raft"
)

// commitBounded is a transport by which a leader never tells a follower of more committed entries than it has sent him.
//
// A follower may hold entries of an earlier leader that were never committed. The paper (D. Ongaro, J. Ousterhout,
// "In Search of an Understandable Consensus Algorithm", figure 2, AppendEntries 5) has it commit up to the last entry
// of the request at most; hashicorp/raft takes its own last entry instead. And a leader reads what to send before it
// reads what is committed: a request that was made ready just as the leader took the lead, and held up, may bring no
// entries and the news that some are committed since. The follower would then apply its own old ones in their
// place, and differ from the others indefinitely.
//
// Nor does it tell them that there is a leader while that one's disk hangs.
type commitBounded struct {
	raft.Transport
	disk *stopwatch
}

// upTo bounds what a request calls committed by what its sender and receiver are known to share.
func upTo(q *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	q.LeaderCommitIndex = min(q.LeaderCommitIndex, q.PrevLogEntry+uint64(len(q.Entries)))
	return q
}

func (t commitBounded) AppendEntries(id raft.ServerID, to raft.ServerAddress, q *raft.AppendEntriesRequest,
	r *raft.AppendEntriesResponse) error {
	if t.disk.hangs() {
		return errDiskHangs
	}
	return t.Transport.AppendEntries(id, to, upTo(q), r)
}

func (t commitBounded) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := t.Transport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return carefulPipeline{p, t.disk}, nil
}

type carefulPipeline struct {
	raft.AppendPipeline
	disk *stopwatch
}

func (p carefulPipeline) AppendEntries(q *raft.AppendEntriesRequest, r *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if p.disk.hangs() {
		return nil, errDiskHangs
	}
	return p.AppendPipeline.AppendEntries(upTo(q), r)
}

// RequestPreVote implements raft.WithPreVote.
func (t commitBounded) RequestPreVote(id raft.ServerID, to raft.ServerAddress,
	q *raft.RequestPreVoteRequest, r *raft.RequestPreVoteResponse) error {
	v, ok := t.Transport.(raft.WithPreVote)
	if !ok {
		return errors.New("this transport knows no pre-vote")
	}
	return v.RequestPreVote(id, to, q, r)
}

// Close implements raft.WithClose.
func (t commitBounded) Close() error {
	if c, ok := t.Transport.(raft.WithClose); ok {
		return c.Close()
	}
	return nil
}
