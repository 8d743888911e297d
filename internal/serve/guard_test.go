package serve_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestForeignHostsAndOrigins(t *testing.T) {
	b := newBench(t, func(cfg *serve.Config, _ *serve.Settings) { cfg.Hosts = []string{"Trainer.example"} })
	own := b.server.URL()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(own, "http://"))
	require.NoError(t, err)
	tests := []struct {
		name    string
		headers []string
		status  int
	}{
		{"own address", nil, 200},
		{"localhost", []string{"Host: localhost:" + port}, 200},
		{"IPv6", []string{"Host: [::1]:" + port}, 200},
		{"a name it was given", []string{"Host: trainer.example"}, 200},
		{"in other letters", []string{"Host: TRAINER.Example:" + port}, 200},
		{"a name that was pointed here", []string{"Host: evil.example:" + port}, 421},
		{"an address that is none", []string{"Host: 127.0.0.1.evil.example"}, 421},
		{"own page", []string{"Origin: " + own}, 200},
		{"another page", []string{"Origin: http://evil.example"}, 403},
		{"another port", []string{"Origin: http://127.0.0.1:1"}, 403},
		{"a page without origin", []string{"Origin: null"}, 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := b.ask(http.MethodGet, "/v1/policy", "", tt.headers...)
			assert.Equal(t, tt.status, got.status, got.body)
			assert.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
		})
	}
	got := b.ask(http.MethodDelete, "/v1/quarantine", "", bearer, "Sec-Fetch-Site: cross-site")
	assert.Equal(t, http.StatusForbidden, got.status, "a form of another page, even with the token")
	for _, path := range []string{"/", "/v1/policy", "/nothing", "/metrics"} {
		h := b.ask(http.MethodGet, path, "").header
		assert.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'", path)
		assert.NotContains(t, h.Get("Content-Security-Policy"), "unsafe", path)
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
	}
}

func TestNobodyMayChangeAnythingWithoutTokens(t *testing.T) {
	b := newBench(t, func(cfg *serve.Config, _ *serve.Settings) { cfg.TokenFile = "" })
	for _, auth := range []string{bearer, "Authorization: Bearer ", "Authorization: "} {
		got := b.ask(http.MethodDelete, "/v1/quarantine", "", auth)
		assert.Equal(t, http.StatusForbidden, got.status)
		assert.Contains(t, got.problem(t).Detail, "without a token file")
	}
}

// A body that will not do is refused as soon as that is known.
func TestBodies(t *testing.T) {
	b := newBench(t, nil)
	put := "PUT /v1/policy?expected_generation=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n" + bearer + "\r\n" + asYAML + "\r\nConnection: close\r\n"
	for _, tt := range []struct{ name, request, want string }{
		{"says that it is huge", put + "Content-Length: 1099511627776\r\n\r\n#", "413 Request Entity Too Large"},
		{"is huge", put + "Transfer-Encoding: chunked\r\n\r\n10001\r\n" + strings.Repeat("#", 1<<16+1), "413 Request Entity Too Large"},
		{"malformed", put + "Transfer-Encoding: chunked\r\n\r\nzz\r\n#", "400 Bad Request"},
		{"whole", put + "Transfer-Encoding: chunked\r\n\r\n9\r\nstrict: 1\r\n0\r\n\r\n", "409 Conflict"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(b.server.URL(), "http://"))
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
			_, err = io.WriteString(conn, tt.request)
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			defer resp.Body.Close()
			assert.Equal(t, tt.want, resp.Status)
			assert.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
		})
	}
}

// Whoever opens many connections keeps nobody else out, and is let in again when they are closed.
func TestConnectionsAreLimited(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	limited := serve.NewLimitListener(inner, 5, 3)
	t.Cleanup(func() { _ = limited.Close() })
	one, other := net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)
	dial := func(from net.IP) net.Conn {
		t.Helper()
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).Dial("tcp", inner.Addr().String())
		if err != nil && from.Equal(other) {
			t.Skip("this machine has one loopback address")
		}
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	accept := func(from net.IP) net.Conn {
		t.Helper()
		conn, err := limited.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		assert.True(t, from.Equal(conn.RemoteAddr().(*net.TCPAddr).IP), "from %v", conn.RemoteAddr())
		return conn
	}
	var held []net.Conn
	for range 3 {
		dial(one)
		held = append(held, accept(one))
	}
	tooMany := []net.Conn{dial(one), dial(one)}
	dial(other)
	accept(other)
	for _, conn := range tooMany {
		_, err := conn.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF)
	}
	require.NoError(t, held[0].Close())
	assert.ErrorIs(t, held[0].Close(), net.ErrClosed, "which frees one place, not two")
	dial(one)
	accept(one)
	dial(other)
	accept(other)

	// As many are open as may be: whoever comes now waits until one is closed, or all is over.
	dial(other)
	var closed atomic.Bool
	waited := make(chan bool)
	go func() {
		_ = accept(other)
		waited <- closed.Load()
	}()
	closed.Store(true)
	require.NoError(t, held[1].Close())
	assert.True(t, <-waited)
	ended := make(chan error)
	go func() {
		_, err := limited.Accept()
		ended <- err
	}()
	require.NoError(t, limited.Close())
	assert.ErrorIs(t, <-ended, net.ErrClosed)
}

