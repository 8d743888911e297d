package loss_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
)

func TestCrossEntropyFwd(t *testing.T) {
	type args = loss.CrossEntropyFwdArgs
	good := func() args {
		return args{
			Logits: checktest.F32(2, 2, 5), Targets: checktest.I32(0, 4, -100, 2), Losses: checktest.F32(4), LSE: checktest.F32(4), IgnoreIndex: -100, Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, loss.CrossEntropyFwd, good, []checktest.Refusal[args]{
		{Name: "no logits", Edit: func(a *args) { a.Logits = nil }, Operand: "logits", Want: "a tensor"},
		{Name: "dtype of logits", Edit: func(a *args) { a.Logits = checktest.Zeros(tensor.I32, 4, 5) }, Operand: "logits", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "scalar logits", Edit: func(a *args) { a.Logits = checktest.F32() }, Operand: "logits", Want: "shape [.. vocab>0]"},
		{Name: "no vocabulary", Edit: func(a *args) { a.Logits = checktest.F32(4, 0) }, Operand: "logits", Want: "shape [.. vocab>0]"},
		{Name: "no targets", Edit: func(a *args) { a.Targets = nil }, Operand: "targets", Want: "a tensor"},
		{Name: "dtype of targets", Edit: func(a *args) { a.Targets = checktest.F32(4) }, Operand: "targets", Want: "dtype i32 or i64"},
		{Name: "number of targets", Edit: func(a *args) { a.Targets = checktest.I32(0) }, Operand: "targets", Want: "4 elements (rows)"},
		{Name: "strided targets", Edit: func(a *args) { a.Targets = checktest.EverySecond(4) }, Operand: "targets", Want: "a contiguous tensor"},
		{Name: "target too large", Edit: func(a *args) { a.Targets = checktest.I32(0, 1, 2, 5) }, Operand: "targets", Want: "values in [0, 5)"},
		{Name: "negative target", Edit: func(a *args) { a.Targets = checktest.I64(0, 1, 2, -1) }, Operand: "targets", Want: "values in [0, 5)"},
		{Name: "no lse", Edit: func(a *args) { a.LSE = nil }, Operand: "lse", Want: "a tensor"},
		{Name: "dtype of lse", Edit: func(a *args) { a.LSE = checktest.Zeros(tensor.F64, 4) }, Operand: "lse", Want: "dtype f32"},
		{Name: "length of lse", Edit: func(a *args) { a.LSE = checktest.F32(5) }, Operand: "lse", Want: "4 elements (rows)"},
		{Name: "no losses", Edit: func(a *args) { a.Losses = nil }, Operand: "losses", Want: "a tensor"},
		{Name: "dtype of losses", Edit: func(a *args) { a.Losses = checktest.Zeros(tensor.BF16, 4) }, Operand: "losses", Want: "dtype f32"},
		{Name: "length of losses", Edit: func(a *args) { a.Losses = checktest.F32(2) }, Operand: "losses", Want: "4 elements (rows)"},
		{Name: "losses over logits", Edit: func(a *args) { a.Losses = checktest.Flat(a.Logits, 4) }, Operand: "losses", Want: "memory apart from logits"},
		{Name: "losses are lse", Edit: func(a *args) { a.Losses = a.LSE }, Operand: "lse", Want: "memory apart from losses"},
		{Name: "losses over targets", Edit: func(a *args) { a.Losses = reinterpreted(a.Targets) }, Operand: "losses", Want: "memory apart from targets"},
		{Name: "lse over logits", Edit: func(a *args) { a.LSE = checktest.Flat(a.Logits, 4) }, Operand: "lse", Want: "memory apart from logits"},
		{Name: "lse over targets", Edit: func(a *args) { a.LSE = reinterpreted(a.Targets) }, Operand: "lse", Want: "memory apart from targets"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, loss.CrossEntropyFwd, good, map[string]func(a *args){
		"i64":             func(a *args) { a.Targets = checktest.I64(-100, -100, 0, 4) },
		"another ignored": func(a *args) { a.Targets, a.IgnoreIndex = checktest.I32(7, 0, 7, 1), 7 },
		"no rows": func(a *args) {
			a.Logits, a.Targets, a.Losses, a.LSE = checktest.F32(0, 5), checktest.I32(), checktest.F32(0), checktest.F32(0)
		},
		"narrow logits": func(a *args) { a.Logits = checktest.Zeros(tensor.BF16, 4, 5) },
	})
	checktest.Operands(t, loss.CrossEntropyFwd, good(), checktest.Access{
		"logits": opregistry.AccessRead, "targets": opregistry.AccessRead, "losses": opregistry.AccessWrite, "lse": opregistry.AccessWrite,
	})
}

// reinterpreted returns x's memory, which holds i32, as f32.
func reinterpreted(x *tensor.Tensor) *tensor.Tensor {
	return checktest.Must(tensor.FromBytes(checktest.BytesOf(tensor.Data[int32](x)), tensor.F32, x.NumElements()))
}

func TestCrossEntropyBwd(t *testing.T) {
	type args = loss.CrossEntropyBwdArgs
	good := func() args {
		return args{
			Logits: checktest.F32(4, 5), Targets: checktest.I32(0, 4, -100, 2), LSE: checktest.F32(4), DLosses: checktest.F32(4), DLogits: checktest.F32(4, 5),
			IgnoreIndex: -100, Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, loss.CrossEntropyBwd, good, []checktest.Refusal[args]{
		{Name: "no logits", Edit: func(a *args) { a.Logits = nil }, Operand: "logits", Want: "a tensor"},
		{Name: "target too large", Edit: func(a *args) { a.Targets = checktest.I32(0, 1, 2, 5) }, Operand: "targets", Want: "values in [0, 5)"},
		{Name: "no lse", Edit: func(a *args) { a.LSE = nil }, Operand: "lse", Want: "a tensor"},
		{Name: "no dlosses", Edit: func(a *args) { a.DLosses = nil }, Operand: "dlosses", Want: "a tensor"},
		{Name: "dtype of dlosses", Edit: func(a *args) { a.DLosses = checktest.Zeros(tensor.F64, 4) }, Operand: "dlosses", Want: "dtype f32"},
		{Name: "length of dlosses", Edit: func(a *args) { a.DLosses = checktest.F32(5) }, Operand: "dlosses", Want: "4 elements (rows)"},
		{Name: "no dlogits", Edit: func(a *args) { a.DLogits = nil }, Operand: "dlogits", Want: "a tensor"},
		{Name: "dtype of dlogits", Edit: func(a *args) { a.DLogits = checktest.Zeros(tensor.BF16, 4, 5) }, Operand: "dlogits", Want: "the dtype of logits, f32"},
		{Name: "shape of dlogits", Edit: func(a *args) { a.DLogits = checktest.F32(5, 4) }, Operand: "dlogits", Want: "the shape of logits, [4 5]"},
		{Name: "dlogits overlap logits", Edit: func(a *args) { a.DLogits = checktest.Shifted(&a.Logits) }, Operand: "dlogits", Want: "the same view as logits"},
		{Name: "dlogits over lse", Edit: func(a *args) { a.LSE = checktest.Flat(a.DLogits, 4) }, Operand: "dlogits", Want: "memory apart from lse"},
		{Name: "dlogits over dlosses", Edit: func(a *args) { a.DLosses = checktest.Flat(a.DLogits, 4) }, Operand: "dlogits", Want: "memory apart from dlosses"},
		{Name: "dlogits over targets", Edit: func(a *args) {
			memory := make([]byte, 80)
			a.DLogits = checktest.Must(tensor.FromBytes(memory, tensor.F32, 4, 5))
			a.Targets = checktest.Must(tensor.FromBytes(memory[:16], tensor.I32, 4))
		}, Operand: "dlogits", Want: "memory apart from targets"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, loss.CrossEntropyBwd, good, map[string]func(a *args){"in place": func(a *args) { a.DLogits = a.Logits }})
	checktest.Operands(t, loss.CrossEntropyBwd, good(), checktest.Access{
		"logits": opregistry.AccessRead, "targets": opregistry.AccessRead, "lse": opregistry.AccessRead, "dlosses": opregistry.AccessRead, "dlogits": opregistry.AccessWrite,
	})
}
