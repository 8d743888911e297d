//go:build !race

package onednn

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

func TestNormsAllocateNothing(t *testing.T) {
	h := openedWithPrimitives(t)
	x := opregistry.NewExec(nil, 0)
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		c := newNormCall(t, 3, d, 8, 64)
		got := testing.AllocsPerRun(20, func() {
			if err := c.run(x, h.layerNormForward, h.layerNormBackward); err != nil {
				t.Error(err)
			}
		})
		assert.Zero(t, got, "%v", d)
	}
}
