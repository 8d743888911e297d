package ops_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestResidualAdd(t *testing.T) {
	type args = ops.ResidualAddArgs
	good := func() args { return args{A: f32(3, 4), B: f32(3, 4), Output: f32(3, 4)} }
	testValidation(t, ops.ResidualAdd, good, []refusal[args]{
		{"no a", func(a *args) { a.A = nil }, "a", "a tensor"},
		{"no b", func(a *args) { a.B = nil }, "b", "a tensor"},
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"integers", func(a *args) { a.A = of(tensor.I64, 3, 4) }, "a", "dtype f32, bf16, f16 or f64"},
		{"dtype of b", func(a *args) { a.B = of(tensor.F16, 3, 4) }, "b", "the dtype of a, f32"},
		{"shape of b", func(a *args) { a.B = f32(4, 3) }, "b", "the shape of a, [3 4]"},
		{"dtype of output", func(a *args) { a.Output = of(tensor.F64, 3, 4) }, "output", "the dtype of a, f32"},
		{"shape of output", func(a *args) { a.Output = f32(12) }, "output", "the shape of a, [3 4]"},
		{"output overlaps a", func(a *args) { a.Output = shifted(&a.A) }, "output", "the same view as a"},
		{"output overlaps b", func(a *args) { a.Output = shifted(&a.B) }, "output", "the same view as b"},
	})
	testAccepted(t, ops.ResidualAdd, good, map[string]func(a *args){
		"into a":     func(a *args) { a.Output = a.A },
		"into b":     func(a *args) { a.Output = a.B },
		"all one":    func(a *args) { a.B, a.Output = a.A, a.A },
		"no element": func(a *args) { *a = args{A: f32(0), B: f32(0), Output: f32(0)} },
		"scalars":    func(a *args) { *a = args{A: f32(), B: f32(), Output: f32()} },
	})
	testOperands(t, ops.ResidualAdd, good(), access{"a": opregistry.AccessRead, "b": opregistry.AccessRead, "output": opregistry.AccessWrite})
}
