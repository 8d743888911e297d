package native_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/configs"
	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/internal/native/patches"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/primus-fl/primus/tensor"
)

// tiny are overrides that make model presets small enough for tests.
var tiny = []string{
	"num_layers=2", "hidden_size=32", "ffn_hidden_size=64", "num_attention_heads=4", "num_query_groups=2",
	"seq_length=32", "micro_batch_size=2", "global_batch_size=4", "train_iters=12", "lr_warmup_iters=2",
	"eval_interval=4", "eval_iters=2", "final_eval_windows=0", "save_interval=4", "log_interval=1",
}

// lab is a place in which tests train: a workspace with an experiment and text.
type lab struct {
	t         *testing.T
	dir       string
	model     string
	prefer    opregistry.Kind
	workers   int
	sources   []opregistry.Source
	listeners []opmanager.Listener
	taps      []opmanager.Tap
	observer  backend.Observer
	env       map[string]string // beside HOME
	strict    bool
	lenient   bool // --strict-config=false
	policy    func(*oppolicy.Policy)
	patches   []patch.Patch
	device    device.Backend     // nil for host memory
	manager   *opmanager.Manager // of the current run
	log       *strings.Builder   // of the current run
}

func newLab(t *testing.T) *lab {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "func f%d(x int) int { return x + %d }\n", i, i*i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text.go"), []byte(text.String()), 0o644))
	experiment := fmt.Sprintf(`
work_group: group
user_name: user
exp_name: ${EXP:exp}
workspace: %s
modules:
  pre_trainer:
    framework: native
    config: pre_trainer.yaml
    model: ${MODEL}.yaml
    overrides:
      train_data_path: %s
`, dir, filepath.Join(dir, "text.go"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "exp.yaml"), []byte(experiment), 0o644))
	return &lab{t: t, dir: dir, model: "llama_2M", prefer: opregistry.KindFlagos, workers: 1, observer: backend.Observers{}}
}

// experiment loads the experiment under a name.
func (l *lab) experiment(name string, overrides ...string) *config.Experiment {
	l.t.Helper()
	experiment, err := config.LoadExperiment(l.t.Context(), filepath.Join(l.dir, "exp.yaml"), config.Options{
		Formats:   formats.All(),
		Presets:   []config.Root{{Name: "embedded", FS: configs.FS()}},
		Overrides: append(append([]string{}, tiny...), overrides...),
		Module:    "pre_trainer",
		Strict:    l.strict,
		Lenient:   l.lenient,
		Env: func(key string) (string, bool) {
			value, ok := map[string]string{"EXP": name, "MODEL": l.model}[key]
			return value, ok
		},
	})
	require.NoError(l.t, err)
	return experiment
}

// registry returns the impls of the lab.
func (l *lab) registry() *opregistry.Registry {
	l.t.Helper()
	reg := opregistry.NewRegistry()
	for _, src := range append([]opregistry.Source{reference.Source(), flagos.Source()}, l.sources...) {
		require.NoError(l.t, reg.Register(src))
	}
	return reg
}

// train runs the experiment under a name and returns its error.
func (l *lab) train(ctx context.Context, name string, overrides ...string) error {
	l.t.Helper()
	experiment, reg := l.experiment(name, overrides...), l.registry()
	policy := oppolicy.Default()
	policy.Prefer = l.prefer
	if l.policy != nil {
		l.policy(&policy)
	}
	pool := parallel.New(l.workers)
	defer pool.Close()
	manager := opmanager.New(reg, policy, opmanager.Settings{Exec: opregistry.NewExec(pool, 0), Listeners: l.listeners})
	defer manager.Close()
	for _, tap := range l.taps {
		defer manager.Tap(tap)()
	}
	l.manager = manager
	host := cpu.New()
	defer func() { assert.NoError(l.t, host.Close(), "every tensor is released") }()
	var trains device.Backend = host
	if l.device != nil {
		trains = l.device
	}
	backends, err := backend.NewRegistry(native.Factory())
	require.NoError(l.t, err)
	all, err := patch.Sorted(append(patches.All(), l.patches...))
	require.NoError(l.t, err)
	l.log = &strings.Builder{}
	env := map[string]string{"HOME": l.dir}
	maps.Copy(env, l.env)
	return train.Run(ctx, train.Settings{
		Experiment: experiment, ModuleName: "pre_trainer", Stage: "pretrain", Backends: backends, Patches: all,
		StrictPatches: true, Environ: backend.MapEnviron(env),
		Manager: manager, Device: trains, Observer: l.observer,
		Log: slog.New(slog.NewTextHandler(l.log, nil)), LogFile: &backend.LogFile{},
	})
}

