package train_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a backend, adapter and trainer in one, that records the calls it gets and fails at
// one of them.
type recorder struct {
	calls  []string
	failAt string
	err    error
	cause  error
	early  bool // it knows its version early
	change func(*backend.Args)

	env       map[string]string
	overrides string // of the module, YAML
	envBlock  string // of the experiment, YAML
	patches   []patch.Patch
	settings  func(*train.Settings)
	launches  bool
	log       strings.Builder
	dir       string
}

func (r *recorder) do(name string) error {
	r.calls = append(r.calls, name)
	if name == r.failAt {
		if r.err == nil {
			panic("boom")
		}
		return r.err
	}
	return nil
}

func (r *recorder) SetupPath(given string, _ *backend.TrainContext) (backend.Paths, error) {
	return backend.Paths{Dir: given}, r.do("path")
}

func (r *recorder) Prepare(context.Context, *backend.TrainContext) error { return r.do("prepare") }

func (r *recorder) ConvertConfig(tc *backend.TrainContext) (*backend.Args, []document.Warning, error) {
	args := backend.NewArgs(tc.Module.Params, "primus_only", "file_sink_level")
	if r.change != nil {
		r.change(args)
	}
	return args, []document.Warning{{Path: "odd", Message: "odd"}, {Path: "knob", Message: "unknown knob"}}, r.do("convert")
}

func (r *recorder) EarlyVersion(*backend.TrainContext) (string, error) {
	if !r.early {
		return "", errors.New("not yet")
	}
	return "1.2.3", nil
}

func (r *recorder) DetectVersion(*backend.TrainContext) (string, error) {
	return "0.9", r.do("version")
}

func (*recorder) Needs(args *backend.Args) backend.Needs {
	name, _ := args.Lookup("device")
	minutes, _ := args.Lookup("minutes")
	n, _ := minutes.Int64()
	return backend.Needs{Device: name.Text(), DeviceSource: args.SetBy("device"), CollectiveTimeout: time.Duration(n) * time.Minute}
}

func (r *recorder) EnvDefaults(*backend.Environ) []backend.EnvDefault {
	return []backend.EnvDefault{
		{Name: "DEFAULT", Value: "d"}, {Name: "SET", Value: "d"}, {Name: "BLOCK", Value: "d"},
		{Name: "NEW_CHIP", Value: "1", Arch: backend.GFX950}, {Name: "OLD_CHIP", Value: "1", Arch: backend.GFX942},
		{Name: "XLA_FLAGS", Value: "--a=2 --c", MergeFlags: true},
	}
}

func (r *recorder) LoadTrainer(stage, class string) (backend.TrainerClass, error) {
	return backend.Trainers{{Stage: "pretrain", Name: "Recorder", New: func(*backend.TrainContext) (backend.Trainer, error) {
		return r, r.do("new")
	}}}.Load("recorder", stage, class)
}

func (*recorder) Stages() []string { return []string{"pretrain"} }

func (r *recorder) InitTrainer(backend.Trainer, *backend.TrainContext) error {
	return r.do("init trainer")
}

func (r *recorder) Inspect(context.Context) ([]backend.Finding, error) {
	return []backend.Finding{{Name: "corpus", Text: "3 files"}}, r.do("inspect")
}

func (r *recorder) Setup(context.Context) error { return r.do("setup") }
func (r *recorder) Init(context.Context) error  { return r.do("init") }
func (r *recorder) Train(context.Context) error { return r.do("train") }

func (r *recorder) Cleanup(cause error) error {
	r.cause = cause
	return r.do("cleanup")
}

