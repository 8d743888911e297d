package megatron_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shaped is the package of the shape of Megatron-LM.
func shaped(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("testdata", "Megatron-LM"))
	require.NoError(t, err)
	return dir
}

// TestRecordedNamespace compares what Megatron-LM gets with the recorded namespace, attribute for
// attribute. The parser is the recorded one.
func TestRecordedNamespace(t *testing.T) {
	type recorded struct {
		Config    string                     `json:"config"`
		Params    map[string]json.RawMessage `json:"primus_params"`
		Converted map[string]any             `json:"converted"`
		Changed   map[string][2]any          `json:"changed_by_build_args"`
		Only      []string                   `json:"primus_only"`
		Count     int                        `json:"final_count"`
	}
	cases := traintest.Recorded[[]recorded](t, "golden_megatron.json")
	parser := traintest.Recorded[json.RawMessage](t, "megatron_argparse.json")
	python := primustest.Python(t, "torch")
	for _, c := range cases {
		t.Run(c.Config, func(t *testing.T) {
			dir := t.TempDir()
			file, dump := filepath.Join(dir, "parser.json"), filepath.Join(dir, "namespace.json")
			require.NoError(t, os.WriteFile(file, parser, 0o644))
			t.Setenv("SHAPED_PARSER", file)
			t.Setenv("SHAPED_DUMP", dump)
			l := newLab(traintest.Lines(c.Params))
			l.BackendPath, l.Launch = shaped(t), launch.Options{PerNode: 1, Python: python}
			require.NoError(t, l.Run(t), l.Log.String())
			text, err := os.ReadFile(dump)
			require.NoError(t, err)
			var got map[string]any
			require.NoError(t, json.Unmarshal(text, &got))

			want := map[string]any{}
			for key, v := range c.Params {
				var value any
				require.NoError(t, json.Unmarshal(v, &value))
				want[key] = value
			}
			for key, v := range c.Converted {
				want[key] = v
			}
			for key, v := range c.Changed {
				want[key] = v[1]
			}
			want["world_size"], want["inprocess_active_world_size"] = 1.0, 1.0 // this run has one process
			assert.Len(t, got, c.Count)
			for key := range want {
				if name, isEnum := strings.CutPrefix(fmt.Sprint(want[key]), "enum:"); isEnum {
					want[key] = "enum:" + name[strings.LastIndex(name, ".")+1:] // the recorded parser does not name the classes
				}
				assert.Equal(t, want[key], got[key], key)
			}
			for key := range got {
				assert.Contains(t, want, key)
			}
		})
	}
}

// In Megatron-LM after 0.16, pretrain takes a configuration, which its main builds from the
// arguments.
func TestNewerLayout(t *testing.T) {
	l := newLab("train_iters: 2\nlr: 0.25\nmine: 3\n")
	l.Launch = launch.Options{PerNode: 1, Python: primustest.Python(t, "json")}
	l.BackendPath = traintest.Tree(t, map[string]string{
		"megatron/core/enums.py":          "import enum\n\n\nclass ModelType(enum.Enum):\n    encoder_or_decoder = 1\n",
		"megatron/training/initialize.py": "",
		"megatron/training/arguments.py": `
def add_megatron_arguments(parser):
    parser.add_argument("--train-iters", type=int)
    parser.add_argument("--lr", type=float)
    return parser

def parse_args():
    raise RuntimeError("there is no command line")

def parse_and_validate_args():
    return parse_args()
`,
		"megatron/training/__init__.py": `
def pretrain(cfg_container, datasets):
    for i in range(cfg_container["args"].train_iters):
        print(f" iteration {i + 1}/2 | lm loss: {cfg_container['args'].mine} | learning rate: {cfg_container['args'].lr} |")
`,
		"pretrain_gpt.py": `
from megatron.training import pretrain
from megatron.training.arguments import parse_and_validate_args

if __name__ == "__main__":
    pretrain({"args": parse_and_validate_args()}, None)
`,
	})
	require.NoError(t, l.Run(t), l.Log.String())
	text, err := os.ReadFile(filepath.Join(l.Dir, "g", "u", "e", "metrics.jsonl"))
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(text), `"loss":3,`), string(text))
	assert.Equal(t, 2, strings.Count(string(text), `"lr":0.25,`))
}

func TestJob(t *testing.T) {
	l := newLab("train_iters: 5\nwandb_api_key: abc\nmoe_token_dispatcher_type: alltoall\nte_fl_prefer: vendor\n")
	l.Launch = launch.Options{PerNode: 2}
	p, err := l.Plan(t)
	require.NoError(t, err)
	require.Len(t, p.Launch.Processes, 2)
	require.Len(t, p.Launch.Files, 2)
	assert.Equal(t, []string{"python3", p.Launch.Files[0].Path, p.Launch.Files[1].Path}, p.Launch.Processes[0].Argv)
	assert.LessOrEqual(t, strings.Count(p.Launch.Files[0].Content, "\n"), 300, "lines of the shim")
	var spec struct {
		Params  map[string]any
		Secrets map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(p.Launch.Files[1].Content), &spec))
	assert.Equal(t, "alltoall", spec.Params["moe_token_dispatcher_type"])
	assert.NotContains(t, spec.Params, "te_fl_prefer")
	assert.NotContains(t, p.Launch.Files[1].Content, "abc")
	assert.Equal(t, map[string]string{"wandb_api_key": "PRIMUS_SECRET_WANDB_API_KEY"}, spec.Secrets)
	assert.NotContains(t, p.Launch.Shell(p.Launch.Processes[0]), "abc")
	assert.Contains(t, strings.Join(p.Launch.Notes, ""), "AMD's Python package primus cannot be imported")
}