// add writes a line at the end of the experiment.
func (l *lab) add(line string) {
	l.t.Helper()
	path := filepath.Join(l.dir, "exp.yaml")
	text, err := os.ReadFile(path)
	require.NoError(l.t, err)
	require.NoError(l.t, os.WriteFile(path, append(text, line+"\n"...), 0o644))
}

type record struct {
	Step         int      `json:"step"`
	Loss         float64  `json:"loss"`
	CrossEntropy *float64 `json:"cross_entropy"`
	ValidLoss    *float64 `json:"valid_loss"`
	ValidTokens  int      `json:"valid_tokens"`
	GradNorm     float64  `json:"grad_norm"`
	AuxLoss      *float64 `json:"aux_loss"`
	LR           float64  `json:"lr"`
	LossScale    float64  `json:"loss_scale"`
	Skipped      bool     `json:"skipped"`
}

func (l *lab) path(name string, elem ...string) string {
	return filepath.Join(append([]string{l.dir, "group", "user", name}, elem...)...)
}

func (l *lab) metrics(name string) []record {
	l.t.Helper()
	f, err := os.Open(l.path(name, "metrics.jsonl"))
	require.NoError(l.t, err)
	defer f.Close()
	var records []record
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r record
		require.NoError(l.t, json.Unmarshal(lines.Bytes(), &r))
		records = append(records, r)
	}
	return records
}

func TestTrain(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "run", "save_initial=true", "dump_batches=3"))
	records := l.metrics("run")
	require.Len(t, records, 12)
	assert.InDelta(t, math.Log(256), records[0].Loss, 0.3)
	assert.Less(t, records[11].Loss, records[0].Loss-0.5)
	assert.NotNil(t, records[3].ValidLoss)
	for _, name := range []string{"config.yaml", "train.log", "metrics.jsonl", "loss.png", "manifest.json", "dispatch.json", "batches.safetensors"} {
		info, err := os.Stat(l.path("run", name))
		if assert.NoError(t, err) && name != "train.log" {
			assert.Positive(t, info.Size(), name)
		}
	}
	steps, err := filepath.Glob(l.path("run", "checkpoints", "step-*"))
	require.NoError(t, err)
	assert.Len(t, steps, 2, "the last two checkpoints are kept")
	assert.FileExists(t, filepath.Join(steps[1], "config.json"))
}

// families are the model presets of each family, with overrides that use all that it has.
func families() map[string][]string {
	return map[string][]string{
		"llama_2M": nil,
		"gpt2_10M": {"num_query_groups=4", "max_position_embeddings=40", "hidden_dropout=0.1", "attention_dropout=0.1", "init_method_std=0.04"},
		"moe_8x3M": {"moe_ffn_hidden_size=16", "init_method_std=0.04"},
	}
}

// Every family learns, and writes text at the end of a run.
func TestFamiliesLearn(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for name, overrides := range families() {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.model = name
			end := &ended{}
			l.observer = end
			require.NoError(t, l.train(t.Context(), "run", append(overrides, "train_iters=30")...))
			records := l.metrics("run")
			assert.InDelta(t, math.Log(256), records[0].Loss, 0.3)
			assert.Less(t, records[29].Loss, records[0].Loss-1.5)
			assert.Less(t, *records[29].ValidLoss, records[0].Loss-1.5)
			if assert.Equal(t, name == "moe_8x3M", records[0].AuxLoss != nil) && records[0].AuxLoss != nil {
				assert.InDelta(t, 2*0.01, *records[0].AuxLoss, 0.005, "coefficient times layers when experts are used alike")
			}
			text, err := os.ReadFile(filepath.Join(l.dir, "text.go"))
			require.NoError(t, err)
			assert.True(t, strings.Contains(string(text), " "+end.result.Prompt), "%q are words of the corpus", end.result.Prompt)
			assert.True(t, strings.HasPrefix(end.result.Sample, end.result.Prompt))
			assert.Greater(t, len(end.result.Sample), 100)
		})
	}
}

