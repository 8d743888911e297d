package maxtext_test

import (
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/backends/maxtext"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlan(t *testing.T) {
	l := &traintest.Lab{Factory: maxtext.Factory(), Arch: backend.GFX942, Params: "base_config: base.yml\nsteps: 5\ntrainable: true\noverride_model:\n  base_emb_dim: 64\n"}
	l.BackendPath = traintest.Tree(t, map[string]string{"src/MaxText/__init__.py": "__version__ = \"26.4\"\n", "src/MaxText/train.py": ""})
	l.Env = map[string]string{
		"XLA_FLAGS": "--xla_gpu_autotune_level=0 --xla_mine=1", "NVTE_FUSED_ATTN": "0", "XLA_GPU_AUTOTUNE_LEVEL": "", "DUMP_HLO": "1",
		"NNODES": "2", "NODE_RANK": "1", "MASTER_ADDR": "host",
	}
	p, err := l.Plan(t)
	require.NoError(t, err)
	assert.Equal(t, "26.4", p.Version)
	assert.Equal(t, []string{filepath.Join(l.BackendPath, "src"), l.BackendPath}, p.Paths.PythonPath)
	assert.Equal(t, []string{"trainable"}, p.Added)
	assert.Equal(t, 1, p.Rank)
	changes := map[string]string{}
	for _, c := range p.Environment {
		changes[c.Name] = c.Value
	}
	assert.NotContains(t, changes, "NVTE_FUSED_ATTN", "it is set already")
	assert.Equal(t, "1", changes["HSA_NO_SCRATCH_RECLAIM"])
	assert.NotContains(t, changes, "RCCL_WARP_SPEED_AUTO")
	assert.Equal(t, "host", changes["JAX_COORDINATOR_IP"])
	assert.Equal(t, "1234", changes["JAX_COORDINATOR_PORT"])
	assert.Regexp(t, `^--xla_gpu_autotune_level=4 --xla_mine=1 --xla_gpu_memory_limit_slop_factor=95 .* --xla_dump_to=output/xla_dump_hlo$`, changes["XLA_FLAGS"])
	assert.Equal(t, "--xla_gpu_autotune_level=0 --xla_mine=1", l.Env["XLA_FLAGS"], "a plan changes nothing")
}

func TestNestedOverrides(t *testing.T) {
	_, err := (&traintest.Lab{Factory: maxtext.Factory(), Params: "override_model:\n  a:\n    b: 1\n"}).Plan(t)
	assert.ErrorContains(t, err, "override_model.a: given a mapping, want a value for the command line of MaxText")
}
