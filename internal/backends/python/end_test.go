package python_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/backends/maxtext"
	"github.com/primus-fl/primus/internal/backends/megatron"
	"github.com/primus-fl/primus/internal/backends/torchtitan"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// record is an observer that keeps what it is told, and tells of the first step.
type record struct {
	started []backend.Run
	steps   []backend.Step
	ended   []backend.Result
	python  map[string][]string // patches
	ops     []string
	first   func()
}

func (r *record) RunStarted(run backend.Run) { r.started = append(r.started, run) }

func (r *record) StepDone(s backend.Step) {
	r.steps = append(r.steps, s)
	if len(r.steps) == 1 && r.first != nil {
		r.first()
	}
}

func (r *record) PatchesApplied(phase string, ids []string) {
	for _, id := range ids {
		if !strings.HasPrefix(id, "megatron.") {
			r.python = map[string][]string{phase: ids}
		}
	}
}

func (r *record) OpEvent(rank int, e opmanager.Event) {
	switch e := e.(type) {
	case opmanager.Selected:
		r.ops = append(r.ops, fmt.Sprintf("%d: %s by %s", rank, e.Op, e.Impl.ID))
	case opmanager.FellBack:
		r.ops = append(r.ops, fmt.Sprintf("%d: %s from %s to %s: %v", rank, e.Op, e.From.ID, e.To.ID, e.Cause))
	}
}

func (r *record) RunEnded(result backend.Result) { r.ended = append(r.ended, result) }

// interpreter returns a Python with PyTorch, or skips the test.
func interpreter(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts Python processes")
	}
	return primustest.Python(t, "torch", "yaml", "tomllib")
}

// port returns a port that is free.
func port(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// lab is two ranks of a framework whose package, of the same shape, is in its testdata.
func lab(t *testing.T, framework, params string) (*traintest.Lab, *record) {
	t.Helper()
	tree := map[string]string{"megatron": "Megatron-LM"}[framework]
	if tree == "" {
		tree = framework
	}
	path, err := filepath.Abs(filepath.Join("..", framework, "testdata", tree))
	require.NoError(t, err)
	observer := &record{}
	l := &traintest.Lab{
		Params: params, BackendPath: path, Observer: observer, Dir: t.TempDir(),
		Launch: launch.Options{PerNode: 2, Python: interpreter(t), MasterPort: port(t), MasterAddr: "127.0.0.1", Ranks: "all"},
	}
	switch framework {
	case "megatron":
		l.Factory, l.Patches = megatron.Factory(), megatron.Patches()
	case "torchtitan":
		l.Factory = torchtitan.Factory()
	case "maxtext":
		l.Factory = maxtext.Factory()
	}
	return l, observer
}

// file returns a file of the run directory.
func file(t *testing.T, l *traintest.Lab, name ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{l.Dir, "g", "u", "e"}, name...)...))
	require.NoError(t, err)
	return string(text)
}

const megatronParams = "micro_batch_size: 4\nglobal_batch_size: 8\nseq_length: 16\nvocab_size: 32\nhidden_size: 16\nlr: 0.05\n"

