package train_test

import (
	"os"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTrain(t *testing.T) {
	l := commandtest.NewLab(t)
	got := l.Train("eval_interval=4", "eval_iters=1", "save_interval=4")
	require.Zero(t, got.Code, got.Stderr)

	t.Run("results go to standard output", func(t *testing.T) {
		rows := commandtest.RowsOf(got.Out)
		assert.Equal(t, []string{"op", "impl", "kind", "calls", "total", "time", "share", "fallbacks"}, rows["op impl"])
		for _, op := range []string{"generic_gemm", "rmsnorm_fwd", "fused_attn_bwd", "multi_tensor_adam", "cross_entropy_bwd"} {
			assert.Contains(t, rows, op+" default.flagos")
		}
		assert.Regexp(t, `(?m)^run +exp finished$`, got.Out)
		assert.Regexp(t, `(?m)^steps +8 of 8 in `, got.Out)
		assert.Regexp(t, `(?m)^loss +5\.\d{4} at step 1, [345]\.\d{4} at step 8 `, got.Out)
		assert.Regexp(t, `(?m)^validation +\d\.\d{4} over 2048 tokens$`, got.Out)
		assert.Contains(t, got.Out, "directory   "+l.Path()+"\n")
		_, text, ok := strings.Cut(got.Out, "generated text after \"func f")
		assert.True(t, ok)
		assert.GreaterOrEqual(t, len([]rune(text)), 100)
		for line := range strings.Lines(strings.Split(got.Out, "generated text")[0]) {
			assert.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "no spaces at the end")
		}
	})
	t.Run("logs go to standard error", func(t *testing.T) {
		steps := 0
		for line := range strings.Lines(got.Stderr) {
			assert.Regexp(t, `^\d\d:\d\d:\d\d (INFO |WARN ) \S`, line)
			if strings.Contains(line, "  step ") || strings.Contains(line, " step ") && strings.Contains(line, "grad norm") {
				steps++
			}
		}
		assert.Equal(t, 8, steps, "log_interval is 1")
		assert.Contains(t, got.Stderr, "valid ")
		assert.Contains(t, got.Stderr, "saved checkpoint step=4")
		assert.NotContains(t, got.Stderr, "\x1b", "no bar without a terminal")
		assert.NotContains(t, got.Stderr, "█")
	})
	t.Run("the log file has all of it, with the date", func(t *testing.T) {
		log, err := os.ReadFile(l.Path("train.log"))
		require.NoError(t, err)
		assert.Regexp(t, `(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d INFO  OpManager initialized`, string(log))
		assert.Contains(t, string(log), "step 8/8")
	})
	t.Run("a run that is done says so", func(t *testing.T) {
		again := l.Train()
		require.Zero(t, again.Code, again.Stderr)
		assert.Contains(t, again.Stderr, "nothing to train")
		assert.Regexp(t, `(?m)^steps +8, none in this run$`, again.Out)
	})
	t.Run("a run that goes on says from where", func(t *testing.T) {
		on := l.Train("train_iters=10")
		require.Zero(t, on.Code, on.Stderr)
		assert.Regexp(t, `(?m)^steps +10 of 10, the last 2 of them in this run in `, on.Out)
		assert.Regexp(t, `(?m)^loss +5\.\d{4} at step 1, \d\.\d{4} at step 10 `, on.Out)
	})
}

func TestOpLogLevel(t *testing.T) {
	t.Setenv("TEFL_LOG_LEVEL", "ERROR")
	l := commandtest.NewLab(t)
	got := l.Train("train_iters=1")
	require.Zero(t, got.Code)
	assert.NotContains(t, got.Stderr, "OpManager initialized")
	assert.Contains(t, got.Stderr, "step 1/1", "only the lines of ops are fewer")
}

// A summary that cannot be written is an error, although the run itself is safe.
func TestClosedOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full on this system")
	}
	defer full.Close()
	l := commandtest.NewLab(t)
	cmd := commandtest.Child(t.Context(), nil, l.Args("train_iters=1")...)
	stderr := &primustest.Buffer{}
	cmd.Stdout, cmd.Stderr = full, stderr
	assert.Equal(t, 1, commandtest.ExitCode(t, cmd.Run()))
	assert.Contains(t, stderr.String(), "write the summary")
	assert.Len(t, l.Checkpoints(), 1)
}
