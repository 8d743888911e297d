package metrics_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/primus-fl/primus/metrics"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func request(t *testing.T, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestServe(t *testing.T) {
	reg := prometheus.NewRegistry()
	train, err := metrics.NewTraining(reg, metrics.TrainingSettings{})
	require.NoError(t, err)
	defer train.Close()
	s, err := metrics.Serve("127.0.0.1:0", reg)
	require.NoError(t, err)
	base := "http://" + s.Addr()

	code, body := request(t, http.MethodGet, base+"/metrics")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "primus_train_tokens_total 0")
	for _, path := range []string{"/", "/metrics/", "/favicon.ico", "/debug/pprof/"} {
		code, _ = request(t, http.MethodGet, base+path)
		assert.Equal(t, http.StatusNotFound, code, path)
	}
	code, _ = request(t, http.MethodPost, base+"/metrics")
	assert.Equal(t, http.StatusMethodNotAllowed, code)

	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, s.Close(t.Context()), "a second Close does nothing")
	_, err = net.Dial("tcp", s.Addr())
	assert.Error(t, err, "nobody listens any more")
}

func TestServeBadAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for name, addr := range map[string]string{
		"no port": "127.0.0.1", "unknown port": "127.0.0.1:metrics", "not of this machine": "192.0.2.1:9400", "taken": taken.Addr().String(),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := metrics.Serve(addr, prometheus.NewRegistry())
			require.ErrorContains(t, err, addr)
			assert.ErrorContains(t, err, "HOST:PORT")
		})
	}
}

// slow is a gatherer that answers when it is let.
type slow struct{ entered, let chan struct{} }

func (s slow) Gather() ([]*dto.MetricFamily, error) {
	close(s.entered)
	<-s.let
	return nil, nil
}

func TestCloseDoesNotWaitLongerThanAsked(t *testing.T) {
	g := slow{entered: make(chan struct{}), let: make(chan struct{})}
	defer close(g.let)
	s, err := metrics.Serve("127.0.0.1:0", g)
	require.NoError(t, err)
	answered := make(chan error, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
		resp, err := client.Get("http://" + s.Addr() + "/metrics")
		if err == nil {
			err = resp.Body.Close()
		}
		answered <- err
	}()
	<-g.entered
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Close(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, s.Close(t.Context()), context.DeadlineExceeded, "a second Close returns the same")
	err = <-answered
	require.Error(t, err, "the request in hand is cut off")
	assert.False(t, os.IsTimeout(err), "at once")
}
