package native_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/runtime/backend"
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

// interruptAt trains until a step and interrupts there; step 0 is before the first one.
func (l *lab) interruptAt(name string, step int, overrides ...string) error {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	l.observer = onStep{
		do: func(s backend.Step) {
			if s.Step == step {
				cancel()
			}
		},
		start: func() {
			if step == 0 {
				cancel()
			}
		},
	}
	defer func() { l.observer = backend.Observers{} }()
	return l.train(ctx, name, overrides...)
}

// Starting over, again and again, and from other weights keeps everything that was trained before.
func TestEarlierRunsAreKept(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
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
		{"corpus", []string{"train_data_path=" + other}, []string{"step-00000005 was trained on other data", "of its files " + other + " is new, ", "text.go is gone", "exp_name=NAME", "load=none", "load=" + l.path("run", "checkpoints")}},
		{"seed", []string{"seed=9"}, []string{"was trained with seed 1234, and this run's is 9", "exp_name=NAME"}},
		{"model", []string{"hidden_size=64"}, []string{"has another model", "hidden_size", "exp_name=NAME"}},
		{"fewer steps", []string{"train_iters=3"}, []string{"train_iters: given 3", "at step 5 already", "exp_name=NAME"}},
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
		assert.Contains(t, l.log.String(), "batches start from the beginning")
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

// What an interrupted run says about the next command is what that command does, wherever it loads
// from and saves to, and wherever load was written. Step 0 stands for an interrupt before the first
// step of the run.
func TestTheNextCommand(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	const asIs, added = "the same command goes on from there", "the same command with load=null added goes on from there"
	tests := []struct {
		name   string
		before []string // an earlier run in the same place, none when empty
		inFile string   // load in the experiment
		give   []string
		want   string
	}{
		{"nothing", nil, "", nil, asIs},
		{"nothing, resumed", []string{"train_iters=3"}, "", nil, asIs},
		{"none", []string{"train_iters=3"}, "", []string{"load=none"}, added},
		{"none as a flag", nil, "", []string{"--load=none"}, added},
		{"other weights", nil, "", []string{"load=OTHER"}, added},
		{"a checkpoint of other weights", nil, "", []string{"load=OTHER/step-00000003"}, added},
		{"its own checkpoints", []string{"train_iters=3"}, "", []string{"load=OWN"}, asIs},
		{"its own newest checkpoint", []string{"train_iters=3"}, "", []string{"load=OWN/step-00000003"}, added},
		{"its own checkpoint before that", []string{"train_iters=3", "save_interval=1"}, "", []string{"load=OWN/step-00000002"}, added},
		{"none in the experiment", []string{"train_iters=3"}, "none", nil, added},
		{"other weights in the experiment", nil, "OTHER", nil, added},
		{"other weights in the experiment, none given", nil, "OTHER", []string{"load=none"}, added},
		{"none in the experiment, null given", []string{"train_iters=3"}, "none", []string{"load=null"}, asIs},
		{"given twice", []string{"train_iters=3"}, "", []string{"load=OTHER", "load=none"}, added},
		{"save", nil, "", []string{"save=SAVE"}, asIs},
		{"save, resumed", []string{"train_iters=3", "save=SAVE"}, "", []string{"save=SAVE"}, asIs},
		{"save and none", []string{"train_iters=3", "save=SAVE"}, "", []string{"save=SAVE", "load=none"}, added},
		{"save and other weights", nil, "", []string{"save=SAVE", "load=OTHER"}, added},
		{"save and load in one place", nil, "", []string{"save=SAVE", "load=SAVE"}, asIs},
		{"save and load in one place, resumed", []string{"train_iters=3", "save=SAVE"}, "", []string{"save=SAVE", "load=SAVE"}, asIs},
		{"save and load in one place of two names", nil, "", []string{"save=SAVE", "load=SAVE/../checkpoints"}, asIs},
	}
	for _, tt := range tests {
		for _, at := range []int{0, 6} {
			t.Run(fmt.Sprintf("%s, interrupted at %d", tt.name, at), func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				require.NoError(t, l.train(t.Context(), "other", "train_iters=3"))
				place := strings.NewReplacer("OTHER", l.path("other", "checkpoints"), "OWN", l.path("run", "checkpoints"),
					"SAVE", filepath.Join(l.dir, "elsewhere", "checkpoints"))
				all := func(args []string) (placed []string) {
					for _, arg := range args {
						placed = append(placed, place.Replace(arg))
					}
					return placed
				}
				if tt.before != nil {
					require.NoError(t, l.train(t.Context(), "run", all(tt.before)...))
				}
				if tt.inFile != "" {
					l.add("      load: " + place.Replace(tt.inFile))
				}
				command := all(tt.give)
				err := l.interruptAt("run", at, command...)
				require.ErrorIs(t, err, backend.ErrInterrupted)
				if strings.Contains(err.Error(), "before the first step") {
					require.Zero(t, at)
					return // which says that there is nothing to go on from
				}
				require.ErrorContains(t, err, tt.want)
				saved := regexp.MustCompile(`at step (\d+) of 12, which is saved`).FindStringSubmatch(err.Error())
				require.NotNil(t, saved, "%v", err)
				if tt.want == added {
					command = append(command, "load=null")
				}
				require.NoError(t, l.train(t.Context(), "run", command...))
				assert.Contains(t, l.log.String(), "resuming from checkpoint\" step="+saved[1]+" ")
				steps := l.metrics("run")
				assert.Equal(t, 12, steps[len(steps)-1].Step)
			})
		}
	}
}

// What a run that was killed in its first save has left half written is removed, and not kept as an
// earlier run.
func TestAnUnfinishedFirstSave(t *testing.T) {
	for name, metrics := range map[string]string{"before its record": "", "after its record": `{"step":1,"loss":5.5}` + "\n"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			half := l.path("run", "checkpoints", "step-00000001.tmp-1a2b", "model.safetensors")
			require.NoError(t, os.MkdirAll(filepath.Dir(half), 0o755))
			require.NoError(t, os.WriteFile(half, []byte("half"), 0o644))
			require.NoError(t, os.WriteFile(l.path("run", rundir.MetricsName), []byte(metrics), 0o644))
			require.NoError(t, l.train(t.Context(), "run", "train_iters=2"))
			for path := range l.tree(l.path("run")) {
				assert.NotContains(t, path, ".tmp-")
			}
			if metrics == "" {
				assert.NoDirExists(t, l.path("run", rundir.PreviousName))
			}
		})
	}
}
