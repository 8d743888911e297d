package train_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMetricsStayInAFile(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"finished", []string{"--peak-tflops=0.001"}, []string{
			"primus_train_running{$} 0", "primus_train_step{$} 8", "primus_train_steps{$} 8", "primus_train_nonfinite_total{$} 0",
			"primus_checkpoint_step{$} 8", "primus_checkpoint_saves_total{$} 1", `primus_train_model_info{model="llama_2M.yaml",$} 1`,
			"primus_train_mfu_ratio{$} [0-9.]+",
		}},
		{"not finite", []string{"lr=1e30", "min_lr=1e30", "lr_warmup_iters=0", "clip_grad=0"}, []string{
			"primus_train_running{$} 0", "primus_train_nonfinite_total{$} 1", "primus_train_mfu_ratio{$} NaN",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := commandtest.NewLab(t)
			file := filepath.Join(l.Dir, "run.prom")
			l.Train(append(tt.args, "--metrics-textfile", file)...)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, want := range tt.want {
				want = strings.NewReplacer("{", `\{`, "}", `\}`, "$", `rank="0",run="exp"`).Replace(want)
				assert.True(t, regexp.MustCompile("(?m)^"+want+"$").Match(text), "no line %s", want)
			}
			assert.NotContains(t, string(text), "go_goroutines")
		})
	}
}

func TestMetricsOfARun(t *testing.T) {
	l := commandtest.NewLab(t)
	run := commandtest.Start(t, l.Args("train_iters=1000000", "--metrics-addr", "127.0.0.1:0", "--linger", "0s", "eval_interval=5", "eval_iters=1")...)
	stderr := run.Stderr
	run.WaitFor("step 10/")

	url := regexp.MustCompile(`http://\S+/metrics`).FindString(stderr.String())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	for _, want := range []string{
		`primus_op_calls_total\{impl="default.flagos",kind="flagos",op="generic_gemm",rank="0",run="exp",vendor=""\} [1-9]`,
		`primus_op_errors_total\{impl="default.flagos",kind="flagos",op="generic_gemm",rank="0",run="exp",vendor=""\} 0`,
		`primus_op_declines_total\{`,
		`primus_op_seconds_total\{impl="default.flagos",kind="flagos",op="swiglu",rank="0",run="exp",vendor=""\} \d`,
		`primus_op_duration_seconds_count\{impl="default.flagos",kind="flagos",op="swiglu",rank="0",run="exp",vendor=""\} [1-9]`,
		`primus_plugin_info\{plugin="flagos",rank="0",run="exp",state="compiled_in",usable="true",version="[^"]*"\} 1`,
		`primus_build_info\{goversion="go1\.`, `go_goroutines\{`, `process_resident_memory_bytes\{`,
		`primus_train_loss\{rank="0",run="exp"\} \d`, `primus_train_valid_loss\{rank="0",run="exp"\} \d`, `primus_train_tokens_total\{rank="0",run="exp"\} [1-9]`, `primus_train_step\{rank="0",run="exp"\} [1-9]`,
		`primus_train_step_duration_seconds_count\{rank="0",run="exp"\} [1-9]`, `primus_train_tokens_per_second\{rank="0",run="exp"\} [1-9]`,
	} {
		assert.Regexp(t, "(?m)^"+want, string(text))
	}
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)

	require.ErrorIs(t, run.Stop(), backend.ErrInterrupted)
	_, err = client.Get(url)
	assert.Error(t, err, "the server ends with the run")
}
