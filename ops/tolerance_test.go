package ops

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/tensor"
)

func TestTolerance(t *testing.T) {
	t.Parallel()
	wide, reason := Tolerance("swiglu", tensor.F32)
	assert.Equal(t, tensor.Tolerance{Abs: 1e-6, Rel: 3e-6}, wide)
	assert.NotEmpty(t, reason)
	narrow, _ := Tolerance("swiglu", tensor.BF16)
	assert.Equal(t, 1, narrow.ULP)
	whole, reason := Tolerance("swiglu", tensor.I32)
	assert.Zero(t, whole)
	assert.NotEmpty(t, reason)
	none, reason := Tolerance("no_op", tensor.F32)
	assert.Zero(t, none)
	assert.Empty(t, reason)
}
