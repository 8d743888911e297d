package torchtitan_test

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/backends/torchtitan"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree is a source tree of TorchTitan as far as this program looks at it.
func tree(t *testing.T, more map[string]string) string {
	t.Helper()
	files := map[string]string{
		"torchtitan/__init__.py": "",
		"torchtitan/config/job_config.py": `
from dataclasses import dataclass, field

@dataclass
class Job:
    custom_config_module: str = ""

@dataclass
class Loader:
    workers: int = 0

@dataclass
class Training:
    steps: int = 10
    dataset_path: str | None = None
    loader: Loader = field(default_factory=Loader)

@dataclass
class Model:
    name: str = "llama3"
    converters: list[str] = field(default_factory=list)

@dataclass
class Experimental:
    custom_args_module: str = ""

@dataclass
class JobConfig:
    job: Job = field(default_factory=Job)
    training: Training = field(default_factory=Training)
    model: Model = field(default_factory=Model)
    experimental: Experimental = field(default_factory=Experimental)
`,
	}
	for name, text := range more {
		files[name] = text
	}
	return traintest.Tree(t, files)
}

func toml(t *testing.T, p *launch.Plan) map[string]any {
	t.Helper()
	require.Len(t, p.Files, 1)
	root, _, err := formats.TOML{}.Load(t.Context(), "f.toml", []byte(p.Files[0].Content))
	require.NoError(t, err, p.Files[0].Content)
	m, _ := root.Map()
	return m.Any()
}

// TestRecordedJobConfig puts the TOML file over the defaults of TorchTitan and compares with the
// recorded job configuration.
func TestRecordedJobConfig(t *testing.T) {
	type recorded struct {
		Config    string                     `json:"config"`
		Params    map[string]json.RawMessage `json:"primus_params"`
		JobConfig json.RawMessage            `json:"job_config"`
	}
	defaults := asMap(t, traintest.Recorded[json.RawMessage](t, "torchtitan_jobconfig_defaults.json"))
	for _, c := range traintest.Recorded[[]recorded](t, "golden_torchtitan.json") {
		for _, extended := range []bool{false, true} {
			t.Run(c.Config, func(t *testing.T) {
				// The section model of the parameters is a mapping, as which the runtime does not
				// take it for its own key.
				l := &traintest.Lab{Factory: torchtitan.Factory(), Params: traintest.Lines(c.Params), Env: map[string]string{}}
				if extended {
					l.Env["PYTHONPATH"] = traintest.Tree(t, map[string]string{"primus/backends/torchtitan/__init__.py": ""})
				}
				p, err := l.Plan(t)
				require.NoError(t, err)
				given := toml(t, p.Launch)
				v, err := document.FromGo(given)
				require.NoError(t, err)
				m, _ := v.Map()
				got := document.Merge(defaults, m)
				want := asMap(t, c.JobConfig)
				if extended {
					module, _ := got.Get("job.custom_config_module")
					experimental, _ := got.Get("experimental.custom_args_module")
					assert.Equal(t, experimental.Text(), module.Text())
					job, _ := got.Lookup("job")
					inner, _ := job.Map()
					b, o := document.NewBuilder(inner), document.NewBuilder(got)
					b.Set("custom_config_module", document.StringValue(""))
					o.Set("job", document.MapValue(b.Map()))
					got = o.Map()
				} else {
					want = want.Without("primus_turbo")
					assert.NotContains(t, p.Launch.Files[0].Content, `"primus_turbo"`)
					model, _ := want.Lookup("model")
					inner, _ := model.Map()
					b, o := document.NewBuilder(inner), document.NewBuilder(want)
					b.Set("converters", document.ListValue([]document.Value{}))
					o.Set("model", document.MapValue(b.Map()))
					want = o.Map()
					assert.Contains(t, strings.Join(p.Launch.Notes, "\n"), "primus cannot be imported")
				}
				assert.True(t, reflect.DeepEqual(want.Any(), got.Any()), "%v", document.Diff(want, got))
			})
		}
	}
}

