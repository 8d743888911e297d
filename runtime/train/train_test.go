package train_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a backend that records the calls it gets and fails at one of them.
type recorder struct {
	calls  []string
	failAt string
	err    error
	cause  error
}

func (r *recorder) Framework() string { return "recorder" }

func (r *recorder) do(name string) error {
	r.calls = append(r.calls, name)
	if name == r.failAt {
		return r.err
	}
	return nil
}

func (r *recorder) ConvertConfig(*config.Module) (any, []config.Warning, error) {
	return "args", []config.Warning{{Message: "odd"}}, r.do("convert")
}

func (r *recorder) NewTrainer(stage string, args any, _ backend.TrainContext) (backend.Trainer, error) {
	return r, r.do("new " + stage + " " + args.(string))
}

func (r *recorder) Setup(context.Context) error { return r.do("setup") }
func (r *recorder) Init(context.Context) error  { return r.do("init") }
func (r *recorder) Train(context.Context) error { return r.do("train") }

func (r *recorder) Cleanup(cause error) error {
	r.cause = cause
	return r.do("cleanup")
}

func run(t *testing.T, r *recorder, framework string) error {
	t.Helper()
	return runWith(t.Context(), t, r, framework)
}

func runWith(ctx context.Context, t *testing.T, r *recorder, framework string) error {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"modules/recorder/m.yaml":       "a: 1\n",
		"models/recorder/m.yaml":        "b: 1\n",
		"modules/other/m.yaml":          "a: 1\n",
		"models/other/m.yaml":           "b: 1\n",
		"platforms/platform_azure.yaml": platform,
		"exp.yaml":                      strings.ReplaceAll(experiment, "FRAMEWORK", framework),
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	root, err := config.DirRoot(dir)
	require.NoError(t, err)
	e, err := config.LoadExperiment(filepath.Join(dir, "exp.yaml"), config.Options{Presets: []config.Root{root}})
	require.NoError(t, err)
	backends, err := backend.NewRegistry(r)
	require.NoError(t, err)
	return train.Run(ctx, train.Settings{
		Experiment: e, ModuleName: "pre_trainer", Stage: "pretrain", Backends: backends,
		Observer: backend.Observers{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), LogFile: &backend.LogFile{},
	})
}

const experiment = `
work_group: g
user_name: u
exp_name: e
workspace: w
modules:
  pre_trainer: {framework: FRAMEWORK, config: m.yaml, model: m.yaml}
`

const platform = `
name: azure
num_nodes_env_key: A
node_rank_env_key: B
master_addr_env_key: C
master_port_env_key: D
gpus_per_node_env_key: E
master_sink_level: INFO
workspace: w
`

func TestOrder(t *testing.T) {
	r := &recorder{}
	require.NoError(t, run(t, r, "recorder"))
	assert.Equal(t, []string{"convert", "new pretrain args", "setup", "init", "train", "cleanup"}, r.calls)
	assert.NoError(t, r.cause)
}

func TestCleanupFollowsEveryFailureOnce(t *testing.T) {
	boom := errors.New("boom")
	for _, failAt := range []string{"setup", "init", "train"} {
		r := &recorder{failAt: failAt, err: boom}
		err := run(t, r, "recorder")
		require.ErrorIs(t, err, boom)
		assert.ErrorContains(t, err, "Training execution failed: boom")
		assert.Equal(t, []string{failAt, "cleanup"}, r.calls[len(r.calls)-2:])
		assert.Equal(t, boom, r.cause)
	}
}

func TestFailingCleanupIsAnError(t *testing.T) {
	boom := errors.New("boom")
	r := &recorder{failAt: "cleanup", err: boom}
	require.ErrorIs(t, run(t, r, "recorder"), boom)
}

func TestInterruptionKeepsItsName(t *testing.T) {
	r := &recorder{failAt: "train", err: backend.ErrInterrupted}
	err := run(t, r, "recorder")
	require.ErrorIs(t, err, backend.ErrInterrupted)
	assert.NotContains(t, err.Error(), "failed")
}

func TestInterruptionBeforeTraining(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &recorder{failAt: "init", err: fmt.Errorf("read the corpus: %w", context.Canceled)}
	require.ErrorIs(t, runWith(ctx, t, r, "recorder"), backend.ErrInterrupted)
	assert.Equal(t, "cleanup", r.calls[len(r.calls)-1])
	require.NotErrorIs(t, run(t, r, "recorder"), backend.ErrInterrupted, "nobody interrupted this one")
}

func TestNothingRunsForBadArguments(t *testing.T) {
	r := &recorder{failAt: "convert", err: errors.New("num_layers: got 0")}
	require.ErrorContains(t, run(t, r, "recorder"), "num_layers")
	assert.Equal(t, []string{"convert"}, r.calls)
}

func TestUnknownFramework(t *testing.T) {
	err := run(t, &recorder{}, "other")
	require.ErrorIs(t, err, backend.ErrUnknown)
	assert.ErrorContains(t, err, `module "pre_trainer": unknown framework "other": available are recorder`)
}
