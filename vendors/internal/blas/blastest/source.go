package blastest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// CheckSource checks how the source of a vendor registers its product. It skips the test where the
// library is not available.
func CheckSource(t *testing.T, src opregistry.Source, vendor string) {
	t.Helper()
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(src))
	i, ok := reg.Snapshot().Index("generic_gemm")
	require.True(t, ok)
	impl := reg.Snapshot().Impls(i)[0]
	assert.Equal(t, "vendor."+vendor, impl.ID)
	assert.Equal(t, vendor, impl.Vendor)
	assert.Equal(t, vendor, impl.Source)
	assert.Equal(t, opregistry.KindVendor, impl.Kind)
	assert.Equal(t, 100, impl.Priority)
	if err := impl.Available(); err != nil {
		t.Skip(err)
	}
}

// Run returns the product of a source, its first impl.
func Run(src opregistry.Source) opregistry.Func[gemm.GenericGemmArgs] {
	return src.Impls[0].Run.(opregistry.Func[gemm.GenericGemmArgs])
}

// Square returns the arguments of a product of n×n matrices in f32.
func Square(t *testing.T, n int) gemm.GenericGemmArgs {
	matrix := func() *tensor.Tensor {
		v, err := tensor.FromSlice(make([]float32, n*n), n, n)
		require.NoError(t, err)
		return v
	}
	return gemm.GenericGemmArgs{A: matrix(), B: matrix(), D: matrix()}
}

// CheckProduct compares a product in f32 or bf16 with the reference, in small and in large products
// and in the cases of the conformance kit. flushes are the dtypes for which it takes subnormal
// numbers as 0.
func CheckProduct(t *testing.T, id string, d tensor.DType, product Gemm, flushes ...tensor.DType) {
	compare := Differential
	if d == tensor.BF16 {
		compare = DifferentialBF16
	}
	t.Run("small", func(t *testing.T) { compare(t, product, 300, 1) })
	t.Run("on several threads", func(t *testing.T) { compare(t, product, 12, 150) })
	t.Run("conformance", func(t *testing.T) {
		impl := Unlimited(id, product)
		impl.FlushesSubnormals = flushes
		opscases.All().Run(t, impl, Oracle(), opstest.WithDTypes(d), opstest.Sample(60, 1))
	})
}