func asMap(t *testing.T, text json.RawMessage) *document.Map {
	t.Helper()
	root, _, err := formats.JSON{}.Load(t.Context(), "f.json", text)
	require.NoError(t, err)
	m, ok := root.Map()
	require.True(t, ok)
	return m
}

func TestJob(t *testing.T) {
	const params = `trainable: false
training: {steps: 10, mock_data: true, dataset_path: null, loader: {workers: 2, colour: red}}
model: {name: "a \"quoted\" ${literal", converters: [primus_turbo, float8], n_layers: 2}
experimental: {custom_args_module: primus.backends.torchtitan.extension}
primus_turbo: {enable_primus_turbo: true}
lr_scheduler: {warmup: 1}
`
	l := &traintest.Lab{Factory: torchtitan.Factory(), Params: params, BackendPath: tree(t, nil), Launch: launch.Options{PerNode: 2}}
	p, err := l.Plan(t)
	require.NoError(t, err)
	require.Len(t, p.Launch.Processes, 2)
	assert.Equal(t, []string{"python3", "-m", "torchtitan.train", "--job.config_file", p.Launch.Files[0].Path}, p.Launch.Processes[0].Argv)
	assert.Equal(t, map[string]any{
		"training":     map[string]any{"steps": int64(10), "loader": map[string]any{"workers": int64(2)}},
		"model":        map[string]any{"name": `a "quoted" ${literal`, "converters": []any{"float8"}},
		"experimental": map[string]any{"custom_args_module": "primus.backends.torchtitan.extension"},
	}, toml(t, p.Launch))
	require.Len(t, p.Launch.Notes, 2)
	assert.Regexp(t, `this TorchTitan does not know them: lr_scheduler \(.*exp.yaml:\d+:\d+\), model.n_layers \(.*\), training.loader.colour \(`, p.Launch.Notes[0])

	l.Env = map[string]string{"PYTHONPATH": traintest.Tree(t, map[string]string{"primus/backends/torchtitan/__init__.py": ""})}
	p, err = l.Plan(t)
	require.NoError(t, err)
	got := toml(t, p.Launch)
	assert.Equal(t, map[string]any{"custom_config_module": "primus.backends.torchtitan.extension"}, got["job"])
	assert.Equal(t, map[string]any{"enable_primus_turbo": true}, got["primus_turbo"])
	assert.Equal(t, []any{"primus_turbo", "float8"}, got["model"].(map[string]any)["converters"])
	assert.Len(t, p.Launch.Notes, 1)

	if python, err := exec.LookPath("python3"); err == nil {
		cmd := exec.Command(python, "-c", "import sys, tomllib; tomllib.load(sys.stdin.buffer)")
		cmd.Stdin = strings.NewReader(p.Launch.Files[0].Content)
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), "No module named") {
			assert.NoError(t, err, string(out))
		}
	}
}

func TestLayouts(t *testing.T) {
	for _, tt := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"torchtitan/config/__init__.py": ""}, "has no torchtitan/config/job_config.py: this layout, whose configuration is Python code, is not supported"},
		{map[string]string{"README.md": ""}, "is not a source tree of TorchTitan"},
		{map[string]string{"torchtitan/config/job_config.py": "x = 1\n"}, "it has no class JobConfig"},
	} {
		l := &traintest.Lab{Factory: torchtitan.Factory(), Params: "training: {steps: 1}\n", BackendPath: traintest.Tree(t, tt.files)}
		_, err := l.Plan(t)
		assert.ErrorContains(t, err, tt.want)
	}
}

func TestNullOverAValue(t *testing.T) {
	l := &traintest.Lab{Factory: torchtitan.Factory(), Params: "training:\n  steps: null\n", BackendPath: tree(t, nil)}
	_, err := l.Plan(t)
	assert.ErrorContains(t, err, "training.steps: given null, but TOML, from which TorchTitan reads it, has no null")
}
