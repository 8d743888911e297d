package maxdiffusion_test

import (
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/backends/maxdiffusion"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newLab(params string) *traintest.Lab {
	return &traintest.Lab{Factory: maxdiffusion.Factory(), Params: params}
}

func TestJob(t *testing.T) {
	l := newLab(`
maxdiffusion_entrypoint: Flux
model_name: wan2.1
stage: pretrain
trainable: false
sink_level: null
max_train_steps: 20
prompt: a castle, far away
hf_access_token: hf_abc
override_model: {attention: flash, scan: true, rate: 1.0e-06, axes: [data, null], none: null}
`)
	l.BackendPath = traintest.Tree(t, map[string]string{"src/maxdiffusion/__init__.py": "__version__ = \"0.0.1\"\n"})
	p, err := l.Plan(t)
	require.NoError(t, err)
	assert.Equal(t, "0.0.1", p.Version)
	assert.Equal(t, []string{filepath.Join(l.BackendPath, "src"), l.BackendPath}, p.Paths.PythonPath)
	require.Len(t, p.Launch.Processes, 1, "one process for a node")
	require.Len(t, p.Launch.Files, 1)
	file := p.Launch.Files[0]
	assert.True(t, file.Temporary)
	assert.Equal(t, "max_train_steps: 20\nmodel_name: wan2.1\nprompt: a castle, far away\n", file.Content)
	assert.Equal(t, []string{
		"python3", "-m", "maxdiffusion.train_flux", file.Path, "attention=flash", "scan=True", "rate=1e-06", "axes=['data', None]", "none=None",
	}, p.Launch.Processes[0].Argv)
	require.Len(t, p.Launch.Notes, 1)
	assert.Contains(t, p.Launch.Notes[0], "parameter hf_access_token is left out: it is a secret")
}

func TestFamilies(t *testing.T) {
	for params, want := range map[string]string{
		"model_name: wan2.1\n": "maxdiffusion.train_wan",
		"pretrained_model_name_or_path: black-forest-labs/FLUX.1-dev\n":    "maxdiffusion.train_flux",
		"maxdiffusion_entrypoint: null\nmodel_name: Flux\n":                "maxdiffusion.train_flux",
		"pretrained_model_name_or_path: a/b\nmodel_name: Wan-for-flux\n":   "maxdiffusion.train_wan",
		"maxdiffusion_entrypoint: wan\npretrained_model_name_or_path: x\n": "maxdiffusion.train_wan",
	} {
		p, err := newLab(params).Plan(t)
		require.NoError(t, err)
		assert.Equal(t, want, p.Launch.Processes[0].Argv[2], params)
	}
}

// The package may be installed, so a source tree is not required; one that is named must exist.
func TestTrees(t *testing.T) {
	p, err := newLab("model_name: wan\n").Plan(t)
	require.NoError(t, err)
	assert.Empty(t, p.Problems)

	l := newLab("model_name: wan\n")
	tree := traintest.Tree(t, map[string]string{"README.md": ""})
	l.Env = map[string]string{"MAXDIFFUSION_PATH": tree}
	p, err = l.Plan(t)
	require.NoError(t, err)
	assert.Equal(t, tree, p.Paths.Dir)
	assert.Equal(t, "MAXDIFFUSION_PATH", p.Paths.Source)

	l.Env = map[string]string{"MAXDIFFUSION_PATH": filepath.Join(tree, "absent")}
	p, err = l.Plan(t)
	require.NoError(t, err)
	require.Len(t, p.Problems, 1)
	assert.Contains(t, p.Problems[0], "MAXDIFFUSION_PATH")
	assert.NotContains(t, p.Problems[0], "--backend-path")
}

func TestFaults(t *testing.T) {
	for params, want := range map[string]string{
		"steps: 1\n":                                           "set maxdiffusion_entrypoint to flux or wan",
		"maxdiffusion_entrypoint: wann\n":                      `maxdiffusion_entrypoint: given "wann", want flux or wan`,
		"model_name: wan\noverride_model: {a: {b: 1}}\n":       "override_model.a: given a mapping",
		"model_name: wan\nmax_train_steps: many\n":             `max_train_steps: given string "many"`,
		"model_name: wan\nstage: sft\n":                        `given stage "sft", want pretrain`,
		"model_name: [a]\nmaxdiffusion_entrypoint: hunyuan3\n": "model_name: given a list",
	} {
		_, err := newLab(params).Plan(t)
		assert.ErrorContains(t, err, want, params)
	}
}

func TestSeveralNodes(t *testing.T) {
	l := newLab("model_name: wan\n")
	l.Env = map[string]string{"NNODES": "2", "NODE_RANK": "0", "MASTER_ADDR": "node0"}
	p, err := l.Plan(t)
	require.NoError(t, err)
	vars := map[string]string{}
	for _, v := range p.Launch.Env {
		vars[v.Name] = v.Value
	}
	assert.Equal(t, "node0", vars["JAX_COORDINATOR_IP"])
	assert.Equal(t, "1234", vars["JAX_COORDINATOR_PORT"])
	p, err = newLab("model_name: wan\n").Plan(t)
	require.NoError(t, err)
	for _, v := range p.Launch.Env {
		assert.NotContains(t, v.Name, "JAX_")
	}
}
