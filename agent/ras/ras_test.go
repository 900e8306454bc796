package ras

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"dev.muster/pmi/sockowner"
)

// server speaks RAS's protocol: handshake, TIMEOUT, SET FORMAT, STATUS, and closes behind that.
func server(t *testing.T, json bool, answer string) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go speak(conn, json, answer)
		}
	}()
	return ln.Addr().String()
}

func speak(conn net.Conn, json bool, answer string) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		switch word := strings.ToUpper(lines.Text()); {
		case strings.HasPrefix(word, "TIMEOUT "):
			fmt.Fprintln(conn, "OK")
		case word == "SET FORMAT JSON" && json:
			fmt.Fprintln(conn, "OK")
		case word == "STATUS" && !json:
			fmt.Fprint(conn, "NCCL version 2.27.3 compiled with CUDA 12.9\n")
			return
		case word == "STATUS" || word == "VERBOSE STATUS":
			fmt.Fprint(conn, answer)
			return
		default:
			fmt.Fprintf(conn, "ERROR: Unknown command %s\n", lines.Text())
		}
	}
}

func job(addr string, most int64) *Job {
	return &Job{Addr: addr, UID: uint32(os.Getuid()), Most: most, Owner: sockowner.Of}
}

// missing is an answer in JSON in which rank 1 is missing.
const missing = `{"nccl_version":"2.29.1","communicators_count":1,"communicators":[{"hash":"0xae94","size":2,"ranks_count":1,
"missing_ranks_count":1,"ranks":[{"rank":0,"host":"172.16.64.245","pid":1524344,"cuda_dev":0,"nvml_dev":0,"status":{"init_state":0,
"async_error":0,"finalize_called":false,"destroy_flag":false,"abort_flag":false},"collective_counts":{"Broadcast":0,"AllReduce":7}}],
"missing_ranks":[{"rank":1,"host":"172.16.64.245","pid":1524345,"cuda_dev":1,"nvml_dev":1,"status":{"unresponsive":true,
"considered_dead":false}}]}],"ras":{"collection_time_sec":0.000,"timeouts_count":0}}`

// plain is such an answer of before RAS spoke JSON.
const plain = `Errors
======

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213

#1-0 (27a079b828ff1a75) MISMATCH
  Rank 3 -- GPU 0 managed by process 1 on node 172.16.64.210
`

// TestAsk: both forms of the answer name the rank that is missing; what is too long, or another user's, is refused.
func TestAsk(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		json         bool
		want         string
	}{
		{"JSON", missing, true, "rank 1 (GPU 1 of process 1524345 on 172.16.64.245)"},
		{"text", plain, false, "rank 21 (GPU 5 of process 3487984 on 172.16.64.213)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := job(server(t, c.json, c.answer), 1<<20).Ask(t.Context())
			if err != nil || len(r.Comms) != 1 || len(r.Comms[0].Missing) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			if got := r.Comms[0].Missing[0].String(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	t.Run("too long", func(t *testing.T) {
		if _, err := job(server(t, true, missing), 100).Ask(t.Context()); err == nil {
			t.Error("it was read")
		}
	})
	t.Run("another user's", func(t *testing.T) {
		other := job(server(t, true, missing), 1<<20)
		other.UID++
		if r, err := other.Ask(t.Context()); !errors.Is(err, ErrNone) {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("hostile", func(t *testing.T) {
		const odd = `{"communicators":[{"ranks":[{"rank":"x"}]}]}`
		for _, text := range []string{`{`, `{"communicators":{}}`, odd, "\x00\xff"} {
			_, _ = job(server(t, true, text), 1<<20).Ask(t.Context()) // it must only end
		}
	})
}

// comm is a communicator whose ranks have launched so many operations; those below zero are missing.
func comm(counts ...int) *Report {
	c := Comm{Hash: "0x1", Size: len(counts)}
	for rank, n := range counts {
		r := RankState{Rank: rank, Host: "10.0.0.1", PID: 100 + rank, GPU: rank}
		if n < 0 {
			r.Status.Unresponsive = true
			c.Missing = append(c.Missing, r)
			continue
		}
		r.Counts = map[string]uint64{"AllReduce": uint64(n)}
		c.Ranks = append(c.Ranks, r)
	}
	return &Report{Comms: []Comm{c}}
}

// TestWatch: what hangs and what only looks as if it did.
func TestWatch(t *testing.T) {
	ending := comm(5, 5, -1)
	ending.Comms[0].Ranks[0].Status.Finalize = true
	for _, c := range []struct {
		name    string
		reports []*Report // Every apart
		want    string    // in the last finding; empty: none
	}{
		{"well", []*Report{comm(1, 1), comm(2, 2), comm(3, 3)}, ""},
		{"missing once", []*Report{comm(5, 5, 5), comm(6, 6, -1)}, ""},
		{"missing twice", []*Report{comm(5, 5, 5), comm(6, 6, -1), comm(6, 6, -1)}, "no answer of rank 2 "},
		{"missing, but others go on", []*Report{comm(6, 6, -1), comm(7, 7, -1), comm(8, 8, -1)}, ""},
		{"the job ends", []*Report{ending, ending, ending}, ""},
		{"usual mismatch", []*Report{comm(6, 5), comm(7, 6), comm(8, 7)}, ""},
		{"mismatch that stays", []*Report{comm(6, 6, 5), comm(6, 6, 5), comm(6, 6, 5), comm(6, 6, 5), comm(6, 6, 5)},
			"rank 2 (GPU 2 of process 102 on 10.0.0.1) is behind the others (5 operations of 6)"},
		{"all wait alike", []*Report{comm(6, 6), comm(6, 6), comm(6, 6), comm(6, 6), comm(6, 6)}, ""},
		{"no longer there", []*Report{comm(6, 6, -1), {}, comm(6, 6, -1)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := Watch{After: 4 * Every}
			now := time.Unix(1e9, 0)
			got := &Finding{}
			for _, r := range c.reports {
				got = cmp.Or(w.Look(r, now), &Finding{})
				now = now.Add(Every)
			}
			if c.want == "" && got.Text != "" || !strings.Contains(got.Text, c.want) {
				t.Errorf("%q, want %q", got.Text, c.want)
			}
			if c.want != "" && got.Host != "10.0.0.1" {
				t.Errorf("the ranks run on %q", got.Host)
			}
		})
	}
}
