package opscases_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func TestEveryOpHasCasesAndBounds(t *testing.T) {
	t.Parallel()
	kit := opscases.All()
	for _, op := range ops.All() {
		assert.NotNil(t, kit.Suite(op), op.Name())
		assert.NotEmpty(t, op.Tolerance().Reason, "a reason for the bound of %s", op.Name())
	}
	assert.Len(t, kit.Suites, len(ops.All()), "one suite for each op")

	alien := opregistry.NewOp("alien", opregistry.Schema[struct{}]{})
	assert.Nil(t, kit.Suite(alien))
}

// gradientName matches the names of backward ops.
var gradientName = regexp.MustCompile(`_(bwd|backward)(_|$)|^(dbias_)?d[a-z]*(elu|lu)$|_dswiglu$`)

func TestEveryBackwardOpHasGradCases(t *testing.T) {
	t.Parallel()
	have := map[opregistry.Handle]bool{}
	for _, g := range opscases.All().Gradients {
		assert.False(t, have[g.Backward], "%s twice", g.Backward.Name())
		have[g.Backward] = true
		assert.NotEmpty(t, g.Cases(), g.Backward.Name())
	}
	for _, op := range ops.All() {
		if gradientName.MatchString(op.Name()) {
			assert.True(t, have[op], "gradient cases of %s", op.Name())
		}
	}
	assert.True(t, have[gemm.GenericGemm] && have[norm.ResidualAdd], "ops that are their own gradient")
}

func TestCaseNamesAreUnique(t *testing.T) {
	t.Parallel()
	for _, op := range ops.All() {
		suite := opscases.All().Suite(op)
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64} {
			names := suite.Names(d)
			slices.Sort(names)
			assert.Len(t, slices.Compact(slices.Clone(names)), len(names), "%s, %v: %v", op.Name(), d, names)
		}
	}
}

func TestPartialOracleSkipsWhatItDeclines(t *testing.T) {
	t.Parallel()
	residual := func(run opregistry.Func[norm.ResidualAddArgs]) opregistry.Impl {
		return opregistry.Impl{Op: norm.ResidualAdd, ID: "reference.x", Kind: opregistry.KindReference, Run: run}
	}
	nothing := func(*opregistry.Exec, norm.ResidualAddArgs) error { return nil }
	declines := func(*opregistry.Exec, norm.ResidualAddArgs) error { return opregistry.Unsupported("no function") }
	f32 := opstest.WithDTypes(tensor.F32)

	results, err := opscases.All().Verify(residual(nothing), residual(declines), f32, opstest.PartialOracle())
	require.NoError(t, err)
	results[0].Seconds = 0
	assert.Equal(t, []opstest.Result{{Op: "residual_add", Impl: "reference.x", DType: tensor.F32}}, results)

	results, err = opscases.All().Verify(residual(nothing), residual(declines), f32)
	require.NoError(t, err)
	require.NotEmpty(t, results[0].Failures)
	assert.Contains(t, results[0].Failures[0].Reason, "the oracle: unsupported: no function")
}
