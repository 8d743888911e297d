package reference_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func TestSourceServesTheCatalogue(t *testing.T) {
	t.Parallel()
	src := reference.Source()
	require.NoError(t, opregistry.NewRegistry().Register(src))
	have := map[opregistry.Handle]bool{}
	for _, impl := range src.Impls {
		have[impl.Op] = true
		want := "reference.go"
		if slices.Contains(collective.Ops(), impl.Op) {
			want = "reference.local"
		}
		assert.Equal(t, want, impl.ID)
		assert.Equal(t, opregistry.KindReference, impl.Kind)
		assert.Equal(t, 50, impl.Priority)
		assert.Empty(t, impl.Vendor)
	}
	for _, op := range ops.All() {
		assert.True(t, have[op], "an impl of %s", op.Name())
	}
	assert.Len(t, src.Impls, len(ops.All()))
}

// The reference is its own oracle here. The test finds writes to operands that are only read, or
// beyond operands, and results that are not reproducible. A sample of the cases is enough.
func TestConformance(t *testing.T) {
	t.Parallel()
	opscases.All().RunAll(t, reference.Source(), reference.Source(), opstest.Sample(20, 1), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

func TestGradients(t *testing.T) {
	t.Parallel()
	opscases.All().GradCheckAll(t, reference.Source(), reference.Source())
}