const experiment = `
work_group: g
user_name: u
exp_name: e
workspace: w
env: {ENVBLOCK}
modules:
  pre_trainer:
    framework: FRAMEWORK
    config: m.yaml
    model: m.yaml
    overrides: {OVERRIDES}
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

// prepare returns the settings of a run of the recorder.
func (r *recorder) prepare(t *testing.T, framework string) train.Settings {
	t.Helper()
	r.dir = t.TempDir()
	for name, text := range map[string]string{
		"modules/recorder/m.yaml": "a: 1\n", "models/recorder/m.yaml": "b: 1\n",
		"modules/other/m.yaml": "a: 1\n", "models/other/m.yaml": "b: 1\n",
		"platforms/platform_azure.yaml": platform,
		"exp.yaml":                      strings.NewReplacer("FRAMEWORK", framework, "OVERRIDES", r.overrides, "ENVBLOCK", r.envBlock).Replace(experiment),
	} {
		path := filepath.Join(r.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	root, err := config.DirRoot(r.dir)
	require.NoError(t, err)
	if r.env == nil {
		r.env = map[string]string{}
	}
	environ := backend.MapEnviron(r.env)
	e, err := config.LoadExperiment(t.Context(), filepath.Join(r.dir, "exp.yaml"), config.Options{Formats: formats.All(), Presets: []config.Root{root}, Env: environ.Lookup})
	require.NoError(t, err)
	backends, err := backend.NewRegistry(backend.Factory{
		Framework: "recorder", New: func() backend.Adapter { return r }, Launches: r.launches,
		Hooks: []backend.Hook{
			{Name: "b", Run: func(context.Context, *backend.TrainContext) error { return r.do("hook b") }},
			{Name: "a", Run: func(context.Context, *backend.TrainContext) error { return r.do("hook a") }},
		},
	}, backend.Factory{Framework: "unused", New: func() backend.Adapter { panic("nothing of an unused backend runs") }})
	require.NoError(t, err)
	for _, phase := range patch.Phases() {
		r.patches = append(r.patches, patch.Patch{ID: "at-" + string(phase), Phase: phase, Apply: func(c *patch.Context) error {
			if c.Phase != phase {
				return fmt.Errorf("phase %s in %s", phase, c.Phase)
			}
			return r.do("patches " + string(phase))
		}})
	}
	patches, err := patch.NewSet(r.patches...)
	require.NoError(t, err)
	s := train.Settings{
		Experiment: e, ModuleName: "pre_trainer", Stage: "pretrain", Backends: backends, Patches: patches, PrimusVersion: "26.5",
		Environ: environ, DetectArch: func() backend.Arch { return backend.GFX950 }, DataPath: filepath.Join(r.dir, "data"),
		Observer: backend.Observers{}, LogFile: &backend.LogFile{},
		Log: slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if r.settings != nil {
		r.settings(&s)
	}
	return s
}

func run(t *testing.T, r *recorder) error {
	t.Helper()
	return train.Run(t.Context(), r.prepare(t, "recorder"))
}

func TestOrder(t *testing.T) {
	whole := []string{
		"path", "hook b", "hook a", "prepare", "version", "convert", "patches build_args", "new", "init trainer",
		"patches setup", "setup", "init", "patches before_train", "train", "patches after_train", "cleanup",
	}
	r := &recorder{}
	require.NoError(t, run(t, r))
	assert.Equal(t, whole, r.calls)
	assert.NoError(t, r.cause)
	log := r.log.String()
	for _, line := range []string{
		"[Primus:Env] rank=0, world_size=1, local_rank=0, master=127.0.0.1:1024",
		"[Primus:BackendSetup] Running 2 setup hooks for backend 'recorder'.", "[Primus:recorder] Backend prepared",
		"[TrainRuntime] Loading trainer: stage=pretrain, trainer_class=None", "[TrainRuntime] Loaded trainer class: Recorder",
		"backend_version=0.9, primus_version=26.5, model=m.yaml, module=pre_trainer, platform=azure", "[Patch] ✓ Applied: at-setup (priority=50)",
		"Setup started.", "Setup completed.", "Init started.", "Training started.", "Training completed.", "Cleanup completed.",
	} {
		_, rest, found := strings.Cut(log, line)
		require.True(t, found, "%q in order in %s", line, r.log.String())
		log = rest
	}
}

// Whatever fails: what follows is not run, Cleanup is called once when there is a trainer, and the
// cause stays.
func TestFailures(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		at            string
		configuration bool // an error of the configuration, returned as it is
		cleanup       bool
	}{
		{"path", true, false}, {"hook a", false, false}, {"prepare", false, false}, {"convert", true, false}, {"new", true, false},
		{"init trainer", false, true}, {"setup", false, true}, {"init", false, true}, {"train", false, true},
	} {
		t.Run(tt.at, func(t *testing.T) {
			r := &recorder{failAt: tt.at, err: boom}
			err := run(t, r)
			require.ErrorIs(t, err, boom)
			assert.Equal(t, !tt.configuration, strings.HasPrefix(err.Error(), "Training execution failed: "), "%v", err)
			if !tt.cleanup {
				assert.Equal(t, tt.at, r.calls[len(r.calls)-1])
				return
			}
			assert.Equal(t, []string{tt.at, "cleanup"}, r.calls[len(r.calls)-2:])
			assert.ErrorIs(t, r.cause, boom)
		})
	}
}

func TestPanicIsAnErrorAndCleansUp(t *testing.T) {
	r := &recorder{failAt: "train"}
	err := run(t, r)
	require.ErrorContains(t, err, "Training execution failed: trainer Recorder panicked: boom")
	assert.Equal(t, []string{"train", "cleanup"}, r.calls[len(r.calls)-2:])
	assert.Error(t, r.cause)
}

func TestFailingCleanupIsAnError(t *testing.T) {
	boom := errors.New("boom")
	r := &recorder{failAt: "cleanup", err: boom}
	require.ErrorIs(t, run(t, r), boom)
}

func TestInterruption(t *testing.T) {
	r := &recorder{failAt: "train", err: backend.ErrInterrupted}
	err := run(t, r)
	require.ErrorIs(t, err, backend.ErrInterrupted)
	assert.NotContains(t, err.Error(), "failed")
	assert.Contains(t, r.log.String(), "Interrupted by user (Ctrl+C)")
	assert.NotContains(t, r.calls, "patches after_train")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r = &recorder{failAt: "init", err: fmt.Errorf("read the corpus: %w", context.Canceled)}
	require.ErrorIs(t, train.Run(ctx, r.prepare(t, "recorder")), backend.ErrInterrupted)
	assert.Equal(t, "cleanup", r.calls[len(r.calls)-1])
	r = &recorder{failAt: "init", err: fmt.Errorf("read the corpus: %w", context.Canceled)}
	require.NotErrorIs(t, run(t, r), backend.ErrInterrupted, "nobody interrupted this one")
}

func TestUnknownFramework(t *testing.T) {
	r := &recorder{}
	err := train.Run(t.Context(), r.prepare(t, "other"))
	require.ErrorIs(t, err, backend.ErrUnknown)
	assert.ErrorContains(t, err, `module "pre_trainer": unknown framework "other": available are recorder, unused`)
}

func TestStages(t *testing.T) {
	for overrides, want := range map[string]string{
		"stage: sft":              `framework recorder: given stage "sft", want pretrain`,
		"trainer_class: Recoder":  `given trainer_class "Recoder", want Recorder; did you mean "Recorder"?`,
		"trainer_class: Recorder": "",
		"stage: null":             "",
	} {
		r := &recorder{overrides: overrides}
		err := run(t, r)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		assert.NotContains(t, r.calls, "new")
	}
}

func TestEnvironment(t *testing.T) {
	r := &recorder{
		env:      map[string]string{"SET": "mine", "XLA_FLAGS": "--a=1 --b=1", "HERE": "there", "MY_TOKEN": "x"},
		envBlock: `BLOCK: 1, FROM: "${HERE:no}/${NOT_HERE:yes}", SHELL_STYLE: "$HERE ${HERE} $NOT_HERE", HF_TOKEN: geheim, FLAG: true, NONE: null`,
	}
	seen := map[string]string{}
	r.patches = []patch.Patch{{ID: "look", Phase: patch.AfterTrain, Apply: func(c *patch.Context) error {
		for name, value := range r.env {
			seen[name] = value
		}
		return nil
	}}}
	before := map[string]string{}
	for name, value := range r.env {
		before[name] = value
	}
	s := r.prepare(t, "recorder")
	require.NoError(t, train.Run(t.Context(), s))
	assert.Equal(t, map[string]string{
		"SET": "mine", "HERE": "there", "MY_TOKEN": "x", "BLOCK": "1", "FROM": "there/yes", "SHELL_STYLE": "there there $NOT_HERE",
		"HF_TOKEN": "geheim", "FLAG": "true", "DEFAULT": "d", "NEW_CHIP": "1", "XLA_FLAGS": "--a=2 --b=1 --c",
		"HF_HOME": filepath.Join(r.dir, "data", "huggingface"),
	}, seen)
	assert.Equal(t, before, r.env, "it is as before when the run has ended")
	log := r.log.String()
	for _, line := range []string{
		"[Primus:Runtime] env override: FROM=there/yes", "env override: HF_TOKEN=***", "null sets nothing",
		"[Primus:recorder] DEFAULT=d (default)", "[Primus:recorder] XLA_FLAGS merged (managed XLA knobs win)", "[Primus:Env] Set HF_HOME=",
	} {
		assert.Contains(t, log, line)
	}
	assert.NotContains(t, log, "geheim")

	r = &recorder{envBlock: "TE_FL_PREFER: vendor"}
	require.NoError(t, run(t, r))
	assert.Contains(t, r.log.String(), "write the parameter te_fl_prefer in the module")
}

func TestRanks(t *testing.T) {
	r := &recorder{env: map[string]string{"NODE_RANK": "1", "NNODES": "2"}}
	require.NoError(t, run(t, r))
	assert.NotContains(t, r.log.String(), "level=INFO", "the first rank says it")
	assert.Contains(t, r.log.String(), "odd", "but every rank warns")
	for name, value := range map[string]string{"RANK": "x", "WORLD_SIZE": "", "LOCAL_RANK": "-1", "MASTER_PORT": "1e3"} {
		r = &recorder{env: map[string]string{name: value}}
		require.ErrorContains(t, run(t, r), fmt.Sprintf("Training execution failed: variable %s: given %q, want an integer", name, value))
	}
	r = &recorder{env: map[string]string{"RANK": "2", "WORLD_SIZE": "2"}}
	require.ErrorContains(t, run(t, r), "rank 2 of a job of 2")
}

func TestMerge(t *testing.T) {
	var merged map[string]any
	r := &recorder{
		overrides: "primus_only: 5, same: x, lost: 1, rewritten: 1",
		change: func(a *backend.Args) {
			require.NoError(t, a.Set("lost", 2, "framework recorder"))
		},
	}
	r.patches = []patch.Patch{
		{ID: "rewrite", Phase: patch.BuildArgs, Apply: func(c *patch.Context) error {
			_, there := c.Args.Lookup("primus_only")
			assert.False(t, there, "what the framework does not know comes later")
			return c.SetArg("rewritten", 3)
		}},
		{ID: "look", Phase: patch.Setup, Apply: func(c *patch.Context) error {
			merged = c.Params.Any()
			return nil
		}},
	}
	require.NoError(t, run(t, r))
	assert.Equal(t, map[string]any{
		"a": int64(1), "b": int64(1), "model": "m.yaml", "same": "x", "primus_only": int64(5), "lost": int64(2), "rewritten": int64(3),
	}, merged)
	assert.Regexp(t, `level=WARN msg="\[Runtime\] argument lost: framework recorder keeps 2, the parameter's value 1 \(.*exp.yaml:12:\d+\) is dropped"`, r.log.String())
	assert.Regexp(t, `level=INFO msg="\[Runtime\] argument rewritten: patch rewrite keeps 3`, r.log.String())
}

