package native_test

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// resave writes the newest checkpoint of a directory again with other content, as an intact one.
func resave(t *testing.T, dir string, edit func(name, text string) string) {
	t.Helper()
	c, err := checkpoint.Open(t.Context(), dir)
	require.NoError(t, err)
	files := map[string]string{}
	for _, name := range c.Files() {
		text, err := os.ReadFile(filepath.Join(c.Path(), name))
		require.NoError(t, err)
		files[name] = edit(name, string(text))
	}
	s, err := checkpoint.NewStore(dir, checkpoint.Settings{Run: c.Run()})
	require.NoError(t, err)
	_, err = s.Save(c.Step(), func(w *checkpoint.Writer) error {
		for _, name := range c.Files() {
			if err := w.File(name, func(out io.Writer) error {
				_, err := io.WriteString(out, files[name])
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
}

// Runs that save in one directory keep out of each other's way, one after the other.
func TestRunsThatShareADirectory(t *testing.T) {
	l := newLab(t)
	dir := filepath.Join(l.dir, "shared")
	require.NoError(t, l.train(t.Context(), "a", "save="+dir, "train_iters=4"))
	write := func(path string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("precious"), 0o644))
	}
	write(filepath.Join(dir, "step-00000005", "precious.bin"))
	first := l.tree(dir)

	err := l.train(t.Context(), "b", "save="+dir)
	var owner *checkpoint.OwnerError
	require.ErrorAs(t, err, &owner)
	for _, want := range []string{"belong to run a-", "load=" + dir, "load=none"} {
		require.ErrorContains(t, err, want)
	}
	assert.Equal(t, first, l.tree(dir))

	for range 2 { // which save at steps 4, 8 and 12
		require.NoError(t, l.train(t.Context(), "b", "save="+dir, "load=none"))
	}
	second := l.tree(dir)
	for name, text := range first {
		assert.True(t, second[name] == text || second["/previous/1"+name] == text, name)
	}
	require.NoError(t, l.train(t.Context(), "a", "save="+dir, "load="+filepath.Join(dir, "previous", "1", "step-00000004"), "train_iters=6"))
	assert.Contains(t, l.log.String(), "resuming from checkpoint")
}

// Two runs cannot save in one directory at the same time.
func TestRunsThatShareADirectoryAtOnce(t *testing.T) {
	l := newLab(t)
	dir := filepath.Join(l.dir, "shared")
	other := *l
	l.observer = onStep{do: func(s backend.Step) {
		if s.Step == 2 {
			err := other.train(t.Context(), "b", "save="+dir, "load=none")
			assert.ErrorContains(t, err, "another run saves in "+dir)
		}
	}}
	require.NoError(t, l.train(t.Context(), "a", "save="+dir, "train_iters=3"))
}

// load and save may name one directory from the first start on, for runs that a scheduler starts
// again with one command, also on another machine.
func TestLoadAndSaveInOneDirectory(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "whole"))
	dir := filepath.Join(l.dir, "durable")
	both := []string{"save=" + dir, "load=" + dir}
	require.ErrorIs(t, l.interruptAt("one", 5, both...), backend.ErrInterrupted)
	assert.Contains(t, l.log.String(), "holds no checkpoint yet")
	require.NoError(t, l.train(t.Context(), "two", both...))
	assert.Equal(t, l.metrics("whole")[5:], l.metrics("two"))
	steps, err := filepath.Glob(filepath.Join(dir, "step-*"))
	require.NoError(t, err)
	assert.Len(t, steps, 2, "the run that goes on keeps the last two")
}

// Weights of the same shapes may belong to another function.
func TestAnotherFunctionIsRefused(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for model, tests := range map[string][]string{
		"llama_2M": {"num_attention_heads=2", "rotary_base=500000", "norm_epsilon=0.01", "vocab_size=300"},
		"gpt2_10M": {"num_attention_heads=8", "norm_epsilon=0.01"},
		"moe_8x3M": {"moe_router_topk=3", "rotary_base=1234.5"},
	} {
		l := newLab(t)
		l.model = model
		base := append(families()[model], "train_iters=2")
		require.NoError(t, l.train(t.Context(), "run", base...))
		before := l.tree(l.path("run"))
		for _, give := range tests {
			for _, load := range []string{"load=null", "load=" + l.path("run", "checkpoints")} {
				give := append(append([]string{}, base...), give, load, "train_iters=4")
				if model == "gpt2_10M" {
					give = append(give, "num_query_groups=null")
				}
				err := l.train(t.Context(), "run", give...)
				name, _, _ := strings.Cut(give[len(base)], "=")
				require.ErrorContains(t, err, "has another model: it differs in ")
				require.ErrorContains(t, err, name)
				assert.Equal(t, before, l.tree(l.path("run")))
			}
		}
	}
}

// Parameters that change how a model is trained, and not what it is, are told.
func TestOtherParametersAreTold(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "run", "train_iters=2"))
	require.NoError(t, l.train(t.Context(), "run", "train_iters=3", "lr=1e-4", "min_lr=0", "weight_decay=0.2", "log_interval=7"))
	for _, want := range []string{"lr 0.0001 instead of 0.003", "train_iters 3 instead of 2", "weight_decay 0.2 instead of 0.1"} {
		assert.Contains(t, l.log.String(), want)
	}
	assert.NotContains(t, l.log.String(), "log_interval")
	steps := 3
	for _, step := range []struct{ give, want string }{
		{"z_loss_coeff=0.5", "z_loss_coeff 0.5 instead of not given"},
		{"z_loss_coeff=0.25", "z_loss_coeff 0.25 instead of 0.5"},
		{"z_loss_coeff=null", "z_loss_coeff not given instead of 0.25"},
	} {
		steps++
		require.NoError(t, l.train(t.Context(), "run", fmt.Sprintf("train_iters=%d", steps), step.give))
		assert.Contains(t, l.log.String(), step.want)
	}
	require.NoError(t, l.train(t.Context(), "same", "train_iters=2", "save_interval=1"))
	require.NoError(t, os.RemoveAll(l.path("same", "checkpoints", "step-00000002")))
	require.NoError(t, l.train(t.Context(), "same", "train_iters=2", "save_interval=1"))
	assert.NotContains(t, l.log.String(), "instead of")
}

