package page

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"dev.muster/api"
	"dev.muster/wire"
)

// stallTime is how long a follower may take for one batch; then it is cut off.
const stallTime = 15 * time.Second

// liveEvents is the change stream for browsers: server-sent events whose id is the log index, one for all that
// happened at it, a line of data for each.
func (s *pages) liveEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	var q api.EventQuery
	if text := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("since")); text != "" {
		since, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			http.Error(w, "since="+text+" is not a log index; leave it out to follow from now on",
				http.StatusBadRequest)
			return
		}
		q.Since = &since
	}
	leave, ok := s.watch(r) // of their own: the page's visitors crowd no commands out
	if !ok {
		http.Error(w, "too many pages follow this server; open the page of another server",
			http.StatusServiceUnavailable)
		return
	}
	defer leave()
	who, _ := s.visitor(r)
	rc, begun := http.NewResponseController(w), false
	err := s.Follow(r.Context(), who, q, func(events []api.Event) error {
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream")
			begun = true
		}
		text, err := sseText(events)
		if err != nil {
			return err
		}
		if err := rc.SetWriteDeadline(time.Now().Add(stallTime)); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		return rc.Flush()
	})
	if err != nil && !begun {
		e := api.AsError(err)
		http.Error(w, e.Message, api.Status(e.Code))
	}
}

// sseText words events for an EventSource.
func sseText(events []api.Event) (text []byte, err error) {
	for i := range events {
		text = append(text, "data: "...)
		if text, err = wire.Append(text, &events[i]); err != nil {
			return nil, err
		}
		text = append(text, '\n')
		if !events[i].More {
			text = fmt.Appendf(text, "id: %d\n\n", events[i].Index)
		}
	}
	return text, nil
}
