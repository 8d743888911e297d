package activation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

func TestActivation(t *testing.T) {
	type args = activation.ActivationArgs
	for _, op := range []*opregistry.Op[args]{activation.GELU, activation.GELUErf, activation.QGELU, activation.ReLU, activation.SReLU, activation.SiLU} {
		t.Run(op.Name(), func(t *testing.T) {
			good := func() args { return args{Input: checktest.F32(3, 4), Output: checktest.F32(3, 4)} }
			checktest.Validation(t, op, good, []checktest.Refusal[args]{
				{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
				{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
				{Name: "dtype", Edit: func(a *args) { a.Input = checktest.Zeros(tensor.U8, 3, 4) }, Operand: "input", Want: "dtype f32, bf16, f16 or f64"},
				{Name: "two dtypes", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.BF16, 3, 4) }, Operand: "output", Want: "the dtype of input, f32"},
				{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(12) }, Operand: "output", Want: "the shape of input, [3 4]"},
				{Name: "output overlaps input", Edit: func(a *args) { a.Output = checktest.Shifted(&a.Input) }, Operand: "output", Want: "the same view as input"},
			})
			checktest.Accepted(t, op, good, map[string]func(a *args){
				"in place": func(a *args) { a.Output = a.Input },
				"scalar":   func(a *args) { a.Input, a.Output = checktest.F32(), checktest.F32() },
				"empty":    func(a *args) { a.Input, a.Output = checktest.F32(3, 0), checktest.F32(3, 0) },
			})
			checktest.Operands(t, op, good(), checktest.Access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
		})
	}
}

func TestDActivation(t *testing.T) {
	type args = activation.DActivationArgs
	for _, op := range []*opregistry.Op[args]{activation.DGELU, activation.DGELUErf, activation.DQGELU, activation.DReLU, activation.DSReLU, activation.DSiLU} {
		t.Run(op.Name(), func(t *testing.T) {
			good := func() args {
				return args{Grad: checktest.F32(3, 4), FwdInput: checktest.F32(3, 4), Output: checktest.F32(3, 4)}
			}
			checktest.Validation(t, op, good, []checktest.Refusal[args]{
				{Name: "no fwd_input", Edit: func(a *args) { a.FwdInput = nil }, Operand: "fwd_input", Want: "a tensor"},
				{Name: "integers", Edit: func(a *args) { a.FwdInput = checktest.Zeros(tensor.I32, 3, 4) }, Operand: "fwd_input", Want: "dtype f32, bf16, f16 or f64"},
				{Name: "no grad", Edit: func(a *args) { a.Grad = nil }, Operand: "grad", Want: "a tensor"},
				{Name: "dtype of grad", Edit: func(a *args) { a.Grad = checktest.Zeros(tensor.F16, 3, 4) }, Operand: "grad", Want: "the dtype of fwd_input, f32"},
				{Name: "shape of grad", Edit: func(a *args) { a.Grad = checktest.F32(4, 3) }, Operand: "grad", Want: "the shape of fwd_input, [3 4]"},
				{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
				{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.F16, 3, 4) }, Operand: "output", Want: "the dtype of fwd_input, f32"},
				{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(4, 3) }, Operand: "output", Want: "the shape of fwd_input, [3 4]"},
				{Name: "output overlaps fwd_input", Edit: func(a *args) { a.Output = checktest.Shifted(&a.FwdInput) }, Operand: "output", Want: "the same view as fwd_input"},
				{Name: "output overlaps grad", Edit: func(a *args) { a.Output = checktest.Shifted(&a.Grad) }, Operand: "output", Want: "the same view as grad"},
			})
			checktest.Accepted(t, op, good, map[string]func(a *args){
				"into grad":      func(a *args) { a.Output = a.Grad },
				"into fwd_input": func(a *args) { a.Output = a.FwdInput },
			})
			checktest.Operands(t, op, good(), checktest.Access{"grad": opregistry.AccessRead, "fwd_input": opregistry.AccessRead, "output": opregistry.AccessWrite})
		})
	}
}

