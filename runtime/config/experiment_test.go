package config_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/config"
)

var basicPresets = files{
	"modules/fw/t.yaml": "lr: 1.0e-3\nshared: module\nnested: {a: 1, b: two}\n",
	"models/fw/m.yaml":  "num_layers: 4\nshared: model\nname: m\n",
}

func TestLoadExperimentMergesInOrder(t *testing.T) {
	t.Parallel()
	exp, err := load(t, experimentHead+trainer+"    overrides: {nested: {b: 2, c: 3}, extra: null}\n", basicPresets,
		config.Options{Formats: formats.All(), Overrides: []string{"lr=1e-4", "--nested.c", "9"}, Module: "post_trainer"})
	require.NoError(t, err)
	module, err := exp.Module("post_trainer")
	require.NoError(t, err)
	assert.Equal(t, "pre_trainer", module.Name)
	assert.Equal(t, []string{"lr", "shared", "nested", "num_layers", "extra", "model"}, module.Params.Keys())
	assert.Equal(t, map[string]any{"a": int64(1), "b": int64(2), "c": int64(9)}, value(t, module.Params, "nested").Any())
	assert.Equal(t, 1e-4, value(t, module.Params, "lr").Any())
	assert.Equal(t, "module", value(t, module.Params, "shared").Any())
	assert.Equal(t, "./o/wg/u/e", exp.RootPath())
	assert.Empty(t, exp.Report.Warnings)

	require.Len(t, exp.Report.Collisions, 1)
	collision := exp.Report.Collisions[0]
	assert.Equal(t, "shared", collision.Key)
	assert.Equal(t, config.SourceModulePreset, collision.Winner)
	assert.Equal(t, `embedded/models/fw/m.yaml:2:9: modules.pre_trainer.shared: string "model" of the model preset has no effect, `+
		`string "module" of the module preset is kept (embedded/modules/fw/t.yaml:2:9)`, collision.String())
}

func value(t *testing.T, m *document.Map, path string) document.Value {
	t.Helper()
	v, ok := m.Get(path)
	require.True(t, ok, path)
	return v
}

func TestOriginsAreKept(t *testing.T) {
	t.Parallel()
	exp, err := load(t, experimentHead+trainer+"    overrides:\n      a: ${A:1}\n      b: ${B:2}\n", basicPresets,
		config.Options{Formats: formats.All(), Overrides: []string{"--x", "1"}, Env: environment(map[string]string{"A": "7"})})
	require.NoError(t, err)
	p := exp.Modules[0].Params
	for path, want := range map[string]string{
		"num_layers": "embedded/models/fw/m.yaml:1:13",
		"nested.b":   "embedded/modules/fw/t.yaml:3:19",
		"a":          "exp.yaml:12:10 (from environment variable A)",
		"b":          "exp.yaml:13:10",
		"x":          `override 1 "--x 1"`,
	} {
		origin, ok := p.Origin(path)
		require.True(t, ok, path)
		assert.True(t, strings.HasSuffix(origin.String(), want), "%s: %s", path, origin)
	}
	_, ok := p.Origin("nested.missing")
	assert.False(t, ok)
}

func TestLoadExperimentErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, experiment string
		presets          files
		options          config.Options
		wantErr          error
		want             []string
	}{
		{name: "all missing keys at once", experiment: "modules: {}\nplatform: {config: local.yaml}\n",
			want: []string{"work_group: required", "user_name: required", "exp_name: required", "workspace: required"}},
		{name: "numbers are no names", experiment: strings.Replace(experimentHead, "user_name: u", "user_name: 42", 1) + trainer,
			want: []string{"exp.yaml:2:12: user_name: given int 42, want a string; quote it"}},
		{name: "preset near miss", experiment: strings.Replace(experimentHead+trainer, "model: m.yaml", "model: llama_2m", 1),
			presets: files{"modules/fw/t.yaml": "{}", "models/fw/llama_2M.yaml": "{}", "models/fw/other.yaml": "{}"}, wantErr: fs.ErrNotExist,
			want: []string{`modules.pre_trainer.model: preset "llama_2m" not found in embedded/models/fw`, "did you mean llama_2M?", "available: llama_2M other"}},
		{name: "framework near miss", experiment: strings.Replace(experimentHead+trainer, "framework: fw", "framework: nativ", 1),
			presets: files{"modules/native/t.yaml": "{}", "models/native/m.yaml": "{}"}, wantErr: fs.ErrNotExist,
			want: []string{"no presets for nativ", "did you mean native?"}},
		{name: "preset traversal", experiment: strings.Replace(experimentHead+trainer, "config: t.yaml", "config: ../../../x.yaml", 1),
			presets: basicPresets, wantErr: config.ErrOutsideRoots, want: []string{"modules.pre_trainer.config", "leaves the preset roots"}},
		{name: "framework traversal", experiment: strings.Replace(experimentHead+trainer, "framework: fw", "framework: ../fw", 1),
			want: []string{"modules.pre_trainer.framework", "want the name of a framework"}},
		{name: "extends leaves the root", experiment: "extends: ../other.yaml\n" + experimentHead,
			wantErr: config.ErrOutsideRoots, want: []string{"exp.yaml:1:10: extends", `"../other.yaml" leaves the configuration roots`}},
		{name: "extends absolute", experiment: "extends: /etc/passwd\n" + experimentHead, wantErr: config.ErrOutsideRoots},
		{name: "preset extends leaves the root", experiment: experimentHead + trainer, wantErr: config.ErrOutsideRoots,
			presets: files{"modules/fw/t.yaml": "extends: [../../../etc.yaml]", "models/fw/m.yaml": "{}"}},
		{name: "extends itself", experiment: "extends: [exp.yaml]\n", wantErr: document.ErrCycle, want: []string{"exp.yaml -> "}},
		{name: "extends missing", experiment: "extends: gone.yaml\n", wantErr: fs.ErrNotExist, want: []string{"exp.yaml:1:10", "gone.yaml"}},
		{name: "extends null", experiment: "extends:\n", want: []string{"extends: given null, want a file name"}},
		{name: "extends mapping", experiment: "extends: {a: b}\n", want: []string{"given a mapping of 1"}},
		{name: "unset variables all at once", experiment: "a: ${NO_A}\nb: [{c: '${NO_B}'}]\n", wantErr: document.ErrUnsetVariable,
			want: []string{"exp.yaml:1:4: a: ${NO_A} has no default and the variable is not set", "b[0].c: ${NO_B} has no default"}},
		{name: "module without trainer in its name", experiment: experimentHead + "modules:\n  evaluator: {framework: fw}\n",
			want: []string{"exp.yaml:7:14: modules.evaluator: unsupported module"}},
		{name: "model missing", experiment: experimentHead + "modules:\n  pre_trainer: {framework: fw, config: t}\n",
			presets: basicPresets, want: []string{"modules.pre_trainer.model: required key is missing"}},
		{name: "modules null", experiment: experimentHead + "modules:\n", want: []string{"modules: given null, want a mapping"}},
		{name: "platform without config", experiment: strings.Replace(experimentHead, "{config: local.yaml}", "{}", 1) + trainer,
			presets: basicPresets, want: []string{"platform.config: required key is missing"}},
		{name: "incomplete platform", experiment: experimentHead + trainer, presets: files{"platforms/local.yaml": "name: x\n",
			"modules/fw/t.yaml": "{}", "models/fw/m.yaml": "{}"}, want: []string{"platform.workspace: required key is missing"}},
		{name: "module to override is missing", experiment: experimentHead + trainer, presets: basicPresets,
			options: config.Options{Formats: formats.All(), Module: "sft_trainer"}, want: []string{`no module "sft_trainer"; available modules: pre_trainer`}},
		{name: "overrides for several modules", experiment: experimentHead + "modules:\n  a_trainer: {framework: fw}\n  b_trainer: {framework: fw}\n",
			options: config.Options{Formats: formats.All(), Overrides: []string{"a=1"}}, wantErr: document.ErrUsage, want: []string{"a_trainer b_trainer"}},
		{name: "empty path of root", experiment: experimentHead, options: config.Options{Formats: formats.All(), Root: "/nonexistent"}, wantErr: config.ErrOutsideRoots},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, tt.experiment, tt.presets, tt.options)
			require.Error(t, err)
			if tt.wantErr != nil {
				require.ErrorIs(t, err, tt.wantErr)
			}
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestLoadExperimentReports(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, experiment string
		overrides        []string
		want             string
	}{
		{name: "top-level parameter", experiment: "lr: 1\n" + experimentHead + trainer,
			want: "exp.yaml:1:5: lr: int 1 has no effect, the key is ignored; parameters belong under modules.<name>.overrides"},
		{name: "top-level parameter that a module has", experiment: "num_layers: 1\n" + experimentHead + trainer,
			want: "exp.yaml:1:13: modules.pre_trainer.num_layers: int 1 of the top level has no effect, int 4 of the parameters is kept (embedded/models/fw/m.yaml:1:13); parameters belong"},
		{name: "attribute of a module", experiment: experimentHead + trainer + "    nested: 1\n",
			want: "modules.pre_trainer.nested: int 1 of the experiment has no effect, a mapping of 2 of the module preset is kept"},
		{name: "attribute that the model has", experiment: experimentHead + trainer + "    num_layers: 5\n",
			want: "modules.pre_trainer.num_layers: int 4 of the model preset has no effect, int 5 of the experiment is kept (exp.yaml:"},
		{name: "quoted default", experiment: experimentHead + trainer + "    overrides: {token: '${NO_TOKEN:\"\"}'}\n",
			want: "exp.yaml:11:24: modules.pre_trainer.overrides.token: the default \"\" of ${NO_TOKEN} keeps its quotes; write ${NO_TOKEN:}"},
		{name: "platform key", experiment: strings.Replace(experimentHead, "{config: local.yaml}", "{config: local.yaml, name: x}", 1) + trainer,
			want: `platform.name: string "x" has no effect, the key is ignored; known keys: config overrides`},
		{name: "top-level typo", experiment: "modulse: 1\n" + experimentHead + trainer, want: "did you mean \"modules\"?"},
		{name: "override typo", experiment: experimentHead + trainer + "    overrides: {num_layer: 3}\n",
			want: "exp.yaml:11:28: modules.pre_trainer.overrides.num_layer: unknown key is added as it is; did you mean \"num_layers\"?"},
		{name: "nested override typo", experiment: experimentHead + trainer, overrides: []string{"nested.betta=1"}, want: "did you mean \"beta\"?"},
		{name: "hyphens", experiment: experimentHead + trainer, overrides: []string{"--num-layers=2"}, want: "did you mean \"num_layers\"?"},
		{name: "env is no mapping", experiment: experimentHead + trainer + "env: [1]\n", want: "env: a list of 1 has no effect, the key is ignored; want a mapping"},
		{name: "duplicate key", experiment: experimentHead + "user_name: v\n" + trainer, want: `exp.yaml:2:12: user_name: string "u" of the earlier of two equal keys has no effect`},
		{name: "params block", experiment: experimentHead + trainer + "    params: {a: 1}\n", want: "modules.pre_trainer.params: a mapping of 1 has no effect, the key is ignored"},
		{name: "another name", experiment: experimentHead + trainer + "    name: x\n",
			want: `exp.yaml:11:11: modules.pre_trainer.name: string "x" has no effect, the key is ignored; the name of a module is its key`},
		{name: "late name", experiment: experimentHead + trainer + "    overrides: {name: x}\n", want: `overrides.name: string "x" has no effect`},
		{name: "late framework", experiment: experimentHead + trainer + "    overrides: {framework: x}\n", want: "after the presets were chosen"},
		{name: "empty name", experiment: strings.Replace(experimentHead, "exp_name: e", "exp_name: ''", 1) + trainer, want: "exp_name: value is empty"},
		{name: "absolute part", experiment: strings.Replace(experimentHead, "user_name: u", "user_name: /abs", 1) + trainer, want: "absolute path replaces"},
		{name: "overrides of a flat module", experiment: experimentHead + "modules:\n  a_trainer: {framework: fw, overrides: {a: 1}}\n", want: "a_trainer.overrides: a mapping of 1 has no effect, the key is ignored; a module without config"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			presets := files{"modules/fw/t.yaml": "nested: {beta: 1, ab: 2}\n", "models/fw/m.yaml": "num_layers: 4\n"}
			exp, err := load(t, tt.experiment, presets, config.Options{Formats: formats.All(), Overrides: tt.overrides})
			require.NoError(t, err)
			assert.Contains(t, strings.ReplaceAll(strings.Join(noticed(exp), "\n"), filepath.Dir(exp.File)+"/", ""), tt.want)
		})
	}
}

