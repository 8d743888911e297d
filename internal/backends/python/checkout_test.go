package python_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/backends/maxdiffusion"
	"github.com/primus-fl/primus/internal/backends/maxtext"
	"github.com/primus-fl/primus/internal/backends/megatron"
	"github.com/primus-fl/primus/internal/backends/megatronbridge"
	"github.com/primus-fl/primus/internal/backends/torchtitan"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// standins are the modules that AMD's package and the frameworks import and that need not be
// installed to read arguments.
var standins = strings.Join([]string{
	"torch", "megatron.rl", "transformer_engine", "apex", "flash_attn", "nvidia_resiliency_ext", "jax", "torchao", "wandb", "tensorboard", "modelopt", "triton",
	"megatron_energon", "tyro", "torchdata", "tokenizers", "datasets", "safetensors", "einops", "transformers", "primus_turbo", "loguru", "mlflow", "numpy",
	"primus_mllog", "fla", "mamba_ssm", "causal_conv1d", "tqdm", "pydantic", "httpx", "openai", "fastapi", "uvicorn", "omegaconf",
}, ":")

// checkoutCase is an experiment of a checkout of Primus with what this program gives the framework.
type checkoutCase struct {
	Config    string   `json:"config"`
	Framework string   `json:"framework"`
	Module    string   `json:"module"`
	Root      string   `json:"root"`
	Files     []string `json:"files"`
}

var (
	frameworkLine  = regexp.MustCompile(`(?m)^\s+framework:\s*(\w+)`)
	trainingModule = regexp.MustCompile(`(?m)^\s+(pre|post)_trainer:`)
)

// TestExperimentsOfPrimus compares the files that frameworks are given for the experiments of a
// checkout with those of AMD's own Python code.
func TestExperimentsOfPrimus(t *testing.T) {
	for _, name := range []string{"PRIMUS_CHECKOUT", "MEGATRON_CHECKOUT", "TORCHTITAN_CHECKOUT"} {
		if os.Getenv(name) == "" {
			t.Skip("PRIMUS_CHECKOUT, MEGATRON_CHECKOUT and TORCHTITAN_CHECKOUT do not name checkouts of Primus and of the commits that it pins")
		}
	}
	checkout := os.Getenv("PRIMUS_CHECKOUT")
	interpreter := primustest.Python(t, "yaml", "tomllib", "pip")
	factories := map[string]backend.Factory{
		"megatron": megatron.Factory(), "torchtitan": torchtitan.Factory(), "maxtext": maxtext.Factory(), "maxdiffusion": maxdiffusion.Factory(),
		"megatron_bridge": megatronbridge.Factory(),
	}
	var cases []checkoutCase
	require.NoError(t, filepath.WalkDir(filepath.Join(checkout, "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		framework := frameworkLine.FindSubmatch(text)
		if framework == nil || !trainingModule.Match(text) || bytes.Contains(text, []byte("<YOUR_")) {
			return nil
		}
		factory, ok := factories[string(framework[1])]
		if !ok {
			return nil
		}
		l := &traintest.Lab{
			Factory: factory, File: path, Presets: []config.Root{{Name: "checkout", FS: os.DirFS(filepath.Join(checkout, "primus", "configs"))}}, Lenient: true,
			Launch: launch.Options{PerNode: 1},
		}
		switch factory.Framework {
		case "megatron":
			l.Patches, l.BackendPath = megatron.Patches(), os.Getenv("MEGATRON_CHECKOUT")
		case "torchtitan":
			l.BackendPath = os.Getenv("TORCHTITAN_CHECKOUT")
		}
		p, err := l.Plan(t)
		if !assert.NoError(t, err, path) {
			return nil
		}
		c := checkoutCase{Config: path, Framework: factory.Framework, Module: p.ModuleName, Root: filepath.Dir(p.Launch.LogDir)}
		for _, f := range p.Launch.Files {
			c.Files = append(c.Files, f.Content)
		}
		cases = append(cases, c)
		return nil
	}))
	require.NotEmpty(t, cases)
	dir := t.TempDir()
	list, shim := filepath.Join(dir, "cases.json"), filepath.Join(dir, "shim.py")
	text, err := json.Marshal(cases)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(list, text, 0o644))
	source, err := os.ReadFile("shim.py")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(shim, source, 0o644))
	here, err := filepath.Abs("testdata")
	require.NoError(t, err)
	cmd := exec.Command(interpreter, filepath.Join(here, "checkouts", "compare.py"), list)
	cmd.Dir = checkout
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(here, "standins"), "STANDINS="+standins, "SHIM="+shim, "PYTHONDONTWRITEBYTECODE=1")
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	require.NoError(t, err, faults.String())
	compared := map[string]int{}
	for line := range bytes.Lines(out) {
		var result struct {
			Config, Framework string
			Differences       []string
		}
		require.NoError(t, json.Unmarshal(line, &result))
		compared[result.Framework]++
		assert.Empty(t, result.Differences, result.Config)
	}
	t.Logf("compared: %v", compared)
	assert.Len(t, compared, len(factories))
}