// A checkpoint says on which class of CPU it was saved, and a run that goes on from it on another
// one that the bits differ.
func TestAnotherClassOfCPUIsTold(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	full := cpufeat.Class(false)
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "run", "train_iters=2"))
	require.NoError(t, l.train(t.Context(), "run", "train_iters=3"))
	assert.NotContains(t, l.log.String(), "of class", "the same machine")
	for _, f := range cpufeat.Features() {
		if cpufeat.Has(f) {
			defer cpufeat.Disable(f)()
		}
	}
	if cpufeat.Class(false) == full {
		t.Skip("this machine has none of the features that kernels distinguish")
	}
	require.NoError(t, l.train(t.Context(), "run", "train_iters=4"))
	want := "was saved on a CPU of class " + full + " and this one is of class " + cpufeat.Class(false)
	assert.Equal(t, 1, strings.Count(l.log.String(), want), l.log.String())
	require.NoError(t, l.train(t.Context(), "run", "train_iters=5"))
	assert.NotContains(t, l.log.String(), "of class", "the checkpoint is of this class now")
}

// A checkpoint whose parts contradict each other is not believed.
func TestContradictingCheckpoints(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for _, tt := range []struct {
		name, file, from, to, want string
	}{
		{"step", "trainer_state.json", `"step": 2,`, `"step": 1,`, "step 1, want step 2, as in the manifest"},
		{"position", "trainer_state.json", `"consumed_samples": 8,`, `"consumed_samples": 18446744073709551615,`, "samples"},
		{"negative position", "trainer_state.json", `"consumed_samples": 8,`, `"consumed_samples": -8,`, "trainer_state.json"},
		{"unknown field", "trainer_state.json", `"step": 2,`, `"step": 2, "momentum": 1,`, "momentum"},
		{"not JSON", "config.json", "{", "", "config.json"},
		{"model", "config.json", `"rope_theta": 10000.0`, `"rope_theta": [10000]`, "rotary_base"},
		{"infinite weight", "model.safetensors", "", "", "cannot be trained further"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			require.NoError(t, l.train(t.Context(), "run", "train_iters=2"))
			resave(t, l.path("run", "checkpoints"), func(name, text string) string {
				if name != tt.file {
					return text
				}
				if tt.from == "" { // the last weight becomes infinite
					return text[:len(text)-4] + "\x00\x00\x80\x7f"
				}
				require.Contains(t, text, tt.from)
				return strings.Replace(text, tt.from, tt.to, 1)
			})
			require.ErrorContains(t, l.train(t.Context(), "run", "train_iters=4"), tt.want)
		})
	}
}

