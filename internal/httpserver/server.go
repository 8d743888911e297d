package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// The defaults of a server.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10
)

// grace is how long Run waits for the requests in progress.
const grace = 5 * time.Second

// Server is an HTTP server that listens.
type Server struct {
	http  *http.Server
	addr  net.Addr
	ended chan struct{} // closed when failure is known
	// failure is why serving ended, nil after Close.
	failure error

	close sync.Once
	err   error // of Close
}

// Start listens on addr, such as 127.0.0.1:9400, and serves until Close; port 0 takes a free one.
// wrap may replace the listener, for example by one with TLS; nil keeps it.
func Start(addr string, server *http.Server, wrap func(net.Listener) net.Listener) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w; give another HOST:PORT, or port 0 for any that is free", addr, err)
	}
	s := &Server{http: server, addr: listener.Addr(), ended: make(chan struct{})}
	defaults(&server.ReadHeaderTimeout, headerTimeout)
	defaults(&server.ReadTimeout, readTimeout)
	defaults(&server.WriteTimeout, writeTimeout)
	defaults(&server.IdleTimeout, idleTimeout)
	defaults(&server.MaxHeaderBytes, maxHeader)
	if wrap != nil {
		listener = wrap(listener)
	}
	go func() {
		defer close(s.ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failure = err
		}
	}()
	return s, nil
}

// defaults sets the fields that are zero.
func defaults[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.addr }

// Run waits until ctx ends or serving fails, and closes the server. It gives the requests in
// progress five seconds.
func (s *Server) Run(ctx context.Context) error {
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return s.Close(stopping)
}

// Close stops listening and waits for the requests in progress. When ctx ends first, Close cuts
// them off and returns the error of ctx. Further calls do nothing and return the same.
func (s *Server) Close(ctx context.Context) error {
	s.close.Do(func() {
		err := s.http.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, s.http.Close())
		}
		<-s.ended
		if err = errors.Join(err, s.failure); err != nil {
			s.err = fmt.Errorf("serve on %s: %w", s.addr, err)
		}
	})
	return s.err
}