// With a learning rate of next to nothing the weights stay as they are, so that only dropout could
// tell the runs apart.
func TestEvaluationDropsNothing(t *testing.T) {
	l := newLab(t)
	l.model = "gpt2_10M"
	frozen := []string{"num_query_groups=4", "lr=1e-12", "min_lr=0", "train_iters=4"}
	require.NoError(t, l.train(t.Context(), "all", frozen...))
	require.NoError(t, l.train(t.Context(), "dropped", append(frozen, "hidden_dropout=0.8")...))
	all, dropped := l.metrics("all")[3], l.metrics("dropped")[3]
	assert.Greater(t, math.Abs(all.Loss-dropped.Loss), 1e-4)
	assert.InDelta(t, *all.ValidLoss, *dropped.ValidLoss, 1e-6)
}

type ended struct {
	backend.Observers
	step   backend.Step // the last one
	result backend.Result
}

func (e *ended) StepDone(s backend.Step)   { e.step = s }
func (e *ended) RunEnded(r backend.Result) { e.result = r }

// The same seed and impls give the same losses bit for bit, for any number of workers.
func TestWorkersDoNotChangeLosses(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "one"))
	l.workers = 3
	require.NoError(t, l.train(t.Context(), "three"))
	assert.Equal(t, l.metrics("one"), l.metrics("three"))
}

func TestImplsAgree(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "flagos", "train_iters=20"))
	l.prefer = opregistry.KindReference
	require.NoError(t, l.train(t.Context(), "reference", "train_iters=20"))
	want, got := l.metrics("reference"), l.metrics("flagos")
	for i := range want {
		assert.InEpsilon(t, want[i].Loss, got[i].Loss, 1e-3, "step %d", i+1)
	}
}

type onStep struct {
	backend.Observers
	do    func(backend.Step)
	start func() // nil for nothing
}

func (o onStep) RunStarted(backend.Run) {
	if o.start != nil {
		o.start()
	}
}

func (o onStep) StepDone(s backend.Step) { o.do(s) }

func TestInterruptAndResume(t *testing.T) {
	for name, overrides := range families() {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.model = name
			require.NoError(t, l.train(t.Context(), "whole", overrides...))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l.observer = onStep{do: func(s backend.Step) {
				if s.Step == 6 {
					cancel()
				}
			}}
			err := l.train(ctx, "parts", overrides...)
			require.ErrorIs(t, err, backend.ErrInterrupted)
			assert.Len(t, l.metrics("parts"), 6)
			l.observer = backend.Observers{}
			require.NoError(t, l.train(t.Context(), "parts", overrides...))
			assert.Equal(t, l.metrics("whole"), l.metrics("parts"))
			want, err := os.ReadFile(l.path("whole", "checkpoints", "step-00000012", "model.safetensors"))
			require.NoError(t, err)
			got, err := os.ReadFile(l.path("parts", "checkpoints", "step-00000012", "model.safetensors"))
			require.NoError(t, err)
			assert.Equal(t, want, got, "bit-identical weights")
		})
	}
}

func TestLoadOfAnotherShape(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "run", "train_iters=4"))
	before, err := os.ReadDir(l.path("run", "checkpoints"))
	require.NoError(t, err)
	err = l.train(t.Context(), "run", "hidden_size=64", "train_iters=8")
	require.ErrorContains(t, err, "hidden_size")
	assert.ErrorContains(t, err, "step-00000004")
	after, err := os.ReadDir(l.path("run", "checkpoints"))
	require.NoError(t, err)
	assert.Equal(t, len(before), len(after))
}

// saboteur is a vendor whose generic_gemm misbehaves from some call on.
func saboteur(from int64, misbehave func(*opregistry.Exec, gemm.GenericGemmArgs) error) opregistry.Source {
	var calls atomic.Int64
	return saboteurWhen(func() bool { return calls.Add(1) > from }, misbehave)
}

