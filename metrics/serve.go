package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server offers /metrics over HTTP, and nothing else.
type Server struct {
	server *http.Server
	addr   net.Addr
	served chan error
	close  sync.Once
	err    error // of Close
}

// Serve listens on addr, such as 127.0.0.1:9400, and serves what g gathers until Close. Port 0 takes a free one; see Addr.
// An address that cannot be listened on is an error at once.
func Serve(addr string, g prometheus.Gatherer) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: serve on %q: %w; give another HOST:PORT, or port 0 for any that is free", addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	s := &Server{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second},
		addr:   listener.Addr(),
		served: make(chan error, 1),
	}
	go func() { s.served <- s.server.Serve(listener) }()
	return s, nil
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() string { return s.addr.String() }

// Close stops listening and waits for the requests in hand. When ctx ends first, they are cut off and its error is
// returned. Further calls do nothing and return the same.
func (s *Server) Close(ctx context.Context) error {
	s.close.Do(func() {
		err := s.server.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, s.server.Close())
		}
		if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		if err != nil {
			s.err = fmt.Errorf("metrics: close the server on %s: %w", s.addr, err)
		}
	})
	return s.err
}