func TestFrameworksTrain(t *testing.T) {
	for framework, params := range map[string]string{
		"megatron":   "train_iters: 12\nwandb_api_key: hf_abc\n" + megatronParams,
		"torchtitan": "training: {steps: 12, local_batch_size: 4, seq_len: 16}\noptimizer: {lr: 0.05}\ntrainable: true\n",
		"maxtext":    "base_config: base.yml\nsteps: 12\nhf_access_token: hf_abc\nstderr_sink_level: INFO\noverride_model:\n  base_emb_dim: 24\n",
	} {
		t.Run(framework, func(t *testing.T) {
			l, observer := lab(t, framework, params)
			require.NoError(t, l.Run(t), l.Log.String())
			require.Len(t, observer.steps, 12, l.Log.String())
			first, last := observer.steps[0], observer.steps[11]
			assert.Equal(t, 1, first.Step)
			assert.Equal(t, 12, last.Step)
			assert.Less(t, last.Loss, first.Loss-1, "the loss falls")
			assert.Positive(t, last.TokensPerSecond)
			assert.Positive(t, last.Tokens)
			require.Len(t, observer.ended, 1)
			assert.NoError(t, observer.ended[0].Err)
			assert.Equal(t, 12, observer.ended[0].LastStep)
			assert.Equal(t, 12, observer.ended[0].Steps)
			assert.Equal(t, 12, strings.Count(file(t, l, "metrics.jsonl"), "\n"))
			assert.Contains(t, file(t, l, "metrics.jsonl"), `"tflops_per_device":`)
			assert.True(t, strings.HasPrefix(file(t, l, "loss.png"), "\x89PNG"))
			assert.NotEmpty(t, file(t, l, "config.yaml"))
			assert.NotContains(t, l.Log.String(), "hf_abc", "a secret is in no line")
			assert.NotContains(t, l.Log.String(), "tokens/s/device", "lines of steps are read instead of shown")
			require.NoError(t, filepath.WalkDir(filepath.Join(l.Dir, "g"), func(path string, entry os.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				assert.NotContains(t, string(text), "hf_abc", "a secret is in no file: %s", path)
				return err
			}))
			left, err := filepath.Glob(filepath.Join(l.Dir, "g", "u", "e", "launch", "primus_maxtext*"))
			require.NoError(t, err)
			assert.Empty(t, left, "the temporary file is removed")
		})
	}
}

func TestARunGoesOn(t *testing.T) {
	l, observer := lab(t, "megatron", "train_iters: 5\nsave: here\nsave_interval: 5\n"+megatronParams)
	require.NoError(t, l.Run(t), l.Log.String())
	require.Len(t, observer.steps, 5)
	again, second := lab(t, "megatron", "train_iters: 8\nload: "+filepath.Join(l.Dir, "g", "u", "e", "checkpoints")+"\n"+megatronParams)
	again.Dir = l.Dir
	require.NoError(t, again.Run(t), again.Log.String())
	require.Len(t, second.steps, 3)
	assert.Equal(t, 6, second.steps[0].Step)
	assert.Less(t, second.steps[0].Loss, observer.steps[0].Loss)
	assert.Equal(t, 6, second.ended[0].FirstStep)
	assert.Equal(t, 8, strings.Count(file(t, l, "metrics.jsonl"), "\n"), "the earlier steps stay")
}

func TestATorchTitanRunGoesOn(t *testing.T) {
	saved := t.TempDir()
	params := func(steps string) string {
		return "training: {steps: " + steps + ", local_batch_size: 4, seq_len: 16}\noptimizer: {lr: 0.05}\ncheckpoint: {enable: true, interval: 4}\njob: {dump_folder: " + saved + "}\n"
	}
	l, observer := lab(t, "torchtitan", params("4"))
	require.NoError(t, l.Run(t), l.Log.String())
	again, second := lab(t, "torchtitan", params("6"))
	again.Dir = l.Dir
	require.NoError(t, again.Run(t), again.Log.String())
	require.Len(t, second.steps, 2)
	assert.Equal(t, 5, second.steps[0].Step)
	assert.Less(t, second.steps[0].Loss, observer.steps[0].Loss)
	assert.Equal(t, 6, strings.Count(file(t, l, "metrics.jsonl"), "\n"), "the earlier steps stay")
}