// saboteurWhen is a vendor whose generic_gemm misbehaves in the calls that when chooses.
func saboteurWhen(when func() bool, misbehave func(*opregistry.Exec, gemm.GenericGemmArgs) error) opregistry.Source {
	var run opregistry.Func[gemm.GenericGemmArgs]
	for _, impl := range flagos.Source().Impls {
		if impl.Op == opregistry.Handle(gemm.GenericGemm) {
			run = impl.Run.(opregistry.Func[gemm.GenericGemmArgs])
		}
	}
	return opregistry.Source{Name: "acme", Impls: []opregistry.Impl{{
		Op: gemm.GenericGemm, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100,
		Run: func(ex *opregistry.Exec, a gemm.GenericGemmArgs) error {
			if when() {
				return misbehave(ex, a)
			}
			return run(ex, a)
		},
	}}}
}

// A vendor impl that fails, panics or declines in the middle of training: the
// run goes on with the right losses.
func TestVendorFailsInTheMiddle(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "healthy"))
	want := l.metrics("healthy")
	tests := map[string]func(*opregistry.Exec, gemm.GenericGemmArgs) error{
		"decline": func(*opregistry.Exec, gemm.GenericGemmArgs) error { return opregistry.Unsupported("out of luck") },
		"panic":   func(*opregistry.Exec, gemm.GenericGemmArgs) error { panic("device lost") },
		"fail half way": func(_ *opregistry.Exec, a gemm.GenericGemmArgs) error {
			tensor.Data[float32](a.D)[0] = 1e9
			return errors.New("device lost")
		},
	}
	for name, misbehave := range tests {
		t.Run(name, func(t *testing.T) {
			l.prefer = opregistry.KindVendor
			l.sources = []opregistry.Source{saboteur(100, misbehave)}
			counter := &counting{}
			l.listeners = []opmanager.Listener{counter}
			run := strings.ReplaceAll(name, " ", "_")
			require.NoError(t, l.train(t.Context(), run))
			assert.Equal(t, want, l.metrics(run))
			assert.Positive(t, counter.fellBack.Load())
		})
	}
}

// rmsnorm is a vendor with flagos' rmsnorm, before each forward call of which a hook runs.
func rmsnorm(before func(call int64) error) opregistry.Source {
	var calls atomic.Int64
	src := opregistry.Source{Name: "acme"}
	for _, impl := range flagos.Source().Impls {
		if impl.Op.Family() != "rmsnorm" {
			continue
		}
		impl.ID, impl.Kind, impl.Vendor = "vendor.acme", opregistry.KindVendor, "acme"
		if run, ok := impl.Run.(opregistry.Func[norm.RMSNormFwdArgs]); ok {
			impl.Run = func(ex *opregistry.Exec, a norm.RMSNormFwdArgs) error {
				if err := before(calls.Add(1)); err != nil {
					return err
				}
				return run(ex, a)
			}
		}
		src.Impls = append(src.Impls, impl)
	}
	return src
}

// An impl of a family that is set aside in the middle of a forward pass has
// written saved state of the layers before: the step is computed again.
func TestFamilyIsQuarantinedInTheMiddleOfAStep(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "healthy"))
	l.prefer = opregistry.KindVendor
	l.sources = []opregistry.Source{rmsnorm(func(call int64) error {
		if call > 31 {
			return errors.New("device lost")
		}
		return nil
	})}
	require.NoError(t, l.train(t.Context(), "run"))
	assert.Equal(t, l.metrics("healthy"), l.metrics("run"))
}

// A policy that takes an impl away between its forward and its backward op.
func TestPolicyChangesInTheMiddleOfAStep(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "healthy"))
	for _, strict := range []bool{false, true} {
		l.prefer = opregistry.KindVendor
		l.policy = func(p *oppolicy.Policy) { p.Strict = strict }
		l.sources = []opregistry.Source{rmsnorm(func(call int64) error {
			if call == 33 {
				denied := l.manager.Policy()
				denied.Deny = []string{"acme"}
				l.manager.SetPolicy(denied)
			}
			return nil
		})}
		name := fmt.Sprint("strict_", strict)
		require.NoError(t, l.train(t.Context(), name))
		assert.Equal(t, l.metrics("healthy"), l.metrics(name))
	}
}

