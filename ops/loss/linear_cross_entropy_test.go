package loss_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
)

func TestLinearCrossEntropyFwd(t *testing.T) {
	type args = loss.LinearCrossEntropyFwdArgs
	good := func() args {
		return args{
			Hidden: checktest.F32(2, 2, 3), Weight: checktest.F32(5, 3), Targets: checktest.I32(0, 4, -100, 2), Losses: checktest.F32(4), LSE: checktest.F32(4),
			DLosses: checktest.F32(4), DHidden: checktest.F32(2, 2, 3), DWeight: checktest.F32(5, 3), IgnoreIndex: -100, Saved: new(opregistry.Saved),
		}
	}
	lossesAlone := func(a *args) { a.DLosses, a.DHidden, a.DWeight = nil, nil, nil }
	checktest.Validation(t, loss.LinearCrossEntropyFwd, good, []checktest.Refusal[args]{
		{Name: "no hidden", Edit: func(a *args) { a.Hidden = nil }, Operand: "hidden", Want: "a tensor"},
		{Name: "dtype of weight", Edit: func(a *args) { a.Weight = checktest.Zeros(tensor.BF16, 5, 3) }, Operand: "weight", Want: "the dtype of hidden, f32"},
		{Name: "hidden size of weight", Edit: func(a *args) { a.Weight = checktest.F32(5, 4) }, Operand: "weight", Want: "shape [5 3], as [vocab>0 h]"},
		{Name: "number of targets", Edit: func(a *args) { a.Targets = checktest.I32(0) }, Operand: "targets", Want: "4 elements (rows)"},
		{Name: "target too large", Edit: func(a *args) { a.Targets = checktest.I32(0, 1, 2, 5) }, Operand: "targets", Want: "values in [0, 5)"},
		{Name: "target of another part too large", Edit: func(a *args) {
			lossesAlone(a)
			a.Classes, a.Targets = 9, checktest.I32(0, 1, 2, 9)
		}, Operand: "targets", Want: "values in [0, 9)"},
		{Name: "part before the first class", Edit: func(a *args) { a.First = -1 }, Operand: "first", Want: "a place for 5 rows of weight among 5 classes"},
		{Name: "part beyond the last class", Edit: func(a *args) { a.First, a.Classes = 4, 8 }, Operand: "first", Want: "a place for 5 rows of weight among 8 classes"},
		{Name: "fewer classes than rows", Edit: func(a *args) { a.Classes = 4 }, Operand: "first", Want: "a place for 5 rows of weight among 4 classes"},
		{Name: "gradients of a part", Edit: func(a *args) { a.Classes = 9 }, Operand: "dlosses", Want: "nil where weight is a part of the vocabulary"},
		{Name: "dhidden without dlosses", Edit: func(a *args) { a.DLosses = nil }, Operand: "dhidden", Want: "nil without dlosses"},
		{Name: "dlosses without dhidden", Edit: func(a *args) { a.DHidden = nil }, Operand: "dhidden", Want: "a tensor"},
		{Name: "dweight without dlosses", Edit: func(a *args) { a.DLosses, a.DHidden = nil, nil }, Operand: "dweight", Want: "nil without dlosses"},
		{Name: "accumulate without dweight", Edit: func(a *args) { a.DWeight, a.Accumulate = nil, true }, Operand: "accumulate", Want: "false without dweight"},
		{Name: "dhidden over hidden", Edit: func(a *args) { a.DHidden = a.Hidden }, Operand: "dhidden", Want: "memory apart from hidden"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, loss.LinearCrossEntropyFwd, good, map[string]func(a *args){
		"losses alone":     lossesAlone,
		"frozen weight":    func(a *args) { a.DWeight = nil },
		"accumulated":      func(a *args) { a.Accumulate = true },
		"part of the rows": func(a *args) { lossesAlone(a); a.First, a.Classes = 4, 9 },
		"narrow, with a wide dweight": func(a *args) {
			a.Hidden, a.Weight, a.DHidden = checktest.Zeros(tensor.BF16, 4, 3), checktest.Zeros(tensor.BF16, 5, 3), checktest.Zeros(tensor.BF16, 4, 3)
		},
	})
	checktest.Operands(t, loss.LinearCrossEntropyFwd, good(), checktest.Access{
		"hidden": opregistry.AccessRead, "weight": opregistry.AccessRead, "targets": opregistry.AccessRead, "losses": opregistry.AccessWrite, "lse": opregistry.AccessWrite,
		"dlosses": opregistry.AccessRead, "dhidden": opregistry.AccessWrite, "dweight": opregistry.AccessWrite,
	})
}

func TestLinearCrossEntropyBwd(t *testing.T) {
	type args = loss.LinearCrossEntropyBwdArgs
	good := func() args {
		return args{
			Hidden: checktest.F32(4, 3), Weight: checktest.F32(5, 3), Targets: checktest.I32(0, 4, -100, 2), LSE: checktest.F32(4), DLosses: checktest.F32(4),
			DHidden: checktest.F32(4, 3), DWeight: checktest.F32(5, 3), Accumulate: true, IgnoreIndex: -100, Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, loss.LinearCrossEntropyBwd, good, []checktest.Refusal[args]{
		{Name: "target too large", Edit: func(a *args) { a.Targets = checktest.I32(0, 1, 2, 5) }, Operand: "targets", Want: "values in [0, 5)"},
		{Name: "no lse", Edit: func(a *args) { a.LSE = nil }, Operand: "lse", Want: "a tensor"},
		{Name: "no dlosses", Edit: func(a *args) { a.DLosses = nil }, Operand: "dlosses", Want: "a tensor"},
		{Name: "no dhidden", Edit: func(a *args) { a.DHidden = nil }, Operand: "dhidden", Want: "a tensor"},
		{Name: "part beyond the last class", Edit: func(a *args) { a.First, a.Classes = 4, 8 }, Operand: "first", Want: "a place for 5 rows of weight among 8 classes"},
		{Name: "accumulate without dweight", Edit: func(a *args) { a.DWeight = nil }, Operand: "accumulate", Want: "false without dweight"},
		{Name: "dweight over weight", Edit: func(a *args) { a.DWeight = a.Weight }, Operand: "dweight", Want: "memory apart from weight"},
	})
	checktest.Accepted(t, loss.LinearCrossEntropyBwd, good, map[string]func(a *args){
		"part of the rows": func(a *args) { a.First, a.Classes = 4, 9 },
		"frozen weight":    func(a *args) { a.DWeight, a.Accumulate = nil, false },
	})
	checktest.Operands(t, loss.LinearCrossEntropyBwd, good(), checktest.Access{
		"hidden": opregistry.AccessRead, "weight": opregistry.AccessRead, "targets": opregistry.AccessRead, "lse": opregistry.AccessRead, "dlosses": opregistry.AccessRead,
		"dhidden": opregistry.AccessWrite, "dweight": opregistry.AccessUpdate,
	})
}