// Each of two nodes has a program of its own. The last one sees the steps and owns the run
// directory; the report is that of the first rank, on the other node.
func TestTwoNodes(t *testing.T) {
	first, onFirst := lab(t, "megatron", "train_iters: 4\n"+megatronParams)
	last, onLast := lab(t, "megatron", "")
	_, err := first.Plan(t)
	require.NoError(t, err)
	last.Dir, first.File = first.Dir, filepath.Join(first.Dir, "exp.yaml")
	last.File = first.File
	for rank, l := range []*traintest.Lab{first, last} {
		l.Launch.PerNode, l.Launch.Nodes, l.Launch.NodeRank, l.Launch.MasterPort = 1, 2, rank, first.Launch.MasterPort
	}
	done := make(chan error)
	go func() { done <- first.RunIn(t.Context(), t) }()
	require.NoError(t, last.Run(t), last.Log.String())
	require.NoError(t, <-done, first.Log.String())
	assert.Empty(t, onFirst.steps)
	require.Len(t, onLast.steps, 4)
	assert.Less(t, onLast.steps[3].Loss, onLast.steps[0].Loss)
	assert.Contains(t, file(t, last, "dispatch.json"), `"name": "torch"`)
	assert.Equal(t, 1, strings.Count(first.Log.String(), "AMD's Python package primus cannot be imported"))
	assert.NotContains(t, last.Log.String(), "cannot be imported", "it is said once")
}

func TestAFailedRankEndsTheJob(t *testing.T) {
	for _, tt := range []struct {
		fault, launcher string
		code            int
		want            []string
	}{
		{"kill:1:3", "direct", 137, []string{"rank 1 was ended by signal 9"}},
		{"raise:1:3", "direct", 1, []string{"rank 1 exited with 1: ValueError: a sample is broken", "its last lines (all are in ", "  | Traceback"}},
		{"import:0:3", "direct", 1, []string{"ModuleNotFoundError: No module named 'no_such_module'", "(Python 3.", "--python PROGRAM chooses another"}},
		{"raise:0:3", "torchrun", 1, []string{"rank 0 exited with 1: ValueError: a sample is broken"}},
	} {
		t.Run(tt.launcher+" "+tt.fault, func(t *testing.T) {
			l, observer := lab(t, "megatron", "train_iters: 1000000\n"+megatronParams)
			l.Launch.Launcher = tt.launcher
			t.Setenv("SHAPED_FAULT", tt.fault)
			err := l.Run(t)
			var failure *launch.Failure
			require.ErrorAs(t, err, &failure, l.Log.String())
			assert.Equal(t, tt.code, failure.ExitCode())
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
			require.Len(t, observer.ended, 1)
			assert.Error(t, observer.ended[0].Err)
			assert.Equal(t, 2, observer.ended[0].LastStep)
		})
	}
}

// light is a lab of Megatron-LM whose package computes nothing and needs no PyTorch, for tests of
// what is around it.
func light(t *testing.T, iterations string) (*traintest.Lab, *record) {
	t.Helper()
	dispatch, err := os.ReadFile(filepath.Join("testdata", "shaped_dispatch.py"))
	require.NoError(t, err)
	observer := &record{}
	return &traintest.Lab{
		Factory: megatron.Factory(), Patches: megatron.Patches(), Params: "train_iters: " + iterations + "\nlr: 0.05\n", Observer: observer, Dir: t.TempDir(),
		Launch: launch.Options{PerNode: 2, Python: primustest.Python(t, "json"), MasterPort: port(t), MasterAddr: "127.0.0.1", Ranks: "all"},
		BackendPath: traintest.Tree(t, map[string]string{
			"shaped_dispatch.py":              string(dispatch),
			"megatron/core/package_info.py":   "MAJOR = 0\nMINOR = 16\nPATCH = 0\n",
			"megatron/core/enums.py":          "import enum\n\n\nclass ModelType(enum.Enum):\n    encoder_or_decoder = 1\n",
			"megatron/training/initialize.py": "",
			"megatron/training/arguments.py": `
def add_megatron_arguments(parser):
    parser.add_argument("--train-iters", type=int)
    parser.add_argument("--lr", type=float)
    return parser
`,
			"megatron/training/__init__.py": `
import shaped_dispatch

def pretrain(datasets, model_provider, model_type, forward_step):
    from megatron.training.arguments import parse_args

    args, manager = parse_args(), shaped_dispatch.Manager()
    for i in range(1, args.train_iters + 1):
        shaped_dispatch.step(manager, args.rank, i)
        if args.rank == args.world_size - 1:
            print(f" iteration {i}/{args.train_iters} | learning rate: {args.lr} | lm loss: {1 / i} |", flush=True)
`,
			"pretrain_gpt.py": "def train_valid_test_datasets_provider():\n    pass\n\n\ndef forward_step():\n    pass\n\n\ndef model_provider():\n    pass\n",
			"gpt_builders.py": "gpt_builder = None\n",
		}),
	}, observer
}

