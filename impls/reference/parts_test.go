package reference_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// referenceRun returns the Impl.Run of an op.
func referenceRun(t *testing.T, op opregistry.Handle) any {
	t.Helper()
	impls := reference.Source().Impls
	i := slices.IndexFunc(impls, func(i opregistry.Impl) bool { return i.Op.Name() == op.Name() })
	require.GreaterOrEqual(t, i, 0)
	return impls[i].Run
}

// partsAgree runs a call whole and in parts. Each part has to compute what the call does, bit for
// bit, and each element has to belong to a part.
func partsAgree(t *testing.T, op opregistry.Handle, call opregistry.Call) {
	t.Helper()
	run, x := referenceRun(t, op), opregistry.NewExec(nil, 0)
	require.NoError(t, call.Validate())
	whole, err := argcopy.Args(call)
	require.NoError(t, err)
	require.NoError(t, whole.Run(run, x))
	covered, err := argcopy.Replace(call, func(v *tensor.Tensor) (*tensor.Tensor, error) {
		return tensortest.Random(t, 0, v.DType(), v.Shape()...), nil
	})
	require.NoError(t, err)
	parts, expected, seen := call.Parts(), whole.Parts(), covered.Parts()
	require.NotNil(t, parts.At)
	require.Positive(t, parts.N)
	for i := range parts.N {
		part, results, err := parts.At(i)
		require.NoError(t, err)
		require.NoError(t, part.Validate(), "part %d", i)
		got, err := argcopy.Args(part)
		require.NoError(t, err)
		require.NoError(t, got.Run(run, x))
		want, _, err := expected.At(i)
		require.NoError(t, err)
		mark, _, err := seen.At(i)
		require.NoError(t, err)
		for k, o := range got.Operands() {
			if o.Access == opregistry.AccessRead || results != nil && !slices.Contains(results, o.Name) {
				continue
			}
			require.Equal(t, want.Operands()[k].Tensor.Float64s(), o.Tensor.Float64s(), "part %d, operand %s", i, o.Name)
			require.NoError(t, mark.Operands()[k].Tensor.CopyFrom(want.Operands()[k].Tensor))
		}
	}
	for k, o := range covered.Operands() {
		if o.Access != opregistry.AccessRead {
			assert.Equal(t, whole.Operands()[k].Tensor.Float64s(), o.Tensor.Float64s(), "operand %s has elements of no part", o.Name)
		}
	}
}

func TestPartsOfProducts(t *testing.T) {
	for i := range 32 {
		transA, transB, grad, accumulate, bias := i&1 > 0, i&2 > 0, i&4 > 0, i&8 > 0, i&16 > 0
		t.Run(fmt.Sprintf("trans_a=%v trans_b=%v grad=%v accumulate=%v bias=%v", transA, transB, grad, accumulate, bias), func(t *testing.T) {
			const m, n, k = 3, 1030, 5
			shape := func(rows, cols int, turned bool) []int {
				if turned {
					return []int{cols, rows}
				}
				return []int{rows, cols}
			}
			a := gemm.GenericGemmArgs{
				A: tensortest.Random(t, 1, tensor.F32, shape(k, n, transA)...), B: tensortest.Random(t, 2, tensor.F32, shape(m, k, transB)...),
				D: tensortest.Random(t, 3, tensor.F32, m, n), TransA: transA, TransB: transB, Grad: grad, Accumulate: accumulate,
			}
			if bias {
				length := n
				if grad {
					length = a.B.Shape().Cols()
				}
				a.Bias = tensortest.Random(t, 4, tensor.F32, length)
			}
			if !bias && !transB {
				a.Gelu, a.GeluIn = true, tensortest.Random(t, 5, tensor.F32, m, n)
			}
			partsAgree(t, gemm.GenericGemm, gemm.GenericGemm.At(&a))
		})
	}
}

func TestPartsOfAttention(t *testing.T) {
	for _, format := range []attention.QKVFormat{attention.BSHD, attention.SBHD} {
		for _, mask := range []attention.MaskType{attention.NoMask, attention.CausalMask} {
			t.Run(fmt.Sprint(format, mask), func(t *testing.T) {
				const b, s, h, g, d = 2, 5, 4, 2, 3
				random := func(seed uint64, heads int) *tensor.Tensor {
					if format == attention.SBHD {
						return tensortest.Random(t, seed, tensor.F32, s, b, heads, d)
					}
					return tensortest.Random(t, seed, tensor.F32, b, s, heads, d)
				}
				fwd := attention.FusedAttnFwdArgs{
					Q: random(1, h), K: random(2, g), V: random(3, g), O: random(4, h), Stats: tensortest.Random(t, 5, tensor.F32, b, h, s, 1),
					QKVFormat: format, AttnMaskType: mask, Saved: new(opregistry.Saved),
				}
				partsAgree(t, attention.FusedAttnFwd, attention.FusedAttnFwd.At(&fwd))
				require.NoError(t, attention.FusedAttnFwd.At(&fwd).Run(referenceRun(t, attention.FusedAttnFwd), opregistry.NewExec(nil, 0)))
				bwd := attention.FusedAttnBwdArgs{
					Q: fwd.Q, K: fwd.K, V: fwd.V, O: fwd.O, DO: random(6, h), Stats: fwd.Stats, DQ: random(7, h), DK: random(8, g), DV: random(9, g),
					QKVFormat: format, AttnMaskType: mask, Saved: fwd.Saved,
				}
				partsAgree(t, attention.FusedAttnBwd, attention.FusedAttnBwd.At(&bwd))
			})
		}
	}
}
