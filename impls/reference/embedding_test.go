package reference_test

import (
	"testing"

	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/tensor"
)

func TestEmbedding(t *testing.T) {
	t.Parallel()
	y := out(t, tensor.F32, 3, 2)
	index := i32(t, 2, 0, 2)
	run(t, embedding.EmbeddingFwd, embedding.EmbeddingFwdArgs{Indices: index, Weight: of(t, tensor.F32, []int{3, 2}, 1, 2, 3, 4, 5, 6), Output: y})
	want(t, y, 5, 6, 1, 2, 5, 6)

	dw := out(t, tensor.F32, 3, 2)
	a := embedding.EmbeddingBwdArgs{Grad: y, Indices: index, DWeight: dw}
	run(t, embedding.EmbeddingBwd, a)
	want(t, dw, 1, 2, 0, 0, 10, 12)
	a.Accumulate = true
	run(t, embedding.EmbeddingBwd, a)
	want(t, dw, 2, 4, 0, 0, 20, 24)
}
