package ops_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestCrossEntropyFwd(t *testing.T) {
	type args = ops.CrossEntropyFwdArgs
	good := func() args {
		return args{
			Logits: f32(2, 2, 5), Targets: i32(0, 4, -100, 2), Losses: f32(4), LSE: f32(4), IgnoreIndex: -100, Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.CrossEntropyFwd, good, []refusal[args]{
		{"no logits", func(a *args) { a.Logits = nil }, "logits", "a tensor"},
		{"dtype of logits", func(a *args) { a.Logits = of(tensor.I32, 4, 5) }, "logits", "dtype f32, bf16, f16 or f64"},
		{"scalar logits", func(a *args) { a.Logits = f32() }, "logits", "at least 1 axes"},
		{"no vocabulary", func(a *args) { a.Logits = f32(4, 0) }, "logits", "rows of at least one element"},
		{"no targets", func(a *args) { a.Targets = nil }, "targets", "a tensor"},
		{"dtype of targets", func(a *args) { a.Targets = f32(4) }, "targets", "dtype i32 or i64"},
		{"number of targets", func(a *args) { a.Targets = i32(0) }, "targets", "4 elements (one a row of logits)"},
		{"strided targets", func(a *args) { a.Targets = everySecond(4) }, "targets", "a contiguous tensor"},
		{"target too large", func(a *args) { a.Targets = i32(0, 1, 2, 5) }, "targets", "values in [0, 5)"},
		{"negative target", func(a *args) { a.Targets = i64(0, 1, 2, -1) }, "targets", "values in [0, 5)"},
		{"no lse", func(a *args) { a.LSE = nil }, "lse", "a tensor"},
		{"dtype of lse", func(a *args) { a.LSE = of(tensor.F64, 4) }, "lse", "dtype f32"},
		{"length of lse", func(a *args) { a.LSE = f32(5) }, "lse", "4 elements (one a row)"},
		{"no losses", func(a *args) { a.Losses = nil }, "losses", "a tensor"},
		{"dtype of losses", func(a *args) { a.Losses = of(tensor.BF16, 4) }, "losses", "dtype f32"},
		{"length of losses", func(a *args) { a.Losses = f32(2) }, "losses", "4 elements (one a row)"},
		{"losses over logits", func(a *args) { a.Losses = flat(a.Logits, 4) }, "losses", "memory apart from logits"},
		{"losses are lse", func(a *args) { a.Losses = a.LSE }, "losses", "memory apart from lse"},
		{"losses over targets", func(a *args) { a.Losses = reinterpreted(a.Targets) }, "losses", "memory apart from targets"},
		{"lse over logits", func(a *args) { a.LSE = flat(a.Logits, 4) }, "lse", "memory apart from logits"},
		{"lse over targets", func(a *args) { a.LSE = reinterpreted(a.Targets) }, "lse", "memory apart from targets"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.CrossEntropyFwd, good, map[string]func(a *args){
		"i64":             func(a *args) { a.Targets = i64(-100, -100, 0, 4) },
		"another ignored": func(a *args) { a.Targets, a.IgnoreIndex = i32(7, 0, 7, 1), 7 },
		"no rows":         func(a *args) { a.Logits, a.Targets, a.Losses, a.LSE = f32(0, 5), i32(), f32(0), f32(0) },
		"narrow logits":   func(a *args) { a.Logits = of(tensor.BF16, 4, 5) },
	})
	testOperands(t, ops.CrossEntropyFwd, good(), access{
		"logits": opregistry.AccessRead, "targets": opregistry.AccessRead, "losses": opregistry.AccessWrite, "lse": opregistry.AccessWrite,
	})
}

// reinterpreted returns x's memory, which holds i32, as f32.
func reinterpreted(x *tensor.Tensor) *tensor.Tensor {
	return must(tensor.FromBytes(bytesOf(tensor.Data[int32](x)), tensor.F32, x.NumElements()))
}

func TestCrossEntropyBwd(t *testing.T) {
	type args = ops.CrossEntropyBwdArgs
	good := func() args {
		return args{
			Logits: f32(4, 5), Targets: i32(0, 4, -100, 2), LSE: f32(4), DLosses: f32(4), DLogits: f32(4, 5),
			IgnoreIndex: -100, Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.CrossEntropyBwd, good, []refusal[args]{
		{"no logits", func(a *args) { a.Logits = nil }, "logits", "a tensor"},
		{"target too large", func(a *args) { a.Targets = i32(0, 1, 2, 5) }, "targets", "values in [0, 5)"},
		{"no lse", func(a *args) { a.LSE = nil }, "lse", "a tensor"},
		{"no dlosses", func(a *args) { a.DLosses = nil }, "dlosses", "a tensor"},
		{"dtype of dlosses", func(a *args) { a.DLosses = of(tensor.F64, 4) }, "dlosses", "dtype f32"},
		{"length of dlosses", func(a *args) { a.DLosses = f32(5) }, "dlosses", "4 elements (one a row)"},
		{"no dlogits", func(a *args) { a.DLogits = nil }, "dlogits", "a tensor"},
		{"dtype of dlogits", func(a *args) { a.DLogits = of(tensor.BF16, 4, 5) }, "dlogits", "the dtype of logits, f32"},
		{"shape of dlogits", func(a *args) { a.DLogits = f32(5, 4) }, "dlogits", "the shape of logits, [4 5]"},
		{"dlogits overlap logits", func(a *args) { a.DLogits = shifted(&a.Logits) }, "dlogits", "the same view as logits"},
		{"dlogits over lse", func(a *args) { a.LSE = flat(a.DLogits, 4) }, "dlogits", "memory apart from lse"},
		{"dlogits over dlosses", func(a *args) { a.DLosses = flat(a.DLogits, 4) }, "dlogits", "memory apart from dlosses"},
		{"dlogits over targets", func(a *args) {
			memory := make([]byte, 80)
			a.DLogits = must(tensor.FromBytes(memory, tensor.F32, 4, 5))
			a.Targets = must(tensor.FromBytes(memory[:16], tensor.I32, 4))
		}, "dlogits", "memory apart from targets"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.CrossEntropyBwd, good, map[string]func(a *args){"in place": func(a *args) { a.DLogits = a.Logits }})
	testOperands(t, ops.CrossEntropyBwd, good(), access{
		"logits": opregistry.AccessRead, "targets": opregistry.AccessRead, "lse": opregistry.AccessRead, "dlosses": opregistry.AccessRead, "dlogits": opregistry.AccessWrite,
	})
}
