package kerneltest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Margin is the number of guards before and after an operand.
const Margin = 80

// Operand is n elements between guards, which a kernel must neither change nor use in a result.
type Operand struct {
	Data []float32

	block []float32
}

// NewOperand returns n random elements that begin offset elements after an aligned address.
func NewOperand(r *rand.Rand, offset, n int) Operand {
	guard := float32(math.NaN())
	block := make([]float32, Margin+offset+n+Margin)
	for i := range block {
		block[i] = guard
	}
	data := block[Margin+offset : Margin+offset+n]
	for i := range data {
		data[i] = float32(r.NormFloat64())
	}
	return Operand{Data: data, block: block}
}

// RequireGuards requires that nothing was written beside the operand.
func (o Operand) RequireGuards(t *testing.T) {
	t.Helper()
	lo := len(o.block) - Margin - len(o.Data)
	for i, v := range o.block {
		if (i < lo || i >= lo+len(o.Data)) && v == v {
			require.Failf(t, "guard", "element %d beside the operand was overwritten with %v", i-lo, v)
		}
	}
}

// EachShape calls f for lengths 0 to 67 and some longer ones at every offset of a cache line.
func EachShape(f func(n, offset int)) {
	lengths := []int{96, 127, 128, 129, 200, 257}
	for n := range 68 {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		for offset := range 16 {
			f(n, offset)
		}
	}
}
