package mcphost

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dev.muster/agent/eventlog"
	"dev.muster/api"
	"dev.muster/cli/mcp"
	"dev.muster/slurm/front"
)

// Bounds of a server's tools. Requests are independent, so there are no sessions to count.
const (
	maxRequest = 1 << 20 // bytes of a body
	maxAtOnce  = 64      // requests
	maxOfUser  = 8       // of one user
	// maxQuestions bounds the questions in SQL of all users: the jobs that one is about, and the process that answers
	// it, take more than a gigabyte. A user has one at a time.
	maxQuestions = 4
)

// web serves tools to the users of tokens, in the process of a server.
type web struct {
	world   func() *mcp.World
	schemas *sdk.SchemaCache
	handler http.Handler
	callers eventlog.Followers[uint32]
	asking  eventlog.Followers[uint32]
}

// callerKey is that of a request's context.
type callerKey struct{}

// Web returns what serves tools at a path of a server's port.
func Web(world func() *mcp.World) func(http.ResponseWriter, *http.Request, *api.RESTRequest) {
	x := &web{
		world:   world,
		schemas: sdk.NewSchemaCache(),
		callers: eventlog.Followers[uint32]{All: maxAtOnce, Each: maxOfUser},
		asking:  eventlog.Followers[uint32]{All: maxQuestions, Each: 1},
	}
	x.handler = sdk.NewStreamableHTTPHandler(x.serverOf, &sdk.StreamableHTTPOptions{
		Stateless:                    true,
		JSONResponse:                 true,
		MaxRequestBodyBytes:          maxRequest,
		PropagateRequestCancellation: true,
		// A proxy on this machine forwards the host name that clients use, which is not localhost. Every request needs
		// a token in any case.
		DisableLocalhostProtection: true,
	})
	return x.serve
}

// serve answers a request of a caller.
func (x *web) serve(w http.ResponseWriter, r *http.Request, by *api.RESTRequest) {
	leave, ok := x.callers.Enter(by.Who.UID, true)
	if !ok {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests at once", http.StatusTooManyRequests)
		return
	}
	defer leave()
	x.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, by)))
}

// serverOf is the server for a request.
func (x *web) serverOf(r *http.Request) *sdk.Server {
	by, ok := r.Context().Value(callerKey{}).(*api.RESTRequest)
	if !ok {
		return nil
	}
	w := x.world()
	w.Begin = x.begin
	w.Query, w.Modules, w.Schemas = ask, func() []string { return nil }, x.schemas
	w.Sys = func(prog string, in io.Reader, out, errs io.Writer) *front.Sys {
		return remote(by, prog, in, out, errs)
	}
	return mcp.New(w)
}

// begin lets a user ask a question in SQL.
func (x *web) begin(s *front.Sys) (end func(), err error) {
	end, ok := x.asking.Enter(s.UID, true)
	if !ok {
		return nil, errors.New("another question of yours, or several of others, are being answered: ask again soon")
	}
	return end, nil
}

// remote is the surroundings of a front-end that acts for a user who is elsewhere: this process has rights that the
// user lacks, so it opens no file. The environment is what jobs of a crontab have.
func remote(by *api.RESTRequest, prog string, in io.Reader, out, errs io.Writer) *front.Sys {
	u, _ := front.UserByID(by.Who.UID)
	home := cmp.Or(u.Home, "/")
	return &front.Sys{
		Prog:   prog,
		Stdin:  in,
		Stdout: out,
		Stderr: errs,
		Environ: []string{"HOME=" + home, "USER=" + by.Who.User, "LOGNAME=" + by.Who.User,
			"SHELL=" + cmp.Or(u.Shell, "/bin/sh"), front.JobPath("/usr/local/bin:/usr/bin:/bin")},
		Dial:     by.Dial,
		Direct:   by.Direct,
		NoFiles:  true,
		UID:      by.Who.UID,
		GID:      by.Who.GID,
		User:     by.Who.User,
		Now:      time.Now,
		Umask:    0o022,
		Getwd:    func() (string, error) { return home, nil },
		Hostname: func() (string, error) { return by.Host, nil },
	}
}
