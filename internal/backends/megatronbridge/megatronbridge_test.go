package megatronbridge_test

import (
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/backends/megatronbridge"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const recipe = "recipe: llama\nflavor: f\n"

func newLab(params string) *traintest.Lab {
	return &traintest.Lab{Factory: megatronbridge.Factory(), Params: params}
}

func TestTreeAndVersion(t *testing.T) {
	l := newLab(recipe)
	l.BackendPath = traintest.Tree(t, map[string]string{"src/megatron/bridge/package_info.py": "__version__ = '0.2.0'\n"})
	p, err := l.Plan(t)
	require.NoError(t, err)
	assert.Equal(t, "0.2.0", p.Version)
	assert.Equal(t, []string{
		filepath.Join(l.BackendPath, "3rdparty", "Megatron-LM"), filepath.Join(l.BackendPath, "src"), l.BackendPath,
	}, p.Paths.PythonPath)
}

func TestDataSets(t *testing.T) {
	tests := []struct {
		name, params string
		want         map[string]string
	}{
		{"one path", "data_paths: ' a '\nmock: true\n", map[string]string{"data_paths": `["a"]`, "mock": "false"}},
		{"a list in a text", "train_data_path: \"['a', 'b']\"\n", map[string]string{"train_data_path": `["a","b"]`}},
		{"a list", "valid_data_path: [a]\n", map[string]string{"valid_data_path": `["a"]`}},
		{"none", "data_paths: None\ntest_data_path: ''\ndata_args_path: none\nmock: 'True'\n",
			map[string]string{"data_paths": "null", "test_data_path": "null", "data_args_path": "null", "mock": "true"}},
		{"alias", "mock_data: true\n", map[string]string{"mock": "true", "mock_data": ""}},
		{"alias and name", "mock_data: true\nmock: false\n", map[string]string{"mock": "false", "mock_data": ""}},
		{"weights", "data_paths: [0.5, a, 0.5, b, null, '']\n", map[string]string{"data_paths": `["0.5","a","0.5","b"]`, "mock": "false"}},
		{"nothing real", "data_paths: [null]\nmock: none\nmock_data: 'True'\n", map[string]string{"data_paths": "null", "mock": "true", "mock_data": ""}},
		{"arguments in a file", "data_args_path: ' f '\nmock: true\n", map[string]string{"data_args_path": `"f"`, "mock": "false"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := newLab(recipe + tt.params).Plan(t)
			require.NoError(t, err)
			for path, want := range tt.want {
				got, _ := traintest.Argument(p, path)
				assert.Equal(t, want, got, path)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for params, want := range map[string]string{
		"flavor: f\n":                    "recipe: required key is missing",
		recipe + "data_paths: 3\n":       "data_paths: given int 3, want a path or a list of paths",
		recipe + "data_paths: '[a, b'\n": `want a list such as ['a', 'b']`,
		recipe + "mock: maybe\n":         `mock: given string "maybe", want true or false`,
	} {
		_, err := newLab(params).Plan(t)
		require.ErrorContains(t, err, want)
	}
}
