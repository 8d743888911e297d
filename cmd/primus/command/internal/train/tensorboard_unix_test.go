//go:build unix

package train_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnotherReaderOfEventFiles reads event files with a program that shares no code with their
// writer: that of a run which was killed in the middle of a record, and that of the session which
// went on.
func TestAnotherReaderOfEventFiles(t *testing.T) {
	t.Parallel()
	commandtest.Tools(t, "python3")
	l := commandtest.NewLab(t)
	args := func(steps int) []string {
		return []string{
			"train_iters=" + strconv.Itoa(steps), "disable_tensorboard=false", "lr_decay_iters=1000", "save_interval=5",
			"eval_interval=4", "eval_iters=1",
		}
	}
	run := l.Start([]string{"PRIMUS_OPENBLAS=" + commandtest.Absent, "PRIMUS_ONEDNN=" + commandtest.Absent}, args(1000000)...)
	run.WaitFor("step 12/")
	require.NoError(t, run.Process.Kill())
	require.Equal(t, -1, commandtest.ExitCode(t, run.Wait()))
	files, err := filepath.Glob(l.Path("tensorboard", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.NoError(t, os.Truncate(files[0], info.Size()-7))

	saved := l.Checkpoints()
	require.NotEmpty(t, saved)
	last := stepOf(t, saved[len(saved)-1]) + 6
	got := l.Train(args(last)...)
	require.Zero(t, got.Code, got.Stderr)
	out, err := exec.CommandContext(t.Context(), "python3", filepath.Join("testdata", "read_events.py"), l.Path("tensorboard")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	var read struct {
		Shown map[string][][2]float64
		Torn  []int
	}
	require.NoError(t, json.Unmarshal(out, &read))
	require.Len(t, read.Torn, 2)
	assert.Positive(t, read.Torn[0], "bytes of the record that was cut")
	assert.Zero(t, read.Torn[1])

	want := map[string][][2]float64{}
	records := l.Records()
	require.Len(t, records, last)
	for _, r := range records {
		step := float64(r.Step)
		add := func(tag string, v float64) { want[tag] = append(want[tag], [2]float64{step, float64(float32(v))}) }
		add("train/loss", r.Loss)
		add("train/learning_rate", r.LR)
		add("train/grad_norm", r.GradNorm)
		if r.ValidLoss != nil {
			add("valid/loss", *r.ValidLoss)
		}
	}
	for _, tag := range []string{"train/tokens_per_second", "train/step_seconds"} {
		require.Len(t, read.Shown[tag], last, tag)
		delete(read.Shown, tag)
	}
	assert.Equal(t, want, read.Shown, "every step once, as in metrics.jsonl")
}