// TestAMDPatchesRun runs the shim with the real sources of a framework and AMD's real patches up to
// the call that would train.
func TestAMDPatchesRun(t *testing.T) {
	for _, tt := range []struct {
		framework, tree, file string
		factory               backend.Factory
		patches               []patch.Patch
		applied               map[string]int
		check                 func(t *testing.T, given map[string]any)
	}{
		{
			"megatron", "MEGATRON_CHECKOUT", "megatron/configs/MI300X/llama2_7B-BF16-pretrain.yaml", megatron.Factory(), megatron.Patches(),
			map[string]int{"build_args": 11, "setup": 3, "before_train": 23},
			func(t *testing.T, given map[string]any) { assert.Greater(t, len(given), 800) },
		},
		{
			"torchtitan", "TORCHTITAN_CHECKOUT", "torchtitan/configs/MI300X/llama3.1_8B-BF16-pretrain.yaml", torchtitan.Factory(), nil,
			map[string]int{"setup": 11},
			func(t *testing.T, given map[string]any) { assert.Contains(t, given, "primus_turbo") },
		},
	} {
		t.Run(tt.framework, func(t *testing.T) {
			checkout, tree := os.Getenv("PRIMUS_CHECKOUT"), os.Getenv(tt.tree)
			if checkout == "" || tree == "" {
				t.Skipf("PRIMUS_CHECKOUT and %s do not name checkouts of Primus and of the framework that it pins", tt.tree)
			}
			interpreter := primustest.Python(t, "yaml", "tomllib", "pip")
			l := &traintest.Lab{
				Factory: tt.factory, Patches: tt.patches, BackendPath: tree, Launch: launch.Options{PerNode: 1},
				File:    filepath.Join(checkout, "examples", filepath.FromSlash(tt.file)),
				Presets: []config.Root{{Name: "checkout", FS: os.DirFS(filepath.Join(checkout, "primus", "configs"))}},
			}
			p, err := l.Plan(t)
			require.NoError(t, err)
			dir := t.TempDir()
			report, given := filepath.Join(dir, "report.jsonl"), filepath.Join(dir, "given.json")
			for _, f := range p.Launch.Files {
				text := strings.ReplaceAll(f.Content, filepath.Join(filepath.Dir(f.Path), "report.jsonl"), report)
				require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(f.Path)), []byte(text), 0o644))
			}
			here, err := filepath.Abs("testdata")
			require.NoError(t, err)
			argv := []string{filepath.Join(here, "checkouts", "run_shim.py"), given}
			for _, word := range p.Launch.Processes[0].Argv[1:] {
				if filepath.IsAbs(word) {
					word = filepath.Join(dir, filepath.Base(word))
				}
				argv = append(argv, word)
			}
			cmd := exec.Command(interpreter, argv...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(here, "standins")+":"+checkout, "STANDINS="+standins, "PYTHONDONTWRITEBYTECODE=1", "RANK=0", "WORLD_SIZE=1")
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, string(said))
			var values map[string]any
			text, err := os.ReadFile(given)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &values))
			tt.check(t, values)

			applied := map[string]int{}
			text, err = os.ReadFile(report)
			require.NoError(t, err)
			for line := range bytes.Lines(text) {
				var e struct{ Event, Phase, ID, Result, Reason, Text string }
				require.NoError(t, json.Unmarshal(line, &e))
				assert.NotEqual(t, "warning", e.Event, e.Text)
				assert.NotEqual(t, "failed", e.Result, "%s: %s", e.ID, e.Reason)
				if e.Result == "applied" {
					applied[e.Phase]++
				}
			}
			assert.Equal(t, tt.applied, applied)
		})
	}
}
