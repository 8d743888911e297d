package serve_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The policy of a run is changed by request, and the file below it is still followed.
func TestServiceOfARun(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	file := l.Policy("deny_vendors: [acme]\n")
	s := commandtest.StartServing(t, l.Args("train_iters=1000000", "log_interval=100000", "--policy", file, "--serve", "127.0.0.1:0", "--serve-token-file", commandtest.TokenFile(t), "--linger", "0s")...)
	s.WaitFor("Op 'multi_tensor_adam' using 'default.flagos'")

	var all []runs.Run
	_, text := s.Ask(http.MethodGet, "/v1/runs", "")
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	require.Len(t, all, 1)
	assert.Equal(t, "exp running", all[0].Name+" "+string(all[0].State))
	code, _ := s.Ask(http.MethodGet, "/readyz", "")
	assert.Equal(t, http.StatusOK, code)
	_, text = s.Ask(http.MethodGet, "/metrics", "")
	assert.Contains(t, text, "primus_train_step ")

	var state serve.State
	_, text = s.Ask(http.MethodGet, "/v1/policy", "")
	require.NoError(t, json.Unmarshal([]byte(text), &state))
	code, text = s.Ask(http.MethodPut, "/v1/policy?expected_generation="+strconv.FormatUint(state.Generation, 10), "per_op: {swiglu: reference}")
	require.Equal(t, http.StatusOK, code, text)
	s.WaitFor("Op 'swiglu' switched from 'default.flagos' to 'reference.go'")
	assert.Contains(t, s.Stderr.String(), "apply policy by=alice")

	l.Write(file, "deny_vendors: [acme, other]\n")
	s.WaitFor("policy file is in force")
	_, text = s.Ask(http.MethodGet, "/v1/policy", "")
	require.NoError(t, json.Unmarshal([]byte(text), &state))
	assert.Equal(t, []string{"acme", "other"}, state.Policy.Deny)
	assert.Equal(t, []string{"reference"}, state.Policy.PerOp["swiglu"], "the document of the service stays on top")
	require.ErrorIs(t, s.Stop(), backend.ErrInterrupted)
}

// The service answers as the command line does.
func TestServeAnswersAsTheCommandLine(t *testing.T) {
	s := commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0", "--prefer", "vendor", "--deny-vendors", "onednn")
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
			want := commandtest.Run(t, append(args, "-o", "json")...)
			require.Zero(t, want.Code, want.Stderr)
			code, got := s.Ask(http.MethodGet, path, "")
			require.Equal(t, http.StatusOK, code, got)
			generation := regexp.MustCompile(`"generation": ?\d+,`)
			assert.JSONEq(t, generation.ReplaceAllString(want.Out, ""), generation.ReplaceAllString(got, ""))
		})
	}
	code, _ := s.Ask(http.MethodGet, "/readyz", "")
	assert.Equal(t, http.StatusOK, code)
	require.NoError(t, s.Stop())
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
		{"no value", []string{"serve", "--token-file"}, "a file with one token per line"},
		{"fleet", []string{"serve", "--fleet", "etcd"}, "want HOST:PORT"},
		{"argument", []string{"serve", "now"}, "unexpected argument"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := commandtest.Run(t, tt.args...)
			assert.Equal(t, 2, got.Code, got.Stderr)
			assert.Contains(t, commandtest.OnlyError(t, got), tt.want)
		})
	}
	got := commandtest.Run(t, "serve", "--listen", "127.0.0.1:0", "--token-file", "/nonexistent")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "want a file with one token per line")
}

// Somebody with a token saves a run now and stops it later; the next start goes on from there.
func TestServiceSavesAndStopsARun(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	s := commandtest.StartServing(t, l.Args("train_iters=1000000", "save_interval=0", "log_interval=100000", "--serve", "127.0.0.1:0", "--serve-token-file", commandtest.TokenFile(t), "--linger", "0s")...)
	s.WaitFor("Op 'multi_tensor_adam' using")
	code, text := s.Ask(http.MethodPost, "/v1/runs/exp/save", "")
	require.Equal(t, http.StatusAccepted, code, text)
	s.WaitFor("saved checkpoint")
	var all []runs.Run
	require.Eventually(t, func() bool { // the log comes first
		_, text = s.Ask(http.MethodGet, "/v1/runs", "")
		all = nil
		return json.Unmarshal([]byte(text), &all) == nil && len(all) == 1 && all[0].CheckpointStep > 0
	}, 2*time.Minute, 10*time.Millisecond)
	assert.Equal(t, l.Path(), all[0].Dir)
	_, text = s.Ask(http.MethodGet, "/v1/runs/exp/log?lines=1000", "")
	assert.Contains(t, text, "saved checkpoint")
	assert.Contains(t, text, "save run by=alice")

	code, text = s.Ask(http.MethodPost, "/v1/runs/exp/stop", "")
	require.Equal(t, http.StatusAccepted, code, text)
	err := s.Wait()
	require.ErrorIs(t, err, backend.ErrInterrupted)
	require.ErrorContains(t, err, "interrupted by alice over the service at step ")
	again := l.Train("train_iters=" + strings.Fields(strings.SplitAfter(err.Error(), "at step ")[1])[0])
	require.Zero(t, again.Code, again.Stderr)
	assert.Contains(t, again.Stderr, "nothing to train")
}

// The service answers before the start of the program has ended, so it may be stopped until then.
func TestServeIsStoppedWhileItStarts(t *testing.T) {
	assert.NoError(t, commandtest.Start(t, "serve", "--listen", "127.0.0.1:0").Stop())
}