type counting struct{ fellBack atomic.Int64 }

func (c *counting) OnEvent(e opmanager.Event) {
	if _, ok := e.(opmanager.FellBack); ok {
		c.fellBack.Add(1)
	}
}

func TestStrictStopsAtTheFirstFailure(t *testing.T) {
	l := newLab(t)
	l.prefer = opregistry.KindVendor
	l.policy = func(p *oppolicy.Policy) { p.Strict = true }
	l.sources = []opregistry.Source{saboteur(100, func(*opregistry.Exec, gemm.GenericGemmArgs) error { return errors.New("device lost") })}
	err := l.train(t.Context(), "run")
	require.ErrorContains(t, err, "device lost")
	assert.ErrorContains(t, err, "strict")
}

func TestNaNStopsWithTheOpNamed(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for name, dev := range map[string]device.Backend{"host": nil, "device": fardevice.New(0)} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.prefer, l.device = opregistry.KindVendor, dev
			l.sources = []opregistry.Source{saboteur(400, func(ex *opregistry.Exec, a gemm.GenericGemmArgs) error {
				for i := range tensor.Data[float32](a.D) {
					tensor.Data[float32](a.D)[i] = float32(math.NaN())
				}
				return nil
			})}
			err := l.train(t.Context(), "run")
			var nan *native.NonFiniteError
			require.ErrorAs(t, err, &nan)
			require.NotNil(t, nan.Origin)
			assert.Equal(t, "generic_gemm", nan.Origin.Op)
			assert.ErrorContains(t, err, fmt.Sprintf("step %d", nan.Step))
			steps, err := filepath.Glob(l.path("run", "checkpoints", "step-*"))
			require.NoError(t, err)
			require.NotEmpty(t, steps)
			l.sources, l.prefer = nil, opregistry.KindFlagos
			require.NoError(t, l.train(t.Context(), "run"), "the last good checkpoint is usable")
		})
	}
}

func TestBadParameters(t *testing.T) {
	tests := []struct {
		give string
		want []string
	}{
		{"hidden_size=33", []string{"hidden_size", "33", "num_attention_heads"}},
		{"num_layers=two", []string{"num_layers", "two"}},
		{"seq_length=100000000", []string{"seq_length", "longer than the data"}},
		{"train_data_path=/nonexistent/text", []string{"train_data_path", "/nonexistent/text"}},
		{"global_batch_size=5", []string{"global_batch_size", "micro_batch_size"}},
		{"lr_decay_style=cosin", []string{"lr_decay_style", "cosin", "cosine"}},
		{"load=/nonexistent/checkpoint", []string{"/nonexistent/checkpoint"}},
		{"min_lr=1.0", []string{"min_lr", "lr"}},
	}
	for _, tt := range tests {
		t.Run(tt.give, func(t *testing.T) {
			l := newLab(t)
			err := l.train(t.Context(), "run", tt.give)
			require.Error(t, err)
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
			_, err = os.Stat(l.path("run", "checkpoints"))
			assert.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

func TestSecondRunInOneDirectoryIsRefused(t *testing.T) {
	l := newLab(t)
	var second error
	l.observer = onStep{do: func(s backend.Step) {
		if s.Step == 1 {
			other := *l
			other.observer = backend.Observers{}
			second = other.train(t.Context(), "run")
		}
	}}
	require.NoError(t, l.train(t.Context(), "run", "train_iters=2"))
	require.ErrorContains(t, second, "in use")
}

func TestStepsAreReported(t *testing.T) {
	l := newLab(t)
	var steps []backend.Step
	l.observer = onStep{do: func(s backend.Step) { steps = append(steps, s) }}
	require.NoError(t, l.train(t.Context(), "run", "train_iters=3"))
	require.Len(t, steps, 3)
	for _, s := range steps {
		assert.Equal(t, 4*32, s.Tokens)
		assert.Positive(t, s.TokensPerSecond)
		assert.Positive(t, s.Duration)
		assert.Less(t, s.Duration, time.Hour)
	}
}
