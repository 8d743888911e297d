package command_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/runs"
	"github.com/primus-fl/primus/serve"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serving is a command line that serves until it is stopped.
type serving struct {
	t      *testing.T
	base   string
	stderr *primustest.Buffer
	cancel context.CancelFunc
	ended  chan error
}

func startServing(t *testing.T, args ...string) *serving {
	t.Helper()
	s := &serving{t: t, stderr: &primustest.Buffer{}, ended: make(chan error, 1)}
	root := command.NewRoot(command.Streams{Out: io.Discard, Err: s.stderr})
	root.SetArgs(args)
	ctx, cancel := context.WithCancel(t.Context())
	s.cancel = cancel
	t.Cleanup(cancel)
	go func() { s.ended <- root.ExecuteContext(ctx) }()
	s.waitForAddress()
	return s
}

// waitForAddress returns when the service says where it is.
func (s *serving) waitForAddress() {
	s.t.Helper()
	waitFor(s.t, s.stderr, "service on ")
	s.base = regexp.MustCompile(`service on (\S+)/`).FindStringSubmatch(s.stderr.String())[1]
}

func (s *serving) ask(method, path, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer 0123456789abcdef")
	req.Header.Set("Content-Type", "application/yaml")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(text)
}

func tokenFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("alice 0123456789abcdef\n"), 0o600))
	return file
}

// The policy of a run is changed by request, and the file below it is still followed.
func TestServiceOfARun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	file := l.policy("deny_vendors: [acme]\n")
	s := startServing(t, l.args("train_iters=1000000", "log_interval=100000", "--policy", file, "--serve", "127.0.0.1:0", "--serve-token-file", tokenFile(t), "--linger", "0s")...)
	waitFor(t, s.stderr, "Op 'multi_tensor_adam' using 'default.flagos'")

	var all []runs.Run
	_, text := s.ask(http.MethodGet, "/v1/runs", "")
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	require.Len(t, all, 1)
	assert.Equal(t, "exp running", all[0].Name+" "+string(all[0].State))
	code, _ := s.ask(http.MethodGet, "/readyz", "")
	assert.Equal(t, http.StatusOK, code)
	_, text = s.ask(http.MethodGet, "/metrics", "")
	assert.Contains(t, text, "primus_train_step ")

	var state serve.State
	_, text = s.ask(http.MethodGet, "/v1/policy", "")
	require.NoError(t, json.Unmarshal([]byte(text), &state))
	code, text = s.ask(http.MethodPut, "/v1/policy?expected_generation="+strconv.FormatUint(state.Generation, 10), "per_op: {swiglu: reference}")
	require.Equal(t, http.StatusOK, code, text)
	waitFor(t, s.stderr, "Op 'swiglu' switched from 'default.flagos' to 'reference.go'")
	assert.Contains(t, s.stderr.String(), "apply policy by=alice")

	l.write(file, "deny_vendors: [acme, other]\n")
	waitFor(t, s.stderr, "policy file is in force")
	_, text = s.ask(http.MethodGet, "/v1/policy", "")
	require.NoError(t, json.Unmarshal([]byte(text), &state))
	assert.Equal(t, []string{"acme", "other"}, state.Policy.Deny)
	assert.Equal(t, []string{"reference"}, state.Policy.PerOp["swiglu"], "the document of the service stays on top")
	s.cancel()
	require.ErrorIs(t, <-s.ended, backend.ErrInterrupted)
}

// The service answers as the command line does.
func TestServeAnswersAsTheCommandLine(t *testing.T) {
	s := startServing(t, "serve", "--listen", "127.0.0.1:0", "--prefer", "vendor", "--deny-vendors", "onednn")
	for path, args := range map[string][]string{
		"/v1/ops/generic_gemm/explain":                                    {"ops", "explain", "generic_gemm"},
		"/v1/ops/rmsnorm_fwd/explain?dtype=bf16&shape=8,16&phase=forward": {"ops", "explain", "rmsnorm_fwd", "--dtype", "bf16", "--shape", "8,16", "--phase", "forward"},
		"/v1/explain":  {"ops", "explain"},
		"/v1/backends": {"backends", "list"},
	} {
		t.Run(path, func(t *testing.T) {
			if args[0] == "ops" {
				args = append(args, "--prefer", "vendor", "--deny-vendors", "onednn")
			}
			want := primus(t, append(args, "-o", "json")...)
			require.Zero(t, want.code, want.stderr)
			code, got := s.ask(http.MethodGet, path, "")
			require.Equal(t, http.StatusOK, code, got)
			generation := regexp.MustCompile(`"generation": ?\d+,`)
			assert.JSONEq(t, generation.ReplaceAllString(want.out, ""), generation.ReplaceAllString(got, ""))
		})
	}
	code, _ := s.ask(http.MethodGet, "/readyz", "")
	assert.Equal(t, http.StatusOK, code)
	s.cancel()
	require.NoError(t, <-s.ended)
}

func TestServeMistakes(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"address", []string{"serve", "--listen", "nine"}, "want HOST:PORT"},
		{"open", []string{"serve", "--listen", ":0"}, "without TLS"},
		{"train, open", []string{"train", "--config", "x.yaml", "--serve", "0.0.0.0:0"}, "--serve: "},
		{"no value", []string{"serve", "--token-file"}, "a file with one token a line"},
		{"fleet", []string{"serve", "--fleet", "etcd"}, "want HOST:PORT"},
		{"argument", []string{"serve", "now"}, "unexpected argument"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := primus(t, tt.args...)
			assert.Equal(t, 2, got.code, got.stderr)
			assert.Contains(t, onlyError(t, got), tt.want)
		})
	}
	got := primus(t, "serve", "--listen", "127.0.0.1:0", "--token-file", "/nonexistent")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "want a file with one token a line")
}

// Somebody with a token saves a run now and stops it later; the next start goes on from there.
func TestServiceSavesAndStopsARun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := startServing(t, l.args("train_iters=1000000", "save_interval=0", "log_interval=100000", "--serve", "127.0.0.1:0", "--serve-token-file", tokenFile(t), "--linger", "0s")...)
	waitFor(t, s.stderr, "Op 'multi_tensor_adam' using")
	code, text := s.ask(http.MethodPost, "/v1/runs/exp/save", "")
	require.Equal(t, http.StatusAccepted, code, text)
	waitFor(t, s.stderr, "saved checkpoint")
	_, text = s.ask(http.MethodGet, "/v1/runs", "")
	var all []runs.Run
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	require.Len(t, all, 1)
	assert.Positive(t, all[0].CheckpointStep)
	assert.Equal(t, l.path(), all[0].Dir)
	_, text = s.ask(http.MethodGet, "/v1/runs/exp/log?lines=1000", "")
	assert.Contains(t, text, "saved checkpoint")
	assert.Contains(t, text, "save run by=alice")

	code, text = s.ask(http.MethodPost, "/v1/runs/exp/stop", "")
	require.Equal(t, http.StatusAccepted, code, text)
	err := <-s.ended
	require.ErrorIs(t, err, backend.ErrInterrupted)
	require.ErrorContains(t, err, "interrupted by alice over the service at step ")
	again := l.train("train_iters=" + strings.Fields(strings.SplitAfter(err.Error(), "at step ")[1])[0])
	require.Zero(t, again.code, again.stderr)
	assert.Contains(t, again.stderr, "nothing to train")
}
