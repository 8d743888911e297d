package reference_test

import (
	"testing"

	"github.com/primus-fl/primus/ops/norm"
)

func TestResidualAdd(t *testing.T) {
	t.Parallel()
	a := f32(t, 1, inf, inf, nan)
	run(t, norm.ResidualAdd, norm.ResidualAddArgs{A: a, B: f32(t, 2, 1, -inf, 1), Output: a})
	want(t, a, 3, inf, nan, nan)
}
