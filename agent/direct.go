package agent

import (
	"context"
	"errors"
	"net/http"

	"dev.muster/api"
	"dev.muster/cluster"
)

// directly are the calls that are answered in this process: what would be written, read and made again for a
// connection is most of the time of a long list and of a submission.
var directly = map[string]bool{
	api.ListJobs.Path: true, api.ListNodes.Path: true, api.ShowCluster.Path: true,
	api.SubmitJob.Path: true, api.SubmitHet.Path: true, api.CancelJob.Path: true,
}

// direct answers calls of a caller from this server's state, if that is fresh, and by this server's lead. Whatever
// cannot be answered so is asked again by a connection, which knows what to do then; a submission has a key.
func (h *handler) direct(who api.Caller) api.Direct {
	return func(ctx context.Context, method, path string, q any) (any, bool, error) {
		if !directly[path] {
			return nil, false, nil
		}
		route, ok := h.mux.Lookup(method, path)
		if !ok || route.Access != api.User || route.Leader && !h.gateway.leads() {
			return nil, false, nil
		}
		if method == http.MethodGet && h.gateway != nil && h.gateway.server != nil {
			h.gateway.ownWrites(ctx, 0)
			if h.gateway.server.Age() > 0 {
				return nil, false, nil
			}
		}
		v, known, err := route.Direct(ctx, who, q)
		var e *api.Error
		if err != nil && (!errors.As(err, &e) || e.Code == cluster.Unavailable || e.Code == cluster.Internal) {
			return nil, false, nil
		}
		return v, known, err
	}
}