// amdPackage is a package of the shape of AMD's, with a patch that works, one that fails and one
// that does not apply. Its logger hides what is printed.
func amdPackage(t *testing.T, framework, lower string) string {
	t.Helper()
	files := map[string]string{
		"primus/core/runtime/logging.py": `
import builtins

def init_worker_logger(primus_config, module_name, module_config):
    builtins.print = lambda *_, **__: None
`,
		"primus/core/patches/context.py": "from types import SimpleNamespace as PatchContext\n",
		"primus/core/patches/patch_registry.py": `
class Patch:
    def __init__(self, id, phase, applies, apply):
        self.id, self.phase, self.priority, self.applies_to, self.apply = id, phase, 50, lambda context: applies, apply

def lower(context):
    ` + lower + `

def broken(context):
    raise KeyError("gone")

class PatchRegistry:
    all = [Patch("lower", "build_args", True, lower), Patch("broken", "setup", True, broken), Patch("other", "setup", False, lower)]

    @classmethod
    def iter_patches(cls, backend, phase):
        return [patch for patch in cls.all if patch.phase == phase]
`,
		"primus/core/backend/backend_registry.py": `
class Adapter:
    def convert_config(self, params):
        return params

class BackendRegistry:
    @staticmethod
    def get_adapter(framework):
        return Adapter()
`,
		"primus/core/utils/import_utils.py":                         "def get_model_provider(model_type):\n    from gpt_builders import gpt_builder\n    return gpt_builder\n",
		"primus/backends/" + framework + "/training/global_vars.py": "def set_primus_global_variables(args):\n    pass\n",
	}
	for _, dir := range []string{"", "core/", "core/runtime/", "core/patches/", "core/backend/", "core/utils/", "backends/", "backends/" + framework + "/", "backends/" + framework + "/training/"} {
		files["primus/"+dir+"__init__.py"] = ""
	}
	return traintest.Tree(t, files)
}

func TestPatchesOfPythonAreReported(t *testing.T) {
	l, observer := light(t, "2")
	patches := amdPackage(t, "megatron", `context.extra["backend_args"].lr = 0.01`)
	t.Setenv("PYTHONPATH", patches)
	l.Env, l.Lenient = map[string]string{"PYTHONPATH": patches}, true
	require.NoError(t, l.Run(t), l.Log.String())
	require.Len(t, observer.steps, 2)
	assert.InDelta(t, 0.01, observer.steps[0].LR, 1e-12, "the patch has changed the argument")
	assert.Equal(t, map[string][]string{"build_args": {"lower"}}, observer.python)
	assert.Contains(t, l.Log.String(), "patch broken of phase setup has failed in Python: KeyError('gone')")
	assert.NotContains(t, l.Log.String(), "cannot be imported")
	assert.Contains(t, file(t, l, "launch", "report.jsonl"), `"id": "other", "result": "skipped"`)
	require.Len(t, observer.ended, 1)
	results := observer.ended[0].Patches
	assert.Contains(t, results, backend.PatchResult{Phase: "build_args", ID: "megatron.args.hsdp", Result: "applied", By: "primus"})
	assert.Contains(t, results, backend.PatchResult{Phase: "build_args", ID: "lower", Result: "applied", By: "python"})
	assert.Contains(t, results, backend.PatchResult{Phase: "setup", ID: "broken", Result: "failed", Reason: "KeyError('gone')", By: "python"})
	assert.Contains(t, results, backend.PatchResult{Phase: "setup", ID: "other", Result: "skipped", Reason: "condition not met", By: "python"})
	var dispatch struct {
		Patches   []backend.PatchResult
		Versions  []backend.Version
		Arguments map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(file(t, l, "dispatch.json")), &dispatch))
	assert.Equal(t, results, dispatch.Patches)
	assert.Equal(t, []string{"megatron", "python"}, versionNames(dispatch.Versions))
	assert.InDelta(t, 0.01, dispatch.Arguments["lr"], 1e-12, "the final arguments")
}

