package ops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/cpufeat"
)

// The variable decides what kernels use while a command runs, and ops explain says so.
func TestExplainSaysTheInstructionSet(t *testing.T) {
	before := cpufeat.Class(true)
	t.Setenv("TE_FL_ISA", "generic")
	got := commandtest.Run(t, "ops", "explain", "generic_gemm")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "primus: instruction set of default.flagos: generic (environment TE_FL_ISA)\n")
	assert.Equal(t, before, cpufeat.Class(true), "afterwards")
	got = commandtest.Run(t, "ops", "explain", "generic_gemm", "--dtype", "f32")
	require.Zero(t, got.Code, got.Stderr)
	assert.NotContains(t, got.Stderr, "instruction set", "f32 has no choice")

	t.Setenv("TE_FL_ISA", "avx1024")
	got = commandtest.Run(t, "ops", "explain", "rmsnorm_fwd")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, `environment TE_FL_ISA: given "avx1024", want auto, generic`)
}
