package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

const (
	// keepAlive is the longest time that a stream is silent; proxies close connections that are
	// silent for long.
	keepAlive = 15 * time.Second
	// streamWrite is how long one write to a stream may take before its client counts as gone.
	streamWrite = 5 * time.Second
	// streamPause, times the number of open streams, is the pause of a stream after a write: all
	// streams together are written to at most 250 times per second.
	streamPause = 4 * time.Millisecond
	// retryAfter is how long a client whose stream was cut waits before it connects again.
	retryAfter = 2 * time.Second
)

type streamQuery struct {
	LastID string `header:"Last-Event-ID" doc:"continue after this event; without it the stream begins with the oldest event that is kept"`
}

func (s *Server) registerStream() {
	schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Event](), true, "Event")
	huma.Register(s.api, huma.Operation{
		OperationID: "stream-events", Method: http.MethodGet, Path: "/v1/events", Summary: "Follow what happens, as server-sent events",
		Responses: map[string]*huma.Response{"200": {
			Description: "Server-sent events; the data of each is an Event.",
			Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: schema}},
		}},
		Errors: []int{http.StatusTooManyRequests, http.StatusServiceUnavailable},
	}, func(ctx context.Context, in *streamQuery) (*huma.StreamResponse, error) {
		select {
		case s.streams <- struct{}{}:
		default:
			err := huma.Error503ServiceUnavailable(fmt.Sprintf("%d clients already follow events; try again later", maxStreams))
			return nil, huma.ErrorWithHeaders(err, http.Header{"Retry-After": {"10"}})
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			defer func() { <-s.streams }()
			_, w := unwrap(c)
			w.Header().Set("Content-Type", "text/event-stream")
			if err := s.stream(ctx, w, in.LastID); err != nil {
				s.set.Log.Debug("event stream ended", "from", c.RemoteAddr(), "reason", err)
			}
		}}, nil
	})
}

// stream writes events until the client or the service ends.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, lastID string) error {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	write := func(p []byte) error {
		if err := control.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil {
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
		return control.Flush()
	}
	if err := write(fmt.Appendf(nil, "retry: %d\n\n", retryAfter.Milliseconds())); err != nil {
		return err
	}
	next := uint64(1)
	if lastID != "" {
		next = s.set.Hub.after(lastID)
	}
	silence := time.NewTicker(keepAlive)
	defer silence.Stop()
	for {
		events, following, changed := s.set.Hub.since(next)
		next = following
		var rested <-chan time.Time
		if len(events) > 0 {
			var text []byte
			for _, e := range events {
				text = append(text, e.text...)
			}
			if err := write(text); err != nil {
				return err
			}
			silence.Reset(keepAlive)
			rested, changed = time.After(streamPause*time.Duration(len(s.streams))), nil
		}
		select {
		case <-changed:
		case <-rested:
		case <-silence.C:
			if err := write([]byte(": still here\n\n")); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return nil
		}
	}
}

// encode returns the event as it is in a stream.
func (e *Event) encode() []byte {
	data, err := json.Marshal(e)
	if err != nil {
		panic("BUG: serve: an event cannot be written as JSON: " + err.Error())
	}
	return fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Type, data)
}
