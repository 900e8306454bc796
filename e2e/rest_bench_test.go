package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

var benchREST = flag.Int("bench-rest", 0, "TestBenchREST: submit so many jobs by the REST interface, and list 10,000")

// restConn is a connection of a client that is kept open, and costs as little as can be beside the server.
type restConn struct {
	net.Conn
	r *bufio.Reader
}

func dialREST(t *testing.T, addr string) *restConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &restConn{c, bufio.NewReaderSize(c, 1<<16)}
}

// ask sends a request as it stands, and reads the answer; first is when that began.
func (c *restConn) ask(request []byte) (status int, body int64, first time.Duration, err error) {
	began := time.Now()
	if _, err := c.Write(request); err != nil {
		return 0, 0, 0, err
	}
	if _, err := c.r.Peek(1); err != nil {
		return 0, 0, 0, err
	}
	first = time.Since(began)
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, 0, 0, err
	}
	defer resp.Body.Close()
	body, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, body, first, err
}

// TestBenchREST: submissions by the REST interface on one kept connection and on eight, and the list of 10,000 jobs.
func TestBenchREST(t *testing.T) {
	if *benchREST == 0 {
		t.Skip("needs -bench-rest=JOBS")
	}
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "8x16c64g", "--hollow-time", "1h", "--http", addr)
	token := tokenOf(t, d, 0)
	ask := func(method, path, body string) []byte {
		var b bytes.Buffer
		fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: muster\r\nX-SLURM-USER-TOKEN: %s\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", method, path, token, len(body), body)
		return b.Bytes()
	}
	submit := ask("POST", "/slurm/v0.0.44/job/submit", `{"script":"#!/bin/sh\ntrue\n","job":{"name":"bench",
		"current_working_directory":"/tmp","environment":["PATH=/usr/bin:/bin"],"nodes":"8",
		"time_limit":{"set":true,"number":60}}}`)
	rate := func(conns, jobs int) float64 {
		var wg sync.WaitGroup
		began := time.Now()
		for range conns {
			c := dialREST(t, addr)
			wg.Go(func() {
				for range jobs / conns {
					if status, _, _, err := c.ask(submit); status != 200 || err != nil {
						t.Errorf("submit: %d %v", status, err)
						return
					}
				}
			})
		}
		wg.Wait()
		return float64(jobs) / time.Since(began).Seconds()
	}
	rate(1, 100)
	fmt.Printf("rest_sync_ms=%.3f\n", syncTime(t).Seconds()*1000)
	fmt.Printf("rest_1_per_s=%.0f\n", rate(1, *benchREST))
	fmt.Printf("rest_8_per_s=%.0f\n", rate(8, *benchREST))
	rate(8, 10_000-100-*benchREST/8*8-*benchREST)
	c := dialREST(t, addr)
	var whole, first []time.Duration
	for range 11 {
		began := time.Now()
		status, size, at, err := c.ask(ask("GET", "/slurm/v0.0.44/jobs", ""))
		if status != 200 || err != nil || size < 10<<20 {
			t.Fatalf("list: %d, %d bytes, %v", status, size, err)
		}
		whole, first = append(whole, time.Since(began)), append(first, at)
	}
	slices.Sort(whole)
	slices.Sort(first)
	fmt.Printf("rest_list_ms=%.1f\nrest_first_ms=%.2f\n", whole[5].Seconds()*1000, first[5].Seconds()*1000)
}

// syncTime is what the disk of the data folder takes to hold 4 KiB for good: each submission waits for two of these.
func syncTime(t *testing.T) time.Duration {
	t.Helper()
	f, err := os.Create(t.TempDir() + "/sync")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []time.Duration
	for k := range 51 {
		began := time.Now()
		_, err := f.WriteAt(make([]byte, 4096), int64(k)<<12)
		if err := errors.Join(err, syscall.Fdatasync(int(f.Fd()))); err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[25]
}
