package optim_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// pieces returns n vectors of size elements that lie one after the other, in random order.
func pieces(n, size int) []*tensor.Tensor {
	memory := checktest.F32(n * size)
	out := make([]*tensor.Tensor, n)
	for to, from := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		v, err := memory.Slice(0, from*size, (from+1)*size)
		if err != nil {
			panic(err)
		}
		out[to] = v
	}
	return out
}

func adamOf(n int) optim.MultiTensorAdamArgs {
	all := pieces(4*n, 2)
	return optim.MultiTensorAdamArgs{
		NoopFlag: checktest.I32(0), Step: 1, TensorLists: [][]*tensor.Tensor{all[:n], all[n : 2*n], all[2*n : 3*n], all[3*n:]},
	}
}

func overlapOf(t *testing.T, err error) string {
	t.Helper()
	arg, ok := errors.AsType[*opregistry.ArgError](err)
	require.True(t, ok, "given %v, want an ArgError", err)
	return arg.Operand + " with " + arg.Want
}

func TestListsMayNotOverlap(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 100, 128, 129, 1000, 1536, 1537, 4000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			a := adamOf(n)
			require.NoError(t, optim.MultiTensorAdam.Validate(a))
			// Each pair of lists, first and last tensors, and tensors of one list.
			for l := range 4 {
				for other := range l {
					wrong := adamOf(n)
					wrong.TensorLists[l][n-1] = wrong.TensorLists[other][0]
					got := overlapOf(t, optim.MultiTensorAdam.Validate(wrong))
					assert.Equal(t, fmt.Sprintf("tensor_lists[%d][%d] with memory apart from tensor_lists[%d][0]", l, n-1, other), got)
				}
			}
			if n > 1 {
				wrong := adamOf(n)
				wrong.TensorLists[2][n-1] = wrong.TensorLists[2][0]
				assert.Contains(t, overlapOf(t, optim.MultiTensorAdam.Validate(wrong)), "memory apart from tensor_lists[2][0]")
				// Two parameters may have the same gradient.
				right := adamOf(n)
				right.TensorLists[0][n-1] = right.TensorLists[0][0]
				assert.NoError(t, optim.MultiTensorAdam.Validate(right))
			}
		})
	}
}

func TestListsOfThousandsNeedNoHeap(t *testing.T) {
	a := adamOf(4000)
	assert.Zero(t, testing.AllocsPerRun(2, func() {
		if err := optim.MultiTensorAdam.Validate(a); err != nil {
			t.Error(err)
		}
	}))
	flat := optim.MultiTensorScaleArgs{NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{a.TensorLists[1], a.TensorLists[1]}}
	assert.NoError(t, optim.MultiTensorScale.Validate(flat), "in place")
}

// Interleaved views without a shared byte are apart.
func TestListsOfInterleavedViews(t *testing.T) {
	t.Parallel()
	memory := checktest.F32(5, 12)
	column := func(lo, hi int) *tensor.Tensor {
		v, err := memory.Slice(1, lo, hi)
		require.NoError(t, err)
		return v
	}
	a := optim.MultiTensorAdamArgs{NoopFlag: checktest.I32(0), Step: 1, TensorLists: [][]*tensor.Tensor{
		{column(0, 3)}, {column(3, 6)}, {column(6, 9)}, {column(9, 12)},
	}}
	require.NoError(t, optim.MultiTensorAdam.Validate(a))
	a.TensorLists[3][0] = column(8, 11)
	assert.Equal(t, "tensor_lists[3][0] with memory apart from tensor_lists[2][0]", overlapOf(t, optim.MultiTensorAdam.Validate(a)))
}

func TestScaleListsInPlace(t *testing.T) {
	t.Parallel()
	x, y := checktest.F32(4), checktest.F32(4)
	args := func(in, out []*tensor.Tensor) error {
		return optim.MultiTensorScale.Validate(optim.MultiTensorScaleArgs{NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{in, out}})
	}
	assert.NoError(t, args([]*tensor.Tensor{x, y}, []*tensor.Tensor{x, y}))
	assert.Equal(t, "tensor_lists[1][1] with memory apart from tensor_lists[0][0]",
		overlapOf(t, args([]*tensor.Tensor{x, y}, []*tensor.Tensor{checktest.F32(4), x})), "not the input of another one")
	assert.Equal(t, "tensor_lists[1][1] with memory apart from tensor_lists[1][0]",
		overlapOf(t, args([]*tensor.Tensor{x, y}, []*tensor.Tensor{x, x})), "written twice")
	assert.Contains(t, overlapOf(t, args([]*tensor.Tensor{x}, []*tensor.Tensor{checktest.Shifted(&x)})), "memory apart")
}
