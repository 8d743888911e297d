package norm_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

func TestResidualAdd(t *testing.T) {
	type args = norm.ResidualAddArgs
	good := func() args { return args{A: checktest.F32(3, 4), B: checktest.F32(3, 4), Output: checktest.F32(3, 4)} }
	checktest.Validation(t, norm.ResidualAdd, good, []checktest.Refusal[args]{
		{Name: "no a", Edit: func(a *args) { a.A = nil }, Operand: "a", Want: "a tensor"},
		{Name: "no b", Edit: func(a *args) { a.B = nil }, Operand: "b", Want: "a tensor"},
		{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "integers", Edit: func(a *args) { a.A = checktest.Zeros(tensor.I64, 3, 4) }, Operand: "a", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "dtype of b", Edit: func(a *args) { a.B = checktest.Zeros(tensor.F16, 3, 4) }, Operand: "b", Want: "the dtype of a, f32"},
		{Name: "shape of b", Edit: func(a *args) { a.B = checktest.F32(4, 3) }, Operand: "b", Want: "the shape of a, [3 4]"},
		{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.F64, 3, 4) }, Operand: "output", Want: "the dtype of a, f32"},
		{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(12) }, Operand: "output", Want: "the shape of a, [3 4]"},
		{Name: "output overlaps a", Edit: func(a *args) { a.Output = checktest.Shifted(&a.A) }, Operand: "output", Want: "the same view as a"},
		{Name: "output overlaps b", Edit: func(a *args) { a.Output = checktest.Shifted(&a.B) }, Operand: "output", Want: "the same view as b"},
	})
	checktest.Accepted(t, norm.ResidualAdd, good, map[string]func(a *args){
		"into a":     func(a *args) { a.Output = a.A },
		"into b":     func(a *args) { a.Output = a.B },
		"all one":    func(a *args) { a.B, a.Output = a.A, a.A },
		"no element": func(a *args) { *a = args{A: checktest.F32(0), B: checktest.F32(0), Output: checktest.F32(0)} },
		"scalars":    func(a *args) { *a = args{A: checktest.F32(), B: checktest.F32(), Output: checktest.F32()} },
	})
	checktest.Operands(t, norm.ResidualAdd, good(), checktest.Access{"a": opregistry.AccessRead, "b": opregistry.AccessRead, "output": opregistry.AccessWrite})
}
