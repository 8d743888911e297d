package metrics

import (
	"context"
	"fmt"
	"net/http"

	"github.com/primus-fl/primus/internal/httpserver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server serves /metrics over HTTP.
type Server struct{ server *httpserver.Server }

// Serve serves the metrics of g on addr, such as 127.0.0.1:9400, until Close. Port 0 means any free
// port; see Addr. If it cannot listen on the address, it returns an error.
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

// Close stops listening and waits for running requests. If ctx ends first, it aborts them and
// returns the error of ctx. Further calls return the same error.
func (s *Server) Close(ctx context.Context) error {
	if err := s.server.Close(ctx); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}
