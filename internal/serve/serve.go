package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/primus-fl/primus/internal/httpserver"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds on what clients can ask of a Server.
const (
	maxConnections = 4096
	maxPerAddress  = 2048 // of these
	maxStreams     = 1024
	maxBody        = 64 << 10

	readTimeout  = 10 * time.Second
	writeTimeout = time.Minute // longer than a profile of the default length
)

// Server is the service of a run.
type Server struct {
	cfg    Config
	set    Settings
	tokens Tokens
	hosts  map[string]bool
	limits limits // for addresses
	trust  limits // for tokens
	api    huma.API

	trying sync.Mutex // held while a policy is tried out without a token
	trials *limiter   // of these

	streams chan struct{} // one value for each open stream
	closing atomic.Bool
	ended   chan struct{} // closed when streams have to end

	handler http.Handler
	tls     *tls.Config        // nil for none
	server  *httpserver.Server // nil before Start
	close   sync.Once
}

// New returns a Server that does nothing until Start.
func New(cfg Config, set Settings) (*Server, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, set: set, hosts: hostNames(&cfg), limits: limits{newLimiter(50, 200), newLimiter(2, 20)}, trust: limits{newLimiter(50, 200), newLimiter(10, 100)}, trials: newLimiter(1, 10),
		streams: make(chan struct{}, maxStreams), ended: make(chan struct{}),
	}
	if cfg.TokenFile != "" {
		var err error
		if s.tokens, err = ReadTokens(cfg.TokenFile); err != nil {
			return nil, err
		}
	}
	s.handler = s.routes()
	if cfg.CertFile != "" {
		cert, err := secret.KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("serve: read the certificate %q and its key %q: %w; want both in PEM", cfg.CertFile, cfg.KeyFile, err)
		}
		s.tls = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}
	return s, nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	s.register(mux)
	s.registerPage(mux)
	s.registerModel(mux)
	if s.set.Gatherer != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(s.set.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	}
	if s.cfg.Pprof {
		mux.HandleFunc("GET /debug/pprof/", s.profile(pprof.Index))
		mux.HandleFunc("GET /debug/pprof/profile", s.profile(pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/trace", s.profile(pprof.Trace))
		mux.HandleFunc("GET /debug/pprof/symbol", s.profile(pprof.Symbol))
	}
	return s.guard(newShared(route(mux), func() version { return version{s.set.Manager.Generation(), s.set.Hub.changeCount()} }))
}

// profile serves profiles to clients on this machine and to those with a token.
func (s *Server) profile(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := actorOf(r.Context()); !ok && !isLoopback(remote(r)) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="primus"`)
			httpserver.WriteProblem(w, http.StatusUnauthorized, "profiles are for this machine, and for others with the header Authorization: Bearer TOKEN")
			return
		}
		handler(w, r)
	}
}

// Start listens and serves until Close. It returns an error if it cannot listen on the address.
func (s *Server) Start() error {
	server := &http.Server{
		Handler: s.handler, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		ErrorLog: slog.NewLogLogger(s.set.Log.Handler(), slog.LevelDebug),
	}
	started, err := httpserver.Start(s.cfg.Addr, server, func(l net.Listener) net.Listener {
		l = newLimitListener(l, maxConnections, maxPerAddress)
		if s.tls != nil {
			l = tls.NewListener(l, s.tls)
		}
		return l
	})
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	s.server = started
	return nil
}

// URL returns where the service is, once started.
func (s *Server) URL() string {
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	return scheme + "://" + s.server.Addr().String()
}

// Close ends streams, stops listening and waits for the requests in progress. When ctx ends first,
// Close cuts them off and returns the error of ctx. It is idempotent and safe without Start.
func (s *Server) Close(ctx context.Context) error {
	s.close.Do(func() {
		s.closing.Store(true)
		close(s.ended)
	})
	if s.server == nil {
		return nil
	}
	if err := s.server.Close(ctx); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