func TestVersions(t *testing.T) {
	for _, early := range []bool{false, true} {
		ran := ""
		r := &recorder{early: early, failAt: "version", err: errors.New("no idea")}
		r.patches = []patch.Patch{
			{ID: "versioned", Phase: patch.Setup, BackendVersions: []string{"1.2.*"}, Apply: func(c *patch.Context) error {
				ran = c.BackendVersion
				return nil
			}},
		}
		require.NoError(t, run(t, r))
		assert.Equal(t, early, ran == "1.2.3")
		assert.Equal(t, !early, strings.Contains(r.log.String(), "[Primus:recorder] version unknown, so that patches for certain versions do not run: no idea"))
	}
}

func TestPatchesOfARun(t *testing.T) {
	boom := errors.New("boom")
	fails := patch.Patch{ID: "fails", Phase: patch.BeforeTrain, Apply: func(*patch.Context) error { return boom }}
	r := &recorder{patches: []patch.Patch{fails}}
	require.NoError(t, run(t, r), "a patch that fails does not end the run")
	assert.Contains(t, r.log.String(), "✗ Patch 'fails' failed: boom")

	r = &recorder{patches: []patch.Patch{fails}, settings: func(s *train.Settings) { s.StrictPatches = true }}
	require.ErrorContains(t, run(t, r), `Training execution failed: patch "fails": boom`)
	assert.NotContains(t, r.calls, "train")
	assert.Equal(t, "cleanup", r.calls[len(r.calls)-1])

	r = &recorder{patches: []patch.Patch{{ID: "odd", Phase: patch.Setup, Apply: func(*patch.Context) error { return nil }, Condition: patch.Condition{
		Holds: func(*patch.Context) (bool, error) { return false, boom },
	}}}}
	require.ErrorContains(t, run(t, r), `patch "odd": condition: boom`)

	r = &recorder{settings: func(s *train.Settings) { s.Filter = patch.ParseFilter("at-setup, at-stup") }}
	require.NoError(t, run(t, r))
	assert.NotContains(t, strings.Join(r.calls, " "), "patches before_train")
	assert.Equal(t, 1, strings.Count(r.log.String(), `PRIMUS_PATCHES: no patch \"at-stup\"; did you mean \"at-setup\"?`))
}