func TestExtendsAcrossFilesAndFormats(t *testing.T) {
	t.Parallel()
	dir := write(t, files{
		"proj/base.toml":        "work_group = 'wg'\nuser_name = 'base'\nworkspace = './o'\n[platform]\nconfig = 'local.yaml'\n",
		"proj/names.json":       `{"exp_name": "${NAME:e}", "user_name": "json"}`,
		"proj/sub/exp.yaml":     "extends: [../base.toml, ../names.json]\n" + trainer,
		"mine/models/fw/m.yaml": "extends: base.yaml\nnum_layers: 8\n",
	})
	mine, err := config.DirRoot(filepath.Join(dir, "mine"))
	require.NoError(t, err)
	embedded := memoryRoot(files{"modules/fw/t.yaml": "{}", "models/fw/m.yaml": "num_layers: 1", "models/fw/base.yaml": "hidden_size: 2\nnum_layers: 2\n"})
	exp, err := config.LoadExperiment(t.Context(), filepath.Join(dir, "proj", "sub", "exp.yaml"), config.Options{
		Formats: formats.All(),
		Root:    filepath.Join(dir, "proj"), Presets: []config.Root{mine, embedded}, Env: environment(map[string]string{"NAME": "007"}),
	})
	require.NoError(t, err)
	assert.Equal(t, "json", exp.UserName)
	assert.Equal(t, "007", exp.ExpName, "a substituted name keeps its spelling")
	assert.Equal(t, int64(8), value(t, exp.Modules[0].Params, "num_layers").Any(), "the first root wins")
	assert.Equal(t, int64(2), value(t, exp.Modules[0].Params, "hidden_size").Any(), "a preset may extend one of a later root")
}

