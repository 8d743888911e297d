package native_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native/rundir"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree returns the content of every file below a directory, except the log and the lock.
func (l *lab) tree(dir string) map[string]string {
	l.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "train.log" || d.Name() == ".lock" {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	require.NoError(l.t, err)
	return files
}

// interruptAt trains until a step and interrupts there.
func (l *lab) interruptAt(name string, step int, overrides ...string) error {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	l.observer = onStep{do: func(s backend.Step) {
		if s.Step == step {
			cancel()
		}
	}}
	defer func() { l.observer = backend.Observers{} }()
	return l.train(ctx, name, overrides...)
}

// Starting over, again and again, and from other weights keeps everything that was trained before.
func TestEarlierRunsAreKept(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "run", "train_iters=5", "disable_tensorboard=false"))
	first := l.tree(l.path("run"))
	require.Contains(t, first, "/checkpoints/step-00000005/model.safetensors")
	require.Contains(t, first, "/loss.png")

	require.NoError(t, l.train(t.Context(), "run", "train_iters=6", "load=none", "seed=9"))
	assert.Contains(t, l.log.String(), "kept in "+l.path("run", rundir.PreviousName, "1"))
	assert.Equal(t, first, l.tree(l.path("run", rundir.PreviousName, "1")))
	second := l.tree(l.path("run"))
	require.NoError(t, l.train(t.Context(), "run", "train_iters=7", "load=none"))
	assert.Equal(t, first, l.tree(l.path("run", rundir.PreviousName, "1")))
	for name, text := range l.tree(l.path("run", rundir.PreviousName, "2")) {
		assert.True(t, second[name] == text, name)
	}

	require.NoError(t, l.train(t.Context(), "run", "train_iters=8", "load="+l.path("run", rundir.PreviousName, "1", "checkpoints")))
	assert.DirExists(t, l.path("run", rundir.PreviousName, "3", "checkpoints", "step-00000007"))
	assert.Equal(t, 6, l.metrics("run")[0].Step, "the losses of the run that was loaded are in its own directory")
}

// A run that ended before its first checkpoint has left losses.
func TestLossesWithoutCheckpointsAreKept(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "run", "train_iters=5"))
	losses := l.metrics("run")
	require.NoError(t, os.RemoveAll(l.path("run", "checkpoints")))
	require.NoError(t, l.train(t.Context(), "run", "train_iters=2"))
	assert.Len(t, l.metrics("run"), 2)
	assert.Equal(t, losses, l.metrics(filepath.Join("run", rundir.PreviousName, "1")))
}

// What cannot be trained leaves the directory as it is.
func TestAnotherRunInTheDirectory(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "run", "train_iters=5"))
	before := l.tree(l.path("run"))
	other := filepath.Join(l.dir, "other.txt")
	require.NoError(t, os.WriteFile(other, []byte(strings.Repeat("to be or not to be, ", 500)), 0o644))
	tests := []struct {
		name string
		give []string
		want []string
	}{
		{"corpus", []string{"train_data_path=" + other}, []string{"step-00000005 was trained on other data", "exp_name=NAME", "load=none", "load=" + l.path("run", "checkpoints")}},
		{"seed", []string{"seed=9"}, []string{"was trained with seed 1234, and this run's is 9", "exp_name=NAME"}},
		{"model", []string{"hidden_size=64"}, []string{"has another model", "hidden_size", "exp_name=NAME"}},
		{"fewer steps", []string{"train_iters=3"}, []string{"train_iters: got 3", "at step 5 already", "exp_name=NAME"}},
		{"starting over on nothing", []string{"load=none", "train_data_path=/nonexistent"}, []string{"/nonexistent"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := l.train(t.Context(), "run", append([]string{"train_iters=8"}, tt.give...)...)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
			assert.Equal(t, before, l.tree(l.path("run")))
		})
	}
	t.Run("load trains further on other data", func(t *testing.T) {
		require.NoError(t, l.train(t.Context(), "run", "train_iters=8", "train_data_path="+other, "load="+l.path("run", "checkpoints")))
		assert.Contains(t, l.log.String(), "batches begin anew")
		assert.Len(t, l.metrics("run"), 8)
	})
}

// A finished run that is started again changes nothing and says what can be done.
func TestFinishedRun(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "run", "train_iters=5"))
	before := l.tree(l.path("run"))
	require.NoError(t, l.train(t.Context(), "run", "train_iters=5"))
	assert.Equal(t, before, l.tree(l.path("run")))
	assert.Contains(t, l.log.String(), "this run is finished at step 5")
}

// What an interrupted run says about the next command is what that command does.
func TestTheNextCommand(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "weights", "train_iters=3"))
	weights := "load=" + l.path("weights", "checkpoints")
	tests := []struct {
		name      string
		give      string
		want      string
		next      string
		continues bool
	}{
		{"nothing", "seed=1234", "the same command goes on from there", "seed=1234", true},
		{"none", "load=none", "the same command without load=none goes on from there", "seed=1234", true},
		{"none again", "load=none", "without load=none", "load=none", false},
		{"other", weights, "the same command without " + weights + " goes on from there", "load=null", true},
		{"its own", "load=" + l.path("its own", "checkpoints"), "the same command goes on from there", "load=" + l.path("its own", "checkpoints"), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "its own" {
				require.NoError(t, l.train(t.Context(), tt.name, "train_iters=2"))
			}
			err := l.interruptAt(tt.name, 6, tt.give)
			require.ErrorIs(t, err, backend.ErrInterrupted)
			require.ErrorContains(t, err, "at step 6 of 12, which is saved; ")
			require.ErrorContains(t, err, tt.want)
			require.NoError(t, l.train(t.Context(), tt.name, tt.next))
			assert.Equal(t, tt.continues, strings.Contains(l.log.String(), "resuming from checkpoint"), l.log.String())
			steps := l.metrics(tt.name)
			assert.Equal(t, 12, steps[len(steps)-1].Step)
		})
	}
}