// What proposals cost is up to those who make them, so strangers have a common limit.
func TestProposalsOfStrangersAreLimited(t *testing.T) {
	dear := strings.Builder{}
	dear.WriteString("per_op:\n")
	for i := range 3500 {
		fmt.Fprintf(&dear, "  op%d: flagos\n", i)
	}
	asked := map[string]int{}
	for name, document := range map[string]string{"cheap": "strict: true", "dear": dear.String()} {
		b := newBench(t, nil)
		propose := func(headers ...string) reply {
			return b.ask(http.MethodPost, "/v1/policy/proposal", document, append(headers, asYAML)...)
		}
		got := propose()
		for ; got.status == http.StatusOK; got = propose() {
			asked[name]++
		}
		assert.Equal(t, http.StatusTooManyRequests, got.status)
		assert.NotEmpty(t, got.header.Get("Retry-After"))
		assert.Contains(t, got.problem(t).Detail, "with a token")
		assert.Equal(t, http.StatusOK, propose(bearer).status)
	}
	assert.Greater(t, asked["cheap"], asked["dear"], "they count by the time that they take")
	assert.Less(t, asked["dear"], 10)
}

func TestRequestsAreLimited(t *testing.T) {
	b := newBench(t, nil)
	statuses := map[int]int{}
	for range 40 {
		got := b.ask(http.MethodDelete, "/v1/quarantine", "")
		statuses[got.status]++
		if got.status == http.StatusTooManyRequests {
			assert.Equal(t, "1", got.header.Get("Retry-After"))
			got.problem(t)
		}
	}
	assert.GreaterOrEqual(t, statuses[http.StatusUnauthorized], 20)
	assert.Positive(t, statuses[http.StatusTooManyRequests], "%v", statuses)
	assert.Equal(t, http.StatusOK, b.ask(http.MethodGet, "/v1/policy", "").status, "reading goes on")
}

// Strangers who ask as fast as they can lock nobody out: neither those who carry a token, nor
// probes and scrapes, from the same address.
func TestFlood(t *testing.T) {
	b := newBench(t, nil)
	var refused atomic.Int64
	var strangers sync.WaitGroup
	stop := make(chan struct{})
	for _, request := range [][]string{
		{http.MethodGet, "/v1/policy"}, {http.MethodGet, "/v1/impls"}, {http.MethodPut, "/v1/policy?expected_generation=1"},
		{http.MethodDelete, "/v1/quarantine"}, {http.MethodDelete, "/v1/quarantine", "Authorization: Bearer wrong-horse-battery"}, {http.MethodPost, "/v1/policy/proposal"},
	} {
		strangers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if b.ask(request[0], request[1], "strict: true", append(request[2:], asYAML)...).status == http.StatusTooManyRequests {
					refused.Add(1)
				}
			}
		})
	}
	require.Eventually(t, func() bool { return refused.Load() > 50 }, 2*time.Minute, time.Millisecond)
	for i := range 40 {
		generation := b.manager.Generation()
		got := b.ask(http.MethodPut, fmt.Sprintf("/v1/policy?expected_generation=%d", generation), fmt.Sprintf("strict: %t", i%2 == 0), bearer, asYAML)
		assert.Equal(t, http.StatusOK, got.status, got.body)
		for _, path := range []string{"/healthz", "/metrics"} {
			assert.Equal(t, http.StatusOK, b.ask(http.MethodGet, path, "").status, path)
		}
		assert.Equal(t, http.StatusServiceUnavailable, b.ask(http.MethodGet, "/readyz", "").status, "no run has begun")
		assert.Equal(t, http.StatusOK, b.ask(http.MethodGet, "/v1/policy", "", bearer).status)
	}
	before := refused.Load()
	require.Eventually(t, func() bool { return refused.Load() > before }, 2*time.Minute, time.Millisecond, "the flood went on")
	close(stop)
	strangers.Wait()
}

