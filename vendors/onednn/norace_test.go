//go:build !race

package onednn

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

func TestPrimitivesAllocateNothing(t *testing.T) {
	h := openedWithPrimitives(t)
	x := opregistry.NewExec(nil, 0)
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		c := newNormCall(t, 3, d, 8, 64)
		got := testing.AllocsPerRun(20, func() {
			if err := c.run(x, h.layerNormForward, h.layerNormBackward); err != nil {
				t.Error(err)
			}
		})
		assert.Zero(t, got, "norm of %v", d)
		g := gradientCall(t, 1, d, 1, 1, 8, 64)
		assert.Zero(t, testing.AllocsPerRun(20, func() { _ = h.softmaxGradient(x, g) }), "gradient of softmax of %v", d)
	}
}
