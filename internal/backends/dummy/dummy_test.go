package dummy_test

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/backends/dummy"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newLab(params string) *traintest.Lab {
	return &traintest.Lab{Factory: dummy.Factory(), Patches: dummy.Patches(), Params: params}
}

func TestRun(t *testing.T) {
	l := newLab("train_iters: 3\nhello: world\nlog_steps: true\n")
	require.NoError(t, l.Run(t))
	log := l.Log.String()
	for _, line := range []string{
		"[Primus:DummyAdapter] setup_backend_path: no-op for in-tree dummy backend", "[Primus:DummyAdapter] Backend prepared",
		"[Primus:dummy] Backend prepared", "[Primus:DummyAdapter] Converted Primus params -> dummy backend_args",
		"Loaded trainer class: DummyPretrainTrainer", "✓ Applied: dummy.greeting_environment", "Setup started.",
		"[DummyPretrainTrainer] setup() on rank=0", "Setup completed.", "[DummyPretrainTrainer] init()",
		"✓ Applied: dummy.log_steps", "extension point dummy.step: dummy.log_steps wraps the original", "Training started.",
		"[DummyPretrainTrainer] train()", "[DummyPretrainTrainer] step 3", "[DummyPretrainTrainer] training finished successfully.",
		"Training completed.", "[DummyPretrainTrainer] cleanup(on_error=success)", "Cleanup completed.",
	} {
		_, rest, found := strings.Cut(log, line)
		require.True(t, found, "%q in order in\n%s", line, l.Log.String())
		log = rest
	}
	assert.Empty(t, l.Env, "the environment is as before")
}

func TestSteps(t *testing.T) {
	l := newLab("train_iters: 3\nsteps: 2\nlog_steps: true\n")
	require.NoError(t, l.Run(t))
	assert.Contains(t, l.Log.String(), "step 2")
	assert.NotContains(t, l.Log.String(), "[DummyPretrainTrainer] step 3")
}

func TestFaults(t *testing.T) {
	require.ErrorContains(t, newLab("train_iters: many\n").Run(t), `train_iters: given string "many", want a whole number`)
	require.ErrorContains(t, newLab("stage: sft\n").Run(t), `framework dummy: given stage "sft", want pretrain`)
	require.ErrorContains(t, newLab("steps: many\n").Run(t), "want a whole number")
}

func TestPlan(t *testing.T) {
	p, err := newLab("hello: world\n").Plan(t)
	require.NoError(t, err)
	assert.Equal(t, "dummy-0.0.1", p.Version)
	assert.Equal(t, "DummyPretrainTrainer", p.Trainer)
	assert.Empty(t, p.Problems)
}
