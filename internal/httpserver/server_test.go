package httpserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/primus-fl/primus/internal/httpserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// get asks a server and returns the body of its answer.
func get(t *testing.T, s *httpserver.Server) (string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String(), nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func TestStartAndClose(t *testing.T) {
	server := &http.Server{Handler: http.HandlerFunc(hello), WriteTimeout: time.Minute}
	s, err := httpserver.Start("127.0.0.1:0", server, nil)
	require.NoError(t, err)
	body, err := get(t, s)
	require.NoError(t, err)
	assert.Equal(t, "hello", body)
	assert.Equal(t, time.Minute, server.WriteTimeout, "what is given stays")
	assert.Positive(t, min(server.ReadHeaderTimeout, server.ReadTimeout, server.IdleTimeout), "what is missing is filled in")
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, s.Close(t.Context()), "again")
	_, err = get(t, s)
	assert.Error(t, err)
}

func TestBadAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, err = httpserver.Start(taken.Addr().String(), &http.Server{}, nil)
	assert.ErrorContains(t, err, "listen on "+`"`+taken.Addr().String()+`"`)
	assert.ErrorContains(t, err, "give another HOST:PORT")
}

func TestRunEndsWithItsContext(t *testing.T) {
	s, err := httpserver.Start("127.0.0.1:0", &http.Server{Handler: http.HandlerFunc(hello)}, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	_, err = get(t, s)
	require.NoError(t, err)
	cancel()
	require.NoError(t, <-ran)
}

type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, errors.New("no more files") }

func TestFailureToServe(t *testing.T) {
	s, err := httpserver.Start("127.0.0.1:0", &http.Server{}, func(l net.Listener) net.Listener { return broken{l} })
	require.NoError(t, err)
	err = s.Run(t.Context())
	assert.ErrorContains(t, err, "serve on "+s.Addr().String()+": no more files")
}

// A request that takes longer than Close may is cut off.
func TestCloseCutsOff(t *testing.T) {
	begun := make(chan struct{})
	s, err := httpserver.Start("127.0.0.1:0", &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})}, nil)
	require.NoError(t, err)
	asked := make(chan error, 1)
	go func() { _, err := get(t, s); asked <- err }()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, s.Close(ctx), context.Canceled)
	assert.Error(t, <-asked)
}

func TestWriteProblem(t *testing.T) {
	w := httptest.NewRecorder()
	httpserver.WriteProblem(w, http.StatusTeapot, "no \"coffee\"")
	assert.Equal(t, http.StatusTeapot, w.Code)
	assert.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	assert.JSONEq(t, `{"title": "I'm a teapot", "status": 418, "detail": "no \"coffee\""}`, w.Body.String())
}