// The patches of AMD's package run before TorchTitan, which reads its TOML file as without them.
func TestPatchesOfPythonInTorchTitan(t *testing.T) {
	l, observer := lab(t, "torchtitan", "training: {steps: 3, local_batch_size: 4, seq_len: 16}\noptimizer: {lr: 0.05}\n")
	patches := amdPackage(t, "torchtitan", `import torchtitan.train; assert context.extra["backend_args"].training.steps == 3; torchtitan.train.Trainer.patched = True`)
	t.Setenv("PYTHONPATH", patches)
	l.Env, l.Lenient = map[string]string{"PYTHONPATH": patches}, true
	require.NoError(t, l.Run(t), l.Log.String())
	require.Len(t, observer.steps, 3)
	require.Len(t, observer.ended, 1)
	assert.Equal(t, []backend.PatchResult{
		{Phase: "build_args", ID: "lower", Result: "applied", By: "python"},
		{Phase: "setup", ID: "other", Result: "skipped", Reason: "condition not met", By: "python"},
		{Phase: "setup", ID: "broken", Result: "failed", Reason: "KeyError('gone')", By: "python"},
	}, observer.ended[0].Patches)
	assert.NotContains(t, l.Log.String(), "cannot be imported")
	assert.Contains(t, file(t, l, "dispatch.json"), `"steps": 3`)
}

// AMD's package is there, but not what it imports: none of its patches runs, which is said, or ends
// a strict run.
func TestAMDPackageWithoutItsRequirements(t *testing.T) {
	patches := amdPackage(t, "megatron", "pass")
	require.NoError(t, os.WriteFile(filepath.Join(patches, "primus", "core", "runtime", "logging.py"), []byte("import no_such_logger\n"), 0o644))
	t.Setenv("PYTHONPATH", patches)
	for _, lenient := range []bool{true, false} {
		l, observer := light(t, "1")
		l.Env, l.Lenient = map[string]string{"PYTHONPATH": patches}, lenient
		err := l.Run(t)
		if !lenient {
			assert.ErrorContains(t, err, "ModuleNotFoundError: No module named 'no_such_logger'")
			continue
		}
		require.NoError(t, err, l.Log.String())
		assert.Len(t, observer.steps, 1)
		assert.Equal(t, 1, strings.Count(l.Log.String(), "AMD's Python package primus is there, but not what it imports (No module named 'no_such_logger'): none of its patches runs"))
	}
}

func versionNames(versions []backend.Version) []string {
	var names []string
	for _, v := range versions {
		names = append(names, v.Name)
	}
	return names
}

