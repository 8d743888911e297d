package serve

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// contentPolicy lets pages load from this service alone, and nobody frame them.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard refuses requests that no honest client sends, and sets the headers that every answer has.
func (s *Server) guard(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusForbidden, "the request comes from a page of another origin, want one of this service")
	}))
	next = origins.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !s.knownHost(r.Host) {
			writeProblem(w, http.StatusMisdirectedRequest, fmt.Sprintf("the host %q is not a name of this service; call it by address or hostname, or start it with that name as a host", r.Host))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) {
			writeProblem(w, http.StatusForbidden, fmt.Sprintf("the request comes from a page of %q, want one of this service", origin))
			return
		}
		limit := s.reads
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			limit = s.writes
		}
		if wait, ok := limit.allow(remote(r), time.Now()); !ok {
			h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			writeProblem(w, http.StatusTooManyRequests, "too many requests from this address; ask again later")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knownHost reports whether a request is for this service: by IP address, which no foreign name can point to, or by one
// of its names.
func (s *Server) knownHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return s.hosts[strings.ToLower(host)]
}

func sameOrigin(origin, host string) bool {
	_, from, _ := strings.Cut(origin, "://")
	return strings.EqualFold(from, host)
}

// remote returns the address that a request comes from, without the port.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// writeProblem answers with problem details.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	body, err := json.Marshal(huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail})
	if err != nil {
		panic("BUG: serve: problem details cannot be written as JSON: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // who does not read it has gone
}

// route serves a request by mux, with problem details where mux has no answer.
func route(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		answer := &recorded{header: http.Header{}, status: http.StatusOK}
		handler.ServeHTTP(answer, r)
		if answer.status == http.StatusMethodNotAllowed {
			allowed := answer.header.Get("Allow")
			w.Header().Set("Allow", allowed)
			writeProblem(w, answer.status, fmt.Sprintf("%s cannot be asked for with %s, want %s", r.URL.Path, r.Method, allowed))
			return
		}
		writeProblem(w, http.StatusNotFound, fmt.Sprintf("there is nothing at %q; /openapi.json lists what there is", r.URL.Path))
	})
}

type ownerKey struct{}

// requireToken lets operations pass that carry a token.
func (s *Server) requireToken(ctx huma.Context, next func(huma.Context)) {
	fail := func(status int, detail string) {
		s.set.Log.Warn("request refused", "what", ctx.Method()+" "+ctx.Operation().Path, "from", ctx.RemoteAddr(), "reason", detail)
		if err := huma.WriteErr(s.api, ctx, status, detail); err != nil {
			s.set.Log.Debug("answer not written", "reason", err)
		}
	}
	if len(s.tokens) == 0 {
		fail(http.StatusForbidden, "this service was started without a token file, so nobody may change anything")
		return
	}
	r, _ := unwrap(ctx)
	owner, ok := s.tokens.owner(r)
	if !ok {
		ctx.SetHeader("WWW-Authenticate", `Bearer realm="primus"`)
		detail := "the token is wrong"
		if r.Header.Get("Authorization") == "" {
			detail = "no token is given, want the header Authorization: Bearer TOKEN"
		}
		fail(http.StatusUnauthorized, detail)
		return
	}
	next(huma.WithValue(ctx, ownerKey{}, actor{name: owner, from: ctx.RemoteAddr()}))
}

// actor is who changes something.
type actor struct{ name, from string }
