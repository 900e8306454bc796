package agent

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestHealth asks as ft_launcher does, by gRPC on the socket, and reads the answer by its protocol.
func TestHealth(t *testing.T) {
	for _, c := range []struct {
		name         string
		faults       []cluster.Fault
		success      uint64
		code         uint64
		output, text string
	}{
		{"healthy", nil, 1, 0, `{"fail_count":0,"failed_checks":[]}`, ""},
		{"faulty", []cluster.Fault{{Part: "GPU-1", Cause: "xid 79", Text: "GPU 0 has fallen off the bus"}}, 0, 1,
			`{"fail_count":1,"failed_checks":["GPU-1: xid 79"]}`, "GPU 0 has fallen off the bus"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask := startHealth(t, c.faults)
			resp, answer := ask(healthMethod, "\x00\x00\x00\x00\x0c\x0a\x0a--no-slurm")
			got, kind := resp.Trailer.Get("Grpc-Status"), resp.Header.Get("Content-Type")
			if got != "0" || kind != "application/grpc" {
				t.Errorf("status %q, type %q", got, kind)
			}
			numbers, texts := parseHealth(t, answer)
			if numbers[1] != c.success || numbers[2] != c.code || texts[3] != c.output || texts[4] != c.text {
				t.Errorf("numbers %v, texts %v", numbers, texts)
			}
		})
	}
}

// TestHealthUnknown: another method is refused, and a question without end is not read.
func TestHealthUnknown(t *testing.T) {
	ask := startHealth(t, nil)
	if resp, _ := ask("/nvhcd.HealthCheckService/Other", ""); resp.Header.Get("Grpc-Status") != grpcUnimplemented {
		t.Errorf("headers %v", resp.Header)
	}
	resp, answer := ask(healthMethod, strings.Repeat("x", 2*maxHealthAsk))
	if len(answer) != 0 || resp.Trailer.Get("Grpc-Status") == "0" {
		t.Errorf("a long question: %q, %v", answer, resp.Trailer)
	}
}

// startHealth serves faults; the result sends a question to a method.
func startHealth(t *testing.T, faults []cluster.Fault) func(method, body string) (*http.Response, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s"+HealthSuffix)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		close(ready)
		done <- serveFaults(ctx, path, func() []cluster.Fault { return faults }, slog.New(slog.DiscardHandler))
	}()
	<-ready
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	only := &http.Protocols{}
	only.SetUnencryptedHTTP2(true)
	way := &http.Transport{Protocols: only, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		for {
			conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
			if err == nil || ctx.Err() != nil {
				return conn, err
			}
		}
	}}
	t.Cleanup(way.CloseIdleConnections)
	return func(method, body string) (*http.Response, []byte) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node"+method, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/grpc")
		req.Header.Set("Te", "trailers")
		resp, err := way.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, _ := io.ReadAll(resp.Body)
		return resp, answer
	}
}

// parseHealth reads the numbers and texts of an answer by their field.
func parseHealth(t *testing.T, answer []byte) (numbers map[uint64]uint64, texts map[uint64]string) {
	t.Helper()
	if len(answer) < 5 || answer[0] != 0 || int(binary.BigEndian.Uint32(answer[1:])) != len(answer)-5 {
		t.Fatalf("no message of gRPC: %q", answer)
	}
	numbers, texts = map[uint64]uint64{}, map[uint64]string{}
	in := bytes.NewReader(answer[5:])
	for in.Len() > 0 {
		tag, _ := binary.ReadUvarint(in)
		value, err := binary.ReadUvarint(in)
		if err != nil {
			t.Fatal(err)
		}
		if tag&7 == 0 {
			numbers[tag>>3] = value
			continue
		}
		text := make([]byte, value)
		if _, err := io.ReadFull(in, text); err != nil {
			t.Fatal(err)
		}
		texts[tag>>3] = string(text)
	}
	return numbers, texts
}
