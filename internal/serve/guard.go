package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/primus-fl/primus/internal/httpserver"
)

// contentPolicy lets pages load from this service only, and forbids frames around them.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard refuses requests from pages of other origins, for unknown hosts or beyond the rate limit,
// and sets the headers that every answer has.
func (s *Server) guard(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		httpserver.WriteProblem(w, http.StatusForbidden, "the request comes from a page of another origin, want one of this service")
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
			httpserver.WriteProblem(w, http.StatusMisdirectedRequest, fmt.Sprintf("the host %q is not a name of this service; call it by address or hostname, or start it with that name as a host", r.Host))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) {
			httpserver.WriteProblem(w, http.StatusForbidden, fmt.Sprintf("the request comes from a page of %q, want one of this service", origin))
			return
		}
		owner, known := s.tokens.owner(r)
		if known {
			r = r.WithContext(context.WithValue(r.Context(), ownerKey{}, actor{name: owner, from: r.RemoteAddr}))
		}
		if s.asksModel(r) && (known || len(s.tokens) == 0) {
			next.ServeHTTP(w, r) // which has bounds of its own
			return
		}
		if wait, ok := s.admit(r, owner, known); !ok {
			h.Set("Retry-After", inSeconds(wait))
			httpserver.WriteProblem(w, http.StatusTooManyRequests, "too many requests from this address or with this token; try again later")
			return
		}
		if takeBody(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// admit counts a request against the allowance of its token or, without a token, of its address, so
// that strangers cannot use up the allowance of a token. Probes and scrapes are always admitted:
// monitoring must go on when a client asks too much, and their answers are cheap or shared.
func (s *Server) admit(r *http.Request, owner string, known bool) (wait time.Duration, ok bool) {
	of, client := s.limits, remote(r)
	if known {
		of, client = s.trust, owner
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return of.writes.allow(client, time.Now())
	}
	if unlimited[r.URL.Path] {
		return 0, true
	}
	return of.reads.allow(client, time.Now())
}

// unlimited are the paths of probes and scrapes.
var unlimited = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true}

// inSeconds returns a duration as the value of the header Retry-After.
func inSeconds(wait time.Duration) string { return strconv.Itoa(int(math.Ceil(wait.Seconds()))) }

// takeBody reads the body of a request. A body that is too large, late or malformed is answered
// with an error; one whose announced length is too large is not read at all.
func takeBody(w http.ResponseWriter, r *http.Request) (ok bool) {
	if r.ContentLength == 0 {
		return true
	}
	body, err := []byte(nil), error(&http.MaxBytesError{Limit: maxBody})
	if r.ContentLength <= maxBody {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	}
	if err == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return true
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		httpserver.WriteProblem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes, want at most that many", maxBody))
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		httpserver.WriteProblem(w, http.StatusRequestTimeout, fmt.Sprintf("the body did not come within %s", readTimeout))
	} else {
		httpserver.WriteProblem(w, http.StatusBadRequest, "the body cannot be read: "+err.Error())
	}
	return false
}

// knownHost reports whether a request is for this service: by IP address, which no foreign name can
// point to, or by one of its names.
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
func remote(r *http.Request) string { return hostOf(r.RemoteAddr) }

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
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
			httpserver.WriteProblem(w, answer.status, fmt.Sprintf("%s does not support the method %s, want %s", r.URL.Path, r.Method, allowed))
			return
		}
		httpserver.WriteProblem(w, http.StatusNotFound, fmt.Sprintf("there is nothing at %q; /openapi.json lists the paths", r.URL.Path))
	})
}

type ownerKey struct{}

// actorOf returns the owner of the token of a request, if the token is valid.
func actorOf(ctx context.Context) (who actor, ok bool) {
	who, ok = ctx.Value(ownerKey{}).(actor)
	return who, ok
}

// requireToken refuses requests without a valid token.
func (s *Server) requireToken(ctx huma.Context, next func(huma.Context)) {
	fail := func(status int, detail string, headers ...string) {
		s.set.Log.Warn("request refused", "what", ctx.Method()+" "+ctx.Operation().Path, "from", ctx.RemoteAddr(), "reason", detail)
		s.fail(ctx, status, detail, headers...)
	}
	if len(s.tokens) == 0 {
		fail(http.StatusForbidden, "this service was started without a token file, so it allows no changes")
		return
	}
	if _, ok := actorOf(ctx.Context()); !ok {
		detail := "the token is wrong"
		if ctx.Header("Authorization") == "" {
			detail = "no token is given, want the header Authorization: Bearer TOKEN"
		}
		fail(http.StatusUnauthorized, detail, "WWW-Authenticate", `Bearer realm="primus"`)
		return
	}
	next(ctx)
}

// actor is the one who makes a change.
type actor struct{ name, from string }
