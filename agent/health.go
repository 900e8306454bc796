package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"dev.muster/agent/client"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Launchers of training programs (NVIDIA's ft_launcher) ask a daemon of their node whether it is healthy before they
// start ranks there: by gRPC, method /nvhcd.HealthCheckService/RunHealthCheck, on a Unix socket. gRPC is HTTP/2 with
// five bytes before each message, which needs no more than the standard library.

// HealthSuffix is behind the path of the local socket in that of the one for health checks, which all users may call.
const HealthSuffix = ".health"

const (
	healthMethod  = "/nvhcd.HealthCheckService/RunHealthCheck"
	maxHealthAsk  = 64 << 10 // bytes of a question
	healthStreams = 16       // questions at once on a connection

	grpcUnimplemented = "12"
)

// serveHealth answers whether this node has faults for which muster drains it. A daemon that cannot listen does its
// work all the same.
func serveHealth(ctx context.Context, cfg *Config, c *client.Client) error {
	faults := func() []cluster.Fault { return client.Faults(c) }
	return serveFaults(ctx, cfg.Socket+HealthSuffix, faults, cfg.Log)
}

// serveFaults answers with these faults on a socket.
func serveFaults(ctx context.Context, path string, faults func() []cluster.Fault, log *slog.Logger) error {
	ln, err := listen(path, forAll)
	if err != nil {
		log.Warn("launchers cannot ask for the health of this node", "err", err)
		return nil
	}
	only := &http.Protocols{}
	only.SetUnencryptedHTTP2(true)
	srv := &http.Server{
		Handler:           healthHandler(faults),
		Protocols:         only,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: healthStreams},
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(fair(ln)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// healthHandler answers the one method that there is. It ignores the text of the question.
func healthHandler(faults func() []cluster.Fault) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		if r.URL.Path != healthMethod {
			w.Header().Set("Grpc-Status", grpcUnimplemented)
			return
		}
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxHealthAsk)); err != nil {
			return
		}
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write(healthAnswer(faults())) // a launcher that is gone needs no answer
		w.Header().Set("Grpc-Status", "0")
	})
}

// healthReport is the output of a health check, in the form that all versions of the launcher read.
type healthReport struct {
	FailCount    int      `json:"fail_count"`
	FailedChecks []string `json:"failed_checks"`
}

// healthAnswer encodes a HealthCheckResponse with the five bytes of gRPC before it:
// {bool success = 1; int32 exit_code = 2; string output = 3; string error = 4}.
func healthAnswer(faults []cluster.Fault) []byte {
	report := healthReport{FailedChecks: []string{}}
	var texts []string
	for _, f := range faults {
		report.FailedChecks = append(report.FailedChecks, f.Part+": "+f.Cause)
		texts = append(texts, f.Text)
	}
	report.FailCount = len(report.FailedChecks)
	var message []byte
	if report.FailCount == 0 {
		message = append(message, 1<<3, 1)
	} else {
		message = append(message, 2<<3, 1)
	}
	output, _ := wire.Marshal(report) // numbers and texts always can be
	message = appendText(message, 3, string(output))
	message = appendText(message, 4, strings.Join(texts, "; "))
	head := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	return append(head, message...)
}

// appendText adds a field of text to a message; an empty one is left out.
func appendText(message []byte, field byte, text string) []byte {
	if text == "" {
		return message
	}
	message = append(message, field<<3|2)
	message = binary.AppendUvarint(message, uint64(len(text)))
	return append(message, text...)
}
