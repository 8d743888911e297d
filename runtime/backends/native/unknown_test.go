package native_test

import (
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A parameter that would have changed the result, had it been served, ends the run before it
// begins, with all of its like.
func TestWhatWouldChangeTheResultIsRefused(t *testing.T) {
	l := newLab(t)
	err := l.train(t.Context(), "run", "main_grads_dtype=bf16", "model_parallel_size=2", "decoupled_lr=0.1", "tokenizer_type=GPT2BPETokenizer", "qk_l2_norm=true")
	for _, name := range []string{"main_grads_dtype", "model_parallel_size", "decoupled_lr", "tokenizer_type", "qk_l2_norm"} {
		assert.ErrorContains(t, err, "modules.pre_trainer."+name+": given ")
	}
	assert.ErrorContains(t, err, `override 16 "main_grads_dtype=bf16"`)
	assert.NoDirExists(t, l.path("run"))
}

// What asks for what the trainer does anyway is not mentioned, what changes no result is told
// twice: at the start and at the end.
func TestWhatHasNoEffectIsTold(t *testing.T) {
	l := newLab(t)
	end := &ended{}
	l.observer = end
	require.NoError(t, l.train(t.Context(), "run", "train_iters=2", "fp16_lm_cross_entropy=false", "optimizer=adam", "log_throughput=true", "log_progress=true", "z_loss_coeff=0.0"))
	assert.Equal(t, []string{"log_progress", "log_throughput"}, end.result.Ignored)
	assert.Contains(t, l.log.String(), "log_throughput: the native backend has no such parameter")
	for _, name := range []string{"fp16_lm_cross_entropy", "optimizer", "z_loss_coeff:"} {
		assert.NotContains(t, l.log.String(), name)
	}
}

// A parameter that nobody has is a mistake, whose error names what was meant: by the name that
// other trainers have for it, or the nearest one. --strict-config=false makes a warning of it.
func TestUnknownParameter(t *testing.T) {
	for given, want := range map[string]string{
		"train_iter": "train_iters", "learning_rate": "lr", "learning_rte": "lr", "n_embd": "hidden_size", "weight_decya": "weight_decay",
	} {
		l := newLab(t)
		err := l.train(t.Context(), "run", "train_iters=1", given+"=1")
		require.ErrorContains(t, err, given+": the native backend has no such parameter; did you mean \""+want+"\"?")
		assert.NoDirExists(t, l.path("run"))
	}
	l := newLab(t)
	require.ErrorContains(t, l.train(t.Context(), "run", "zzzzzz=1"), "--strict-config=false ignores it")
	l.lenient = true
	require.NoError(t, l.train(t.Context(), "run", "train_iters=1", "learning_rte=1"))
	assert.Contains(t, l.log.String(), `did you mean \"lr\"?`)
}

// Each name of another trainer stands for a parameter that the trainer has, and is none itself.
func TestNamesOfOtherTrainers(t *testing.T) {
	for _, names := range native.NamesElsewhere() {
		var b document.Builder
		b.Set(names[0], document.Value{})
		b.Set(names[1], document.Value{})
		unknown, err := document.Decode(b.Map(), &native.Args{})
		require.NoError(t, err)
		require.Len(t, unknown, 1, names)
		assert.Equal(t, names[0], unknown[0].Path)
	}
}

// --strict-config makes errors of them.
func TestStrictRefusesWhatHasNoEffect(t *testing.T) {
	for _, override := range []string{"log_throughput=true"} {
		l := newLab(t)
		l.strict = true
		err := l.train(t.Context(), "run", override)
		require.ErrorIs(t, err, config.ErrNoEffect)
		assert.NoDirExists(t, l.path("run"))
	}
	l := newLab(t)
	l.strict = true
	require.NoError(t, l.train(t.Context(), "run", "train_iters=1", "fp16_lm_cross_entropy=false", "z_loss_coeff=0.1"))
}

// A parameter that a patch serves is served.
func TestAPatchServesAParameter(t *testing.T) {
	l := newLab(t)
	served := patch.Patch{
		ID: "test.qk_l2_norm", Description: "serves qk_layernorm", Backend: "native", Phase: patch.Setup, Style: patch.Wrapping,
		Symbols: []string{"x"}, Keys: []string{"qk_l2_norm"}, Condition: patch.When("qk_layernorm"), Apply: func(*patch.Context) error { return nil },
	}
	l.patches = []patch.Patch{served}
	require.NoError(t, l.train(t.Context(), "run", "train_iters=1", "qk_l2_norm=true"))
}
