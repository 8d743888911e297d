package ops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestActivation(t *testing.T) {
	type args = ops.ActivationArgs
	for _, op := range []*opregistry.Op[args]{ops.GELU, ops.QGELU, ops.ReLU, ops.SReLU, ops.SiLU} {
		t.Run(op.Name(), func(t *testing.T) {
			good := func() args { return args{Input: f32(3, 4), Output: f32(3, 4)} }
			testValidation(t, op, good, []refusal[args]{
				{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
				{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
				{"dtype", func(a *args) { a.Input = of(tensor.U8, 3, 4) }, "input", "dtype f32, bf16, f16 or f64"},
				{"two dtypes", func(a *args) { a.Output = of(tensor.BF16, 3, 4) }, "output", "the dtype of input, f32"},
				{"shape of output", func(a *args) { a.Output = f32(12) }, "output", "the shape of input, [3 4]"},
				{"output overlaps input", func(a *args) { a.Output = shifted(&a.Input) }, "output", "the same view as input"},
			})
			testAccepted(t, op, good, map[string]func(a *args){
				"in place": func(a *args) { a.Output = a.Input },
				"scalar":   func(a *args) { a.Input, a.Output = f32(), f32() },
				"empty":    func(a *args) { a.Input, a.Output = f32(3, 0), f32(3, 0) },
			})
			testOperands(t, op, good(), access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
		})
	}
}

func TestDActivation(t *testing.T) {
	type args = ops.DActivationArgs
	for _, op := range []*opregistry.Op[args]{ops.DGELU, ops.DQGELU, ops.DReLU, ops.DSReLU, ops.DSiLU} {
		t.Run(op.Name(), func(t *testing.T) {
			good := func() args { return args{Grad: f32(3, 4), FwdInput: f32(3, 4), Output: f32(3, 4)} }
			testValidation(t, op, good, []refusal[args]{
				{"no fwd_input", func(a *args) { a.FwdInput = nil }, "fwd_input", "a tensor"},
				{"integers", func(a *args) { a.FwdInput = of(tensor.I32, 3, 4) }, "fwd_input", "dtype f32, bf16, f16 or f64"},
				{"no grad", func(a *args) { a.Grad = nil }, "grad", "a tensor"},
				{"dtype of grad", func(a *args) { a.Grad = of(tensor.F16, 3, 4) }, "grad", "the dtype of fwd_input, f32"},
				{"shape of grad", func(a *args) { a.Grad = f32(4, 3) }, "grad", "the shape of fwd_input, [3 4]"},
				{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
				{"dtype of output", func(a *args) { a.Output = of(tensor.F16, 3, 4) }, "output", "the dtype of fwd_input, f32"},
				{"shape of output", func(a *args) { a.Output = f32(4, 3) }, "output", "the shape of fwd_input, [3 4]"},
				{"output overlaps fwd_input", func(a *args) { a.Output = shifted(&a.FwdInput) }, "output", "the same view as fwd_input"},
				{"output overlaps grad", func(a *args) { a.Output = shifted(&a.Grad) }, "output", "the same view as grad"},
			})
			testAccepted(t, op, good, map[string]func(a *args){
				"into grad":      func(a *args) { a.Output = a.Grad },
				"into fwd_input": func(a *args) { a.Output = a.FwdInput },
			})
			testOperands(t, op, good(), access{"grad": opregistry.AccessRead, "fwd_input": opregistry.AccessRead, "output": opregistry.AccessWrite})
		})
	}
}

func TestDBiasDActivation(t *testing.T) {
	type args = ops.DBiasDActivationArgs
	for _, op := range []*opregistry.Op[args]{ops.DBiasDGELU, ops.DBiasDSiLU, ops.DBiasDReLU, ops.DBiasDQGELU, ops.DBiasDSReLU} {
		t.Run(op.Name(), func(t *testing.T) {
			good := func() args {
				return args{Grad: f32(2, 3, 4), FwdInput: f32(2, 3, 4), DBias: f32(4), Output: f32(2, 3, 4)}
			}
			testValidation(t, op, good, []refusal[args]{
				{"no fwd_input", func(a *args) { a.FwdInput = nil }, "fwd_input", "a tensor"},
				{"scalars", func(a *args) { a.Grad, a.FwdInput, a.Output = f32(), f32(), f32() }, "fwd_input", "at least 1 axes"},
				{"shape of grad", func(a *args) { a.Grad = f32(6, 4) }, "grad", "the shape of fwd_input, [2 3 4]"},
				{"shape of output", func(a *args) { a.Output = f32(6, 4) }, "output", "the shape of fwd_input, [2 3 4]"},
				{"no dbias", func(a *args) { a.DBias = nil }, "dbias", "a tensor"},
				{"dtype of dbias", func(a *args) { a.DBias = of(tensor.I32, 4) }, "dbias", "dtype f32, bf16, f16 or f64"},
				{"length of dbias", func(a *args) { a.DBias = f32(3) }, "dbias", "4 elements (one a column)"},
				{"dbias over grad", func(a *args) { a.DBias = flat(a.Grad, 4) }, "dbias", "memory apart from grad"},
				{"dbias over fwd_input", func(a *args) { a.DBias = flat(a.FwdInput, 4) }, "dbias", "memory apart from fwd_input"},
				{"dbias over output", func(a *args) { a.DBias = flat(a.Output, 4) }, "dbias", "memory apart from output"},
			})
			testAccepted(t, op, good, map[string]func(a *args){
				"into grad":    func(a *args) { a.Output = a.Grad },
				"f32 sums":     func(a *args) { *a = args{of(tensor.BF16, 3, 4), of(tensor.BF16, 3, 4), f32(4), of(tensor.BF16, 3, 4)} },
				"no rows":      func(a *args) { *a = args{f32(0, 4), f32(0, 4), f32(4), f32(0, 4)} },
				"dbias [1, 4]": func(a *args) { a.DBias = f32(1, 4) },
			})
			testOperands(t, op, good(), access{
				"grad": opregistry.AccessRead, "fwd_input": opregistry.AccessRead, "dbias": opregistry.AccessWrite, "output": opregistry.AccessWrite,
			})
		})
	}
}

// The FlagOS plugin's reference returns (dx, Σ grad). TransformerEngine returns
// (dbias, dx), and the argument struct keeps that order.
func TestDBiasOrder_UpstreamReturnsSumOfGrad(t *testing.T) {
	var written []string
	for _, o := range ops.DBiasDGELU.Operands(ops.DBiasDActivationArgs{Grad: f32(2), FwdInput: f32(2), DBias: f32(2), Output: f32(2)}) {
		if o.Access == opregistry.AccessWrite {
			written = append(written, o.Name)
		}
	}
	assert.Equal(t, []string{"dbias", "output"}, written)
}
