package maxtext_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/backends/maxtext"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRecordedYAML compares the file that MaxText is given with the recorded one.
func TestRecordedYAML(t *testing.T) {
	type recorded struct {
		Config string                     `json:"config"`
		Params map[string]json.RawMessage `json:"primus_params"`
		YAML   string                     `json:"yaml"`
	}
	for _, c := range traintest.Recorded[[]recorded](t, "golden_maxtext.json") {
		t.Run(c.Config, func(t *testing.T) {
			delete(c.Params, "model") // of the module, where the runtime reads it
			l := &traintest.Lab{Factory: maxtext.Factory(), Params: traintest.Lines(c.Params)}
			p, err := l.Plan(t)
			require.NoError(t, err)
			require.Len(t, p.Launch.Files, 1)
			assert.Equal(t, c.YAML, p.Launch.Files[0].Content)
			assert.True(t, p.Launch.Files[0].Temporary)
		})
	}
}

const odd = `
base_config: base.yml
stage: pretrain
te_fl_prefer: vendor
sink_level: null
hf_access_token: hf_abc
empty_token: '""'
list: [1, two, null, {a: [x], b: 1e-6}]
nested: {lr: 1.0e-08, big: 3.0e+20, one: 1.0, "yes": "yes", empty: {}, none: []}
texts: ["", "1e3", "1.5", "~", "0x10", "a: b", "it's", "-", "on", "tab\there", "é", "x #y", "-x", "a,b", "2024-01-01", "[x]", "123:45", "*", "null"]
override_model: {base_emb_dim: 64, mlp: [a, b], name: "true", rate: 1.0e-06, "off": false, nothing: null}
`

func TestJob(t *testing.T) {
	l := &traintest.Lab{Factory: maxtext.Factory(), Params: strings.TrimPrefix(odd, "\n")}
	l.BackendPath = traintest.Tree(t, map[string]string{"MaxText/__init__.py": "__version__ = \"26.3\"\n", "MaxText/train.py": ""})
	p, err := l.Plan(t)
	require.NoError(t, err)
	require.Len(t, p.Launch.Processes, 1, "one process for a node")
	file := p.Launch.Files[0]
	assert.Equal(t, []string{
		"python3", "-m", "MaxText.train", file.Path, "base_emb_dim=64", "mlp=[a, b]", "name='true'", "rate=1.0e-06", "off=false", "nothing=null",
	}, p.Launch.Processes[0].Argv)
	assert.Contains(t, p.Launch.Env, launch.Variable{Name: "M_HF_ACCESS_TOKEN", Value: "hf_abc", Source: "parameter hf_access_token"})
	for _, absent := range []string{"hf_abc", "stage", "te_fl", "sink_level", "override_model"} {
		assert.NotContains(t, file.Content, absent)
	}
	assert.NotContains(t, p.Launch.Shell(p.Launch.Processes[0]), "hf_abc")

	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(python, "-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout, default=str)")
	cmd.Stdin = strings.NewReader(file.Content)
	out, err := cmd.Output()
	if err != nil {
		t.Skip("python3 without PyYAML")
	}
	assert.JSONEq(t, `{"base_config": "base.yml", "empty_token": "\"\"", "list": [1, "two", null, {"a": ["x"], "b": "1e-6"}],
		"nested": {"lr": 1e-08, "big": 3e20, "one": 1.0, "yes": "yes", "empty": {}, "none": []},
		"texts": ["", "1e3", "1.5", "~", "0x10", "a: b", "it's", "-", "on", "tab\there", "é", "x #y", "-x", "a,b", "2024-01-01", "[x]", "123:45", "*", "null"]}`, string(out), file.Content)
}

func TestLayouts(t *testing.T) {
	for file, want := range map[string]string{
		"src/maxtext/trainers/pre_train/train.py": "maxtext.trainers.pre_train.train", "src/MaxText/train.py": "MaxText.train",
	} {
		l := &traintest.Lab{Factory: maxtext.Factory(), Params: "steps: 1\n", BackendPath: traintest.Tree(t, map[string]string{file: ""})}
		p, err := l.Plan(t)
		require.NoError(t, err)
		assert.Equal(t, want, p.Launch.Processes[0].Argv[2])
	}
	l := &traintest.Lab{Factory: maxtext.Factory(), Params: "steps: 1\n", BackendPath: t.TempDir()}
	_, err := l.Plan(t)
	assert.ErrorContains(t, err, "has no trainer: want one of "+filepath.ToSlash("src/maxtext/trainers/pre_train/train.py"))
}
