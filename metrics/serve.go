package metrics

import (
	"context"
	"fmt"
	"net/http"

	"github.com/primus-fl/primus/internal/httpserver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server offers /metrics over HTTP, and nothing else.
type Server struct{ server *httpserver.Server }

// Serve listens on addr, such as 127.0.0.1:9400, and serves what g gathers until Close. Port 0 takes a free one; see Addr.
// An address that cannot be listened on is an error at once.
func Serve(addr string, g prometheus.Gatherer) (*Server, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	server, err := httpserver.Start(addr, &http.Server{Handler: mux}, nil)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return &Server{server}, nil
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() string { return s.server.Addr().String() }

// Close stops listening and waits for the requests in hand. When ctx ends first, they are cut off and its error is
// returned. Further calls do nothing and return the same.
func (s *Server) Close(ctx context.Context) error {
	if err := s.server.Close(ctx); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}
