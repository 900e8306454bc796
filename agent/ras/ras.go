// Package ras asks NCCL's RAS subsystem (2.24 and later; RCCL speaks the same) what the ranks of a job do. Any process
// of a job answers for all of them, on the address of NCCL_RAS_ADDR. Whatever is read comes from the job's user: it is
// bounded in time and size, and nothing of it is trusted beyond that job. Start with Job, then Watch.
package ras

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"dev.muster/wire"
)

// askTime bounds one question. RAS itself gathers for at most 10 s, unless it is told less.
const (
	dialTime = time.Second
	askTime  = 6 * time.Second
	askLimit = "TIMEOUT 4\n" // for one leg of gathering, s
)

// ErrNone: no process of the job answers. Most jobs have none.
var ErrNone = errors.New("nobody answers")

// Report is what RAS tells of a job.
type Report struct {
	Comms []Comm `json:"communicators"`
}

// Comm is one communicator.
type Comm struct {
	Hash    string      `json:"hash"`
	Size    int         `json:"size"` // ranks
	Ranks   []RankState `json:"ranks"`
	Missing []RankState `json:"missing_ranks"` // those that RAS got no answer of
}

// RankState is a rank of a communicator.
type RankState struct {
	Rank   int               `json:"rank"`
	Host   string            `json:"host"` // an address
	PID    int               `json:"pid"`  // in its own PID namespace
	GPU    int               `json:"cuda_dev"`
	Status Status            `json:"status"`
	Counts map[string]uint64 `json:"collective_counts"` // operations launched so far, by kind
}

// Status is what a rank does; the last two fields are of those that are missing.
type Status struct {
	Init         int  `json:"init_state"`  // 0: done, 7: in progress
	Async        int  `json:"async_error"` // an ncclResult_t
	Finalize     bool `json:"finalize_called"`
	Destroy      bool `json:"destroy_flag"`
	Abort        bool `json:"abort_flag"`
	Unresponsive bool `json:"unresponsive"`
	Dead         bool `json:"considered_dead"`
}

// String names a rank for a person.
func (r *RankState) String() string {
	return fmt.Sprintf("rank %d (GPU %d of process %d on %s)", r.Rank, r.GPU, r.PID, r.Host)
}

// launched is how many operations a rank has launched.
func (r *RankState) launched() (n uint64) {
	for _, c := range r.Counts {
		n += c
	}
	return n
}

// Job is where the processes of a job answer.
type Job struct {
	Addr string // of NCCL_RAS_ADDR
	UID  uint32 // its user: nobody else is believed
	Most int64  // bytes of an answer
	// Owner returns the user who holds the other end of a connection.
	Owner func(net.Conn) (uint32, error)
}

// Ask asks for the state of all ranks, in text where the process speaks no JSON.
func (j *Job) Ask(ctx context.Context) (*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	text, err := j.ask(ctx, "SET FORMAT json\nSTATUS\n")
	if err != nil {
		return nil, err
	}
	at := bytes.IndexByte(text, '{')
	if at < 0 { // before NCCL 2.28.7
		text, err = j.ask(ctx, "VERBOSE STATUS\n")
		return parseText(string(text)), err
	}
	r := &Report{}
	if err := wire.Unmarshal(text[at:], r); err != nil {
		return nil, fmt.Errorf("read the answer of NCCL's RAS: %w", err)
	}
	return r, nil
}

// ask sends commands and reads until the other side closes.
func (j *Job) ask(ctx context.Context, commands string) ([]byte, error) {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp4", j.Addr)
	if err != nil {
		return nil, ErrNone
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	from := bufio.NewReader(io.LimitReader(conn, j.Most+1))
	if err := j.greet(conn, from); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, commands); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(from)
	if int64(len(text)) >= j.Most {
		return nil, fmt.Errorf("NCCL's RAS answers with more than %d bytes", j.Most)
	}
	return text, err
}

// greet has the other side answer once: then it has accepted the connection, and the kernel knows whose it is.
func (j *Job) greet(conn net.Conn, from *bufio.Reader) error {
	if _, err := io.WriteString(conn, askLimit); err != nil {
		return err
	}
	if _, err := from.ReadSlice('\n'); err != nil {
		return errors.Join(ErrNone, err)
	}
	if uid, err := j.Owner(conn); err != nil || uid != j.UID {
		return errors.Join(ErrNone, err)
	}
	return nil
}

// textRank begins a line of the answer as text that names a rank.
const textRank = "Rank "

// textMissing begins a line of the answer as text of before NCCL 2.30.
const textMissing = "The missing rank: "

// parseText reads of the answer as text which ranks are missing. It tells no counts: those are of no use without the
// ranks that are well.
func parseText(text string) *Report {
	r := &Report{}
	var open *Comm // the communicator that the lines are about, if ranks of it are missing
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			open = r.begin(line)
			continue
		}
		line = strings.Replace(line, textMissing, textRank, 1)
		rest, ok := strings.CutPrefix(line, textRank)
		if open != nil && ok {
			open.miss(rest)
		}
	}
	return r
}

// begin adds the communicator of a heading, if that says that ranks of it are missing.
func (r *Report) begin(line string) *Comm {
	if !strings.HasSuffix(line, " INCOMPLETE") {
		return nil
	}
	r.Comms = append(r.Comms, Comm{Hash: line})
	return &r.Comms[len(r.Comms)-1]
}

// miss adds a rank: its number, and perhaps "-- GPU 5 managed by process 99 on node 10.0.0.1".
func (c *Comm) miss(text string) {
	rank := RankState{Status: Status{Unresponsive: true}}
	number, where, _ := strings.Cut(text, " -- ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	rank.Rank = n
	_, _ = fmt.Sscanf(where, "GPU %d managed by process %d on node %s", &rank.GPU, &rank.PID, &rank.Host)
	c.Missing = append(c.Missing, rank)
}