// What TransformerEngine-FL writes in the processes arrives as the events of an op manager, and it
// chooses by the policy of the run.
func TestDispatchInTheProcesses(t *testing.T) {
	l, observer := light(t, "3")
	p := oppolicy.Default()
	require.NoError(t, p.SetPrefer("vendor", "--prefer"))
	l.Manager = opmanager.New(opregistry.NewRegistry(), p, opmanager.Settings{})
	t.Cleanup(l.Manager.Close)
	require.NoError(t, l.Run(t), l.Log.String())
	assert.ElementsMatch(t, []string{
		"0: rmsnorm_fwd by vendor.cuda", "0: rmsnorm_bwd by vendor.cuda", "1: rmsnorm_fwd by vendor.cuda", "1: rmsnorm_bwd by vendor.cuda",
		"1: rmsnorm_bwd from vendor.cuda to default.flagos: no kernel for this shape",
	}, observer.ops)
	want := []backend.RankUse{
		{Op: "rmsnorm_bwd", Impl: "default.flagos", Kind: "flagos", Fallbacks: 1},
		{Op: "rmsnorm_bwd", Impl: "vendor.cuda", Kind: "vendor", Vendor: "cuda", Ranks: 2, Errors: 1},
		{Op: "rmsnorm_fwd", Impl: "vendor.cuda", Kind: "vendor", Vendor: "cuda", Ranks: 2},
	}
	require.Len(t, observer.ended, 1)
	assert.Equal(t, want, observer.ended[0].Ranks)
	var dispatch struct {
		Ranks  []backend.RankUse
		Policy struct{ Prefer string }
	}
	require.NoError(t, json.Unmarshal([]byte(file(t, l, "dispatch.json")), &dispatch))
	assert.Equal(t, want, dispatch.Ranks)
	assert.Equal(t, "vendor", dispatch.Policy.Prefer)
	assert.Equal(t, 1, strings.Count(l.Log.String(), "op rmsnorm_bwd fell back from vendor.cuda to default.flagos in rank 1: no kernel for this shape"))
}

func TestFrameworksOwnErrors(t *testing.T) {
	l, _ := lab(t, "megatron", "train_iters: 2\n"+strings.Replace(megatronParams, "global_batch_size: 8", "global_batch_size: 6", 1))
	assert.ErrorContains(t, l.Run(t), "global batch size (6) is not divisible by micro batch size (4) times data parallel size (2)")
}

func TestAnInterruptEndsTheRun(t *testing.T) {
	for launcher, processes := range map[string]string{"direct": "2 processes", "torchrun": "1 processes"} {
		t.Run(launcher, func(t *testing.T) {
			l, observer := lab(t, "megatron", "train_iters: 1000000\n"+megatronParams)
			l.Launch.Launcher = launcher
			ctx, cancel := context.WithCancel(t.Context())
			observer.first = cancel
			err := l.RunIn(ctx, t)
			require.ErrorIs(t, err, backend.ErrInterrupted)
			require.Len(t, observer.ended, 1)
			assert.ErrorIs(t, observer.ended[0].Err, backend.ErrInterrupted)
			assert.Contains(t, l.Log.String(), "interrupt is forwarded to "+processes)
		})
	}
}

func TestAHangIsEnded(t *testing.T) {
	l, observer := lab(t, "megatron", "train_iters: 1000000\n"+megatronParams)
	t.Setenv("SHAPED_FAULT", "hang:1:3")
	l.Launch.Hang, l.Launch.HangEnds = 10*time.Minute, true
	var passed time.Duration
	l.Launch.Now = func() time.Time { // once the rank sleeps, an hour passes between any two readings
		if log, err := os.ReadFile(filepath.Join(l.Dir, "g", "u", "e", "ranks", "rank-1.log")); err == nil && strings.Contains(string(log), "sleeps") {
			passed += time.Hour
		}
		return time.Now().Add(passed)
	}
	err := l.Run(t)
	require.ErrorContains(t, err, "no rank has written a line for 10m0s (--hang-timeout)")
	assert.Len(t, observer.steps, 2)
	assert.Contains(t, file(t, l, "ranks", "rank-1.log"), "in misbehave", "the rank says where it was")
	var failure *launch.Failure
	require.True(t, errors.As(err, &failure), fmt.Sprint(err))
	assert.Equal(t, launch.HangCode, failure.ExitCode())
}