// Those who carry a token have a limit, too, each of their own.
func TestTokensAreLimited(t *testing.T) {
	b := newBench(t, nil)
	statuses := map[int]int{}
	require.Eventually(t, func() bool {
		statuses[b.ask(http.MethodDelete, "/v1/quarantine", "", bearer).status]++
		return statuses[http.StatusTooManyRequests] > 0
	}, time.Minute, time.Microsecond)
	assert.GreaterOrEqual(t, statuses[http.StatusOK], 100)
	assert.Equal(t, http.StatusUnauthorized, b.ask(http.MethodDelete, "/v1/quarantine", "").status, "others have an allowance of their own")
}

func TestConfig(t *testing.T) {
	tests := []struct {
		name string
		give serve.Config
		want string // "" is fine
	}{
		{"loopback", serve.Config{Addr: "127.0.0.1:0"}, ""},
		{"another loopback", serve.Config{Addr: "127.8.9.1:0"}, ""},
		{"IPv6 loopback", serve.Config{Addr: "[::1]:0"}, ""},
		{"localhost", serve.Config{Addr: "localhost:0"}, ""},
		{"everywhere", serve.Config{Addr: ":9400"}, "without TLS"},
		{"all of IPv4", serve.Config{Addr: "0.0.0.0:9400"}, "without TLS"},
		{"a name", serve.Config{Addr: "trainer:9400"}, "without TLS"},
		{"everywhere, insecure", serve.Config{Addr: ":9400", Insecure: true}, ""},
		{"everywhere with TLS", serve.Config{Addr: ":9400", CertFile: "c", KeyFile: "k"}, ""},
		{"half of TLS", serve.Config{Addr: ":9400", CertFile: "c"}, "both files or neither"},
		{"no port", serve.Config{Addr: "127.0.0.1"}, "want HOST:PORT"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.give.Check()
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestTokens(t *testing.T) {
	tests := []struct{ name, give, want string }{
		{"one", secret, ""},
		{"names and comments", "# team\nalice " + secret + "\n\n  bob\t" + secret + "2\r\n" + secret + "3", ""},
		{"none", "\n# nobody\n", "given no token"},
		{"short", "alice hunter2", "t:1: given a token of 7 bytes"},
		{"words", "one two three", "t:1: given 3 words"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tokens, err := serve.ParseTokens("t", tt.give)
			if tt.want == "" {
				require.NoError(t, err)
				assert.NotEmpty(t, tokens)
				return
			}
			require.ErrorContains(t, err, tt.want)
			for _, word := range strings.Fields(tt.give)[1:] {
				assert.NotContains(t, err.Error(), word, "what may be a secret is not repeated")
			}
		})
	}
	_, err := serve.ReadTokens(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	open := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.WriteFile(open, []byte(secret), 0o600))
	require.NoError(t, os.Chmod(open, 0o604))
	_, err = serve.ReadTokens(open)
	if goruntime.GOOS != "windows" {
		require.ErrorContains(t, err, "other users can read")
		assert.ErrorContains(t, err, "chmod 600 "+open)
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("alice " + secret + "\n#\n\n" + secret)
	f.Fuzz(func(t *testing.T, text string) {
		defer primustest.Measured(t, len(text))()
		if tokens, err := serve.ParseTokens("t", text); (err == nil) != (len(tokens) > 0) {
			t.Errorf("got %d tokens and %v", len(tokens), err)
		}
	})
}

func TestTLS(t *testing.T) {
	authority := primustest.NewAuthority(t)
	cert, key := authority.Sign("service")
	b := newBench(t, func(cfg *serve.Config, _ *serve.Settings) { cfg.CertFile, cfg.KeyFile = cert, key })
	b.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: authority.Pool}}}
	require.True(t, strings.HasPrefix(b.server.URL(), "https://"))
	assert.Equal(t, http.StatusOK, b.ask(http.MethodGet, "/healthz", "").status)
	_, err := serve.New(serve.Config{Addr: "127.0.0.1:0", CertFile: key, KeyFile: cert}, serve.Settings{Log: slog.New(slog.DiscardHandler)})
	assert.ErrorContains(t, err, "want both in PEM")
}

func TestPprofWhenAskedFor(t *testing.T) {
	b := newBench(t, func(cfg *serve.Config, _ *serve.Settings) { cfg.Pprof = true })
	assert.Equal(t, http.StatusOK, b.ask(http.MethodGet, "/debug/pprof/heap?debug=1", "").status)
	assert.NotEqual(t, http.StatusOK, b.ask(http.MethodGet, "/debug/pprof/cmdline", "").status, "arguments may name what is nobody's business")
}

// A client that never finishes its request is cut off, and another one is served meanwhile.
func TestSlowRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a timeout")
	}
	t.Parallel()
	b := newBench(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.server.URL(), "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HT"))
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, b.ask(http.MethodGet, "/healthz", "").status)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.ReadAll(conn)
	assert.NoError(t, err, "the service ended it first")
}
