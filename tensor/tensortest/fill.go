package tensortest

import (
	"math/rand/v2"

	"github.com/primus-fl/primus/tensor"
)

// intRange is the exclusive upper bound of the integers that Random draws.
const intRange = 8

// Random returns a contiguous tensor in Go memory whose values depend on the
// arguments alone. Floating-point values are uniform in [-1, 1], rounded to d;
// I64, I32, I16 and U8 values are uniform in [0, 8); Bool values are 0 or 1.
func Random(t TB, seed uint64, d tensor.DType, shape ...int) *tensor.Tensor {
	t.Helper()
	n := elements(t, d, shape)
	x := view(t, over(t, d, words(n*d.Size())), shape, rowMajor(shape), 0)
	rng := rand.New(rand.NewPCG(seed, uint64(d)))
	values := make([]float64, n)
	for i := range values {
		switch {
		case d.IsFloat():
			values[i] = 2*rng.Float64() - 1
		case d == tensor.Bool:
			values[i] = float64(rng.IntN(2))
		default:
			values[i] = float64(rng.IntN(intRange))
		}
	}
	if err := x.SetFloat64s(values); err != nil {
		t.Fatalf("tensortest: Random: %v", err)
	}
	return x
}

// Bytes returns a copy of the memory from the first element of x to the last
// one, including the gaps of a strided view; nil for a tensor without elements.
// Two snapshots are equal exactly when nothing in that range changed.
func Bytes(x *tensor.Tensor) []byte {
	var out []byte
	return append(out, memory(x)...)
}
