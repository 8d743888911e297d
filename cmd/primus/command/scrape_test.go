package command_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMetricsOfARun(t *testing.T) {
	l := newLab(t)
	stderr := &buffer{}
	root := command.NewRoot(command.Streams{Out: io.Discard, Err: stderr})
	root.SetArgs(l.args("train_iters=1000000", "--metrics-addr", "127.0.0.1:0", "eval_interval=5", "eval_iters=1"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	waitFor(t, stderr, "step 10/")

	url := regexp.MustCompile(`http://\S+/metrics`).FindString(stderr.String())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	for _, want := range []string{
		`primus_op_calls_total\{impl="default.flagos",kind="flagos",op="generic_gemm",vendor=""\} [1-9]`,
		`primus_op_errors_total\{impl="default.flagos",kind="flagos",op="generic_gemm",vendor=""\} 0`,
		`primus_op_declines_total\{`,
		`primus_op_duration_seconds_sum\{impl="default.flagos",kind="flagos",op="swiglu",vendor=""\} \d`,
		`primus_op_duration_seconds_count\{impl="default.flagos",kind="flagos",op="swiglu",vendor=""\} [1-9]`,
		`primus_train_loss \d`, `primus_train_valid_loss \d`, `primus_train_tokens_total [1-9]`, `primus_train_step [1-9]`,
		`primus_train_step_duration_seconds_count [1-9]`, `primus_train_tokens_per_second [1-9]`,
	} {
		assert.Regexp(t, "(?m)^"+want, string(text))
	}
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)

	cancel()
	require.ErrorIs(t, <-ended, backend.ErrInterrupted)
	_, err = client.Get(url)
	assert.Error(t, err, "the server ends with the run")
}
