package activation_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/internal/checktest"
)

func TestSoftcap(t *testing.T) {
	type args = activation.SoftcapArgs
	good := func() args { return args{Input: checktest.F32(3, 4), Output: checktest.F32(3, 4), Limit: 30} }
	const limits = "a number from 2⁻¹⁰⁰ to 2¹⁰⁰"
	checktest.Validation(t, activation.Softcap, good, []checktest.Refusal[args]{
		{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(12) }, Operand: "output", Want: "the shape of input, [3 4]"},
		{Name: "no limit", Edit: func(a *args) { a.Limit = 0 }, Operand: "limit", Want: limits},
		{Name: "negative limit", Edit: func(a *args) { a.Limit = -1 }, Operand: "limit", Want: limits},
		{Name: "infinite limit", Edit: func(a *args) { a.Limit = float32(math.Inf(1)) }, Operand: "limit", Want: limits},
		{Name: "no number", Edit: func(a *args) { a.Limit = float32(math.NaN()) }, Operand: "limit", Want: limits},
	})
	checktest.Accepted(t, activation.Softcap, good, map[string]func(a *args){"in place": func(a *args) { a.Output = a.Input }})
	checktest.Operands(t, activation.Softcap, good(), checktest.Access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestDSoftcap(t *testing.T) {
	type args = activation.DSoftcapArgs
	good := func() args {
		return args{Grad: checktest.F32(3, 4), FwdInput: checktest.F32(3, 4), Output: checktest.F32(3, 4), Limit: 30}
	}
	checktest.Validation(t, activation.DSoftcap, good, []checktest.Refusal[args]{
		{Name: "shape of grad", Edit: func(a *args) { a.Grad = checktest.F32(4, 3) }, Operand: "grad", Want: "the shape of fwd_input, [3 4]"},
		{Name: "no limit", Edit: func(a *args) { a.Limit = 0 }, Operand: "limit", Want: "a number from 2⁻¹⁰⁰ to 2¹⁰⁰"},
	})
	checktest.Accepted(t, activation.DSoftcap, good, map[string]func(a *args){
		"into grad":      func(a *args) { a.Output = a.Grad },
		"into fwd_input": func(a *args) { a.Output = a.FwdInput },
	})
	checktest.Operands(t, activation.DSoftcap, good(), checktest.Access{"grad": opregistry.AccessRead, "fwd_input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}