// Overrides of the keys that say where results go change the experiment and no module, and an
// export keeps them.
func TestOverridesOfThePlace(t *testing.T) {
	t.Parallel()
	presets := files{"modules/fw/t.yaml": "{}", "models/fw/m.yaml": "{}"}
	exp, err := load(t, experimentHead+trainer, presets, config.Options{Formats: formats.All(), Overrides: []string{"exp_name=007", "--workspace", "/data/runs", "lr=1"}})
	require.NoError(t, err)
	assert.Equal(t, "/data/runs/wg/u/007", exp.RootPath())
	assert.False(t, has(exp.Modules[0].Params, "exp_name"))
	assert.True(t, has(exp.Modules[0].Params, "lr"))
	text, err := exp.ExportAs(formats.YAML{})
	require.NoError(t, err)
	again, err := load(t, string(text), presets, config.Options{Formats: formats.All()})
	require.NoError(t, err)
	assert.Equal(t, exp.RootPath(), again.RootPath())

	_, err = load(t, experimentHead+trainer, presets, config.Options{Formats: formats.All(), Overrides: []string{"exp_name=[1, 2]"}})
	require.ErrorContains(t, err, "override 1")
	require.ErrorContains(t, err, "exp_name")
}

func has(m *document.Map, key string) bool {
	_, ok := m.Lookup(key)
	return ok
}

func TestFlatModuleNeedsNoPresets(t *testing.T) {
	t.Parallel()
	exp, err := load(t, experimentHead+"modules:\n  pre_trainer: {framework: fw, model: {layers: 1}, lr: 'null', _note: x, params: {lr: 2, b: 3}}\n", nil, config.Options{Formats: formats.All()})
	require.NoError(t, err)
	module := exp.Modules[0]
	assert.Equal(t, "pre_trainer", module.Name)
	assert.Equal(t, map[string]any{"lr": nil, "b": int64(3), "model": map[string]any{"layers": int64(1)}}, module.Params.Any())
	assert.Equal(t, []string{"_note"}, module.Private.Keys())
}

func TestDefaultPlatform(t *testing.T) {
	t.Parallel()
	exp, err := load(t, strings.Replace(experimentHead, "platform: {config: local.yaml}\n", "", 1)+trainer,
		files{"platforms/platform_azure.yaml": strings.Replace(platform, "INFO", "DEBUG", 1), "modules/fw/t.yaml": "{}", "models/fw/m.yaml": "{}"}, config.Options{Formats: formats.All()})
	require.NoError(t, err)
	assert.Equal(t, "INFO", value(t, exp.Platform, "master_sink_level").Any())
	assert.Equal(t, "platform_azure.yaml", value(t, exp.Platform, "config").Any())
}

func TestRelativePathsAreShownAsTyped(t *testing.T) {
	dir := write(t, files{"a/exp.yaml": "extends: ../b/base.yaml\n", "b/base.yaml": "x: [\n"})
	t.Chdir(dir)
	_, err := config.LoadExperiment(t.Context(), "a/exp.yaml", config.Options{Formats: formats.All()})
	require.ErrorContains(t, err, "b/base.yaml:")
	assert.NotContains(t, err.Error(), dir)
	t.Chdir(filepath.Join(dir, "b"))
	_, err = config.LoadExperiment(t.Context(), "../a/exp.yaml", config.Options{Formats: formats.All()})
	require.ErrorIs(t, err, config.ErrOutsideRoots)
	require.ErrorContains(t, err, "../a/exp.yaml:1:10")
}

func TestPresetByOtherExtension(t *testing.T) {
	t.Parallel()
	exp, err := load(t, experimentHead+"modules:\n  pre_trainer: {framework: fw, config: t, model: sub/m}\n",
		files{"modules/fw/t.toml": "lr = 1.0\n[opt]\nname = 'adam'\n", "models/fw/sub/m.json": `{"num_layers": 2}`}, config.Options{Formats: formats.All()})
	require.NoError(t, err)
	assert.Equal(t, "sub/m", exp.Modules[0].Model)
	assert.Equal(t, "adam", value(t, exp.Modules[0].Params, "opt.name").Any())
}