// Where the state of the newest checkpoint contradicts its manifest, the run goes on from the one
// before, and says so; what another version of the program has written is no damage.
func TestGoesOnBeforeAContradiction(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	steps := []string{"save_interval=3", "lr_decay_iters=9"}
	require.NoError(t, l.train(t.Context(), "whole", append(steps, "train_iters=9")...))
	for from, to := range map[string]string{`"step": 6,`: `"step": 3,`, `"consumed_samples": 24,`: `"consumed_samples": "24",`, "{": ""} {
		require.NoError(t, l.train(t.Context(), "run", append(steps, "train_iters=6", "load=none")...))
		state := func(name, text string) string {
			if name == "trainer_state.json" {
				require.Contains(t, text, from)
				return strings.Replace(text, from, to, 1)
			}
			return text
		}
		resave(t, l.path("run", "checkpoints"), state)
		require.NoError(t, l.train(t.Context(), "run", append(steps, "train_iters=9")...))
		assert.Contains(t, l.log.String(), "skipped step-00000006")
		assert.Contains(t, l.log.String(), "trainer_state.json")
		assert.Equal(t, l.metrics("whole"), l.metrics("run"))
		assert.DirExists(t, l.path("run", "checkpoints", "previous", "1", "step-00000006"))
	}

	require.NoError(t, l.train(t.Context(), "run", append(steps, "train_iters=6", "load=none")...))
	resave(t, l.path("run", "checkpoints"), func(_, text string) string {
		return strings.Replace(text, `"step": 6,`, `"step": 6, "momentum": 1,`, 1)
	})
	before := l.tree(l.path("run"))
	require.ErrorContains(t, l.train(t.Context(), "run", append(steps, "train_iters=9")...), `unknown field "momentum"`)
	assert.Equal(t, before, l.tree(l.path("run")))
}

// A run that diverges ends as such, and keeps the checkpoint from before it did.
func TestADivergingRunKeepsGoodWeights(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for _, lr := range []string{"1e30", "3e38"} {
		l := newLab(t)
		require.NoError(t, l.train(t.Context(), "run", "train_iters=4"))
		good := l.tree(l.path("run", "checkpoints"))
		err := l.train(t.Context(), "run", "train_iters=9", "save_interval=1", "lr_warmup_iters=0", "lr="+lr)
		require.ErrorIs(t, err, backend.ErrNonFinite)
		for name, text := range good {
			assert.True(t, l.tree(l.path("run", "checkpoints"))[name] == text, name)
		}
		c, err := checkpoint.Open(t.Context(), l.path("run", "checkpoints"))
		require.NoError(t, err)
		assert.Equal(t, int64(4), c.Step(), "no later weights are saved as good")
		require.NoError(t, l.train(t.Context(), "run", "train_iters=6"))
		assert.False(t, math.IsNaN(l.metrics("run")[5].Loss))
	}
}

// A directory that nothing can be saved in is found before the first step.
func TestASavePathThatCannotWork(t *testing.T) {
	l := newLab(t)
	file := filepath.Join(l.dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for _, dir := range []string{file, "/proc/self/checkpoints", filepath.Join(file, "checkpoints")} {
		require.ErrorContains(t, l.train(t.Context(), "run", "save="+dir), "nothing can be saved in "+dir)
		assert.NoFileExists(t, l.path("run", "metrics.jsonl"))
	}
}