// A parameter of a patch is not one that the backend does not know.
func TestParametersOfPatches(t *testing.T) {
	r := &recorder{patches: []patch.Patch{{ID: "p", Keys: []string{"knob"}, Phase: patch.Convert, Apply: func(*patch.Context) error { return nil }}}}
	require.NoError(t, run(t, r))
	assert.NotContains(t, r.log.String(), "unknown knob")
	assert.Contains(t, r.log.String(), "odd")
}

// The program gets what a run needs after patches have changed the arguments, and before the
// trainer is made. A device that a patch changes would not be used, so that the run ends.
func TestNeeds(t *testing.T) {
	patched := func(key string, value any) []patch.Patch {
		return []patch.Patch{{ID: "p", Phase: patch.BuildArgs, Apply: func(c *patch.Context) error { return c.SetArg(key, value) }}}
	}
	r := &recorder{overrides: "minutes: 10, device: far", patches: patched("minutes", 3)}
	s := r.prepare(t, "recorder")
	s.Provide = func(n backend.Needs) error {
		assert.Equal(t, backend.Needs{Device: "far", CollectiveTimeout: 3 * time.Minute}, n)
		return r.do("provide")
	}
	_, err := train.NewPlan(t.Context(), s)
	require.NoError(t, err)
	assert.NotContains(t, r.calls, "provide")
	r.calls = nil
	require.NoError(t, train.Run(t.Context(), s))
	i := slices.Index(r.calls, "provide")
	assert.Equal(t, []string{"patches build_args", "provide", "new"}, r.calls[i-1:i+2])

	r = &recorder{failAt: "provide", err: errors.New("boom")}
	r.settings = func(s *train.Settings) { s.Provide = func(backend.Needs) error { return r.do("provide") } }
	require.ErrorContains(t, run(t, r), "boom")
	assert.NotContains(t, r.calls, "new")

	const want = `patch p: given "near", want "far" as before the patches of phase build_args, since ops are prepared for that device: set it in the experiment`
	r = &recorder{overrides: "device: far", patches: patched("device", "near")}
	s = r.prepare(t, "recorder")
	_, err = train.NewPlan(t.Context(), s)
	require.EqualError(t, err, want)
	require.EqualError(t, train.Run(t.Context(), s), want)
	assert.NotContains(t, r.calls, "new")
	r = &recorder{overrides: "device: far", patches: patched("device", "FAR")}
	require.NoError(t, run(t, r))
}

func TestLauncher(t *testing.T) {
	r := &recorder{}
	s := r.prepare(t, "recorder")
	s.Launch.Launcher = launch.Torchrun
	require.ErrorContains(t, train.Run(t.Context(), s), "--launcher: given torchrun, but framework recorder trains in this process")

	r = &recorder{launches: true, env: map[string]string{"GPUS_PER_NODE": "4"}}
	s = r.prepare(t, "recorder")
	s.Launch, s.Grace = launch.Options{Nodes: 2, NodeRank: 1, MasterAddr: "head"}, time.Minute
	p, err := train.NewPlan(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, launch.Options{
		Launcher: launch.Direct, Nodes: 2, NodeRank: 1, PerNode: 4, MasterAddr: "head", MasterPort: 1234, Python: "python3", Ranks: "0,last", Grace: time.Minute,
	}, p.TrainContext.Launch)
	set := map[string]string{}
	for _, c := range p.Environment {
		set[c.Name] = c.Value
	}
	assert.Equal(t, []string{"2", "1", "head", "1234"}, []string{set["NNODES"], set["NODE_RANK"], set["MASTER_ADDR"], set["MASTER_PORT"]}, "the framework reads them, too")
}