func TestDBiasDActivation(t *testing.T) {
	type args = activation.DBiasDActivationArgs
	for _, op := range []*opregistry.Op[args]{activation.DBiasDGELU, activation.DBiasDGELUErf, activation.DBiasDSiLU, activation.DBiasDReLU, activation.DBiasDQGELU, activation.DBiasDSReLU} {
		t.Run(op.Name(), func(t *testing.T) {
			good := func() args {
				return args{Grad: checktest.F32(2, 3, 4), FwdInput: checktest.F32(2, 3, 4), DBias: checktest.F32(4), Output: checktest.F32(2, 3, 4)}
			}
			checktest.Validation(t, op, good, []checktest.Refusal[args]{
				{Name: "no fwd_input", Edit: func(a *args) { a.FwdInput = nil }, Operand: "fwd_input", Want: "a tensor"},
				{Name: "scalars", Edit: func(a *args) { a.Grad, a.FwdInput, a.Output = checktest.F32(), checktest.F32(), checktest.F32() }, Operand: "fwd_input", Want: "shape [.. cols]"},
				{Name: "shape of grad", Edit: func(a *args) { a.Grad = checktest.F32(6, 4) }, Operand: "grad", Want: "the shape of fwd_input, [2 3 4]"},
				{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(6, 4) }, Operand: "output", Want: "the shape of fwd_input, [2 3 4]"},
				{Name: "no dbias", Edit: func(a *args) { a.DBias = nil }, Operand: "dbias", Want: "a tensor"},
				{Name: "dtype of dbias", Edit: func(a *args) { a.DBias = checktest.Zeros(tensor.I32, 4) }, Operand: "dbias", Want: "dtype f32, bf16, f16 or f64"},
				{Name: "length of dbias", Edit: func(a *args) { a.DBias = checktest.F32(3) }, Operand: "dbias", Want: "4 elements (cols)"},
				{Name: "dbias over grad", Edit: func(a *args) { a.DBias = checktest.Flat(a.Grad, 4) }, Operand: "dbias", Want: "memory apart from grad"},
				{Name: "dbias over fwd_input", Edit: func(a *args) { a.DBias = checktest.Flat(a.FwdInput, 4) }, Operand: "dbias", Want: "memory apart from fwd_input"},
				{Name: "dbias over output", Edit: func(a *args) { a.DBias = checktest.Flat(a.Output, 4) }, Operand: "output", Want: "memory apart from dbias"},
			})
			checktest.Accepted(t, op, good, map[string]func(a *args){
				"into grad": func(a *args) { a.Output = a.Grad },
				"f32 sums": func(a *args) {
					*a = args{checktest.Zeros(tensor.BF16, 3, 4), checktest.Zeros(tensor.BF16, 3, 4), checktest.F32(4), checktest.Zeros(tensor.BF16, 3, 4)}
				},
				"no rows": func(a *args) {
					*a = args{checktest.F32(0, 4), checktest.F32(0, 4), checktest.F32(4), checktest.F32(0, 4)}
				},
				"dbias [1, 4]": func(a *args) { a.DBias = checktest.F32(1, 4) },
			})
			checktest.Operands(t, op, good(), checktest.Access{
				"grad": opregistry.AccessRead, "fwd_input": opregistry.AccessRead, "dbias": opregistry.AccessWrite, "output": opregistry.AccessWrite,
			})
		})
	}
}

// The FlagOS plugin's reference returns (dx, Σ grad). TransformerEngine returns
// (dbias, dx), and the argument struct keeps that order.
func TestDBiasOrder_UpstreamReturnsSumOfGrad(t *testing.T) {
	var written []string
	for _, o := range activation.DBiasDGELU.Operands(activation.DBiasDActivationArgs{Grad: checktest.F32(2), FwdInput: checktest.F32(2), DBias: checktest.F32(2), Output: checktest.F32(2)}) {
		if o.Access == opregistry.AccessWrite {
			written = append(written, o.Name)
		}
	}
	assert.Equal(t, []string{"dbias", "output"}, written)
}
