package optim_test

import (
	"testing"

	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
)

// Impls declare the dtypes of the tensors, not that of the flag which comes before them.
func TestLeadIsATensorOfTheLists(t *testing.T) {
	t.Parallel()
	lists := [][]*tensor.Tensor{checktest.ListOf(tensor.BF16), checktest.ListOf(tensor.F32)}
	flag := checktest.I32(0)
	assert.Same(t, lists[0][0], optim.MultiTensorScale.At(&optim.MultiTensorScaleArgs{NoopFlag: flag, TensorLists: lists}).Lead())
	assert.Same(t, lists[0][0], optim.MultiTensorAdam.At(&optim.MultiTensorAdamArgs{NoopFlag: flag, TensorLists: lists}).Lead())
}
