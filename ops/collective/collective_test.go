package collective_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

func second(ranks int) collective.Group { return collective.Group{Rank: 1, Ranks: ranks} }

func TestAllReduce(t *testing.T) {
	type args = collective.AllReduceArgs
	good := func() args {
		return args{Input: checktest.F32(3, 7), Output: checktest.F32(3, 7), Group: second(2)}
	}
	checktest.Validation(t, collective.AllReduce, good, []checktest.Refusal[args]{
		{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
		{Name: "bytes", Edit: func(a *args) { a.Input = checktest.Zeros(tensor.U8, 3, 7) }, Operand: "input", Want: "dtype f32, bf16, f16, f64, i32 or i64"},
		{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.F64, 3, 7) }, Operand: "output", Want: "the dtype of input, f32"},
		{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(21) }, Operand: "output", Want: "the shape of input, [3 7]"},
		{Name: "overlap", Edit: func(a *args) { a.Output = checktest.Shifted(&a.Input) }, Operand: "output", Want: "the same view as input"},
		{Name: "rank", Edit: func(a *args) { a.Rank = 2 }, Operand: "rank", Want: "a rank below ranks"},
		{Name: "first", Edit: func(a *args) { a.First = 1 }, Operand: "first", Want: "0 without a stride"},
		{Name: "no ranks", Edit: func(a *args) { a.Group = collective.Group{} }, Operand: "ranks", Want: "a number >= 1"},
		{Name: "reduction", Edit: func(a *args) { a.Reduction = 4 }, Operand: "reduction", Want: "3 (avg)"},
		{Name: "avg of integers", Edit: func(a *args) {
			a.Input, a.Output, a.Reduction = checktest.I32(1), checktest.I32(1), collective.Avg
		}, Operand: "reduction", Want: "sum, max or min of integers"},
	})
	checktest.Accepted(t, collective.AllReduce, good, map[string]func(a *args){
		"in place": func(a *args) { a.Output = a.Input },
		"empty":    func(a *args) { a.Input, a.Output = checktest.F32(0), checktest.F32(0) },
		"avg":      func(a *args) { a.Reduction = collective.Avg },
		"group":    func(a *args) { a.First, a.Stride = 3, 2 },
	})
	checktest.Operands(t, collective.AllReduce, good(), checktest.Access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestReduce(t *testing.T) {
	type args = collective.ReduceArgs
	good := func() args {
		return args{Input: checktest.F32(5), Output: checktest.F32(5), Root: 1, Group: second(3)}
	}
	checktest.Validation(t, collective.Reduce, good, []checktest.Refusal[args]{
		{Name: "root", Edit: func(a *args) { a.Root = 3 }, Operand: "root", Want: "a rank below ranks"},
		{Name: "no output at the root", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "output elsewhere", Edit: func(a *args) { a.Root = 0 }, Operand: "output", Want: "nil where rank is not root"},
	})
	checktest.Accepted(t, collective.Reduce, good, map[string]func(a *args){"elsewhere": func(a *args) { a.Root, a.Output = 0, nil }})
}

func TestReduceScatter(t *testing.T) {
	type args = collective.ReduceScatterArgs
	good := func() args { return args{Input: checktest.F32(2, 3), Output: checktest.F32(3), Group: second(2)} }
	checktest.Validation(t, collective.ReduceScatter, good, []checktest.Refusal[args]{
		{Name: "elements", Edit: func(a *args) { a.Input = checktest.F32(5) }, Operand: "input", Want: "6 elements"},
		{Name: "in place", Edit: func(a *args) { a.Output = checktest.Flat(a.Input, 3) }, Operand: "output", Want: "memory apart from input"},
	})
}

func TestMoves(t *testing.T) {
	type gather = collective.AllGatherArgs
	checktest.Validation(t, collective.AllGather, func() gather {
		return gather{Input: checktest.Zeros(tensor.U8, 3), Output: checktest.Zeros(tensor.U8, 6), Group: second(2)}
	}, []checktest.Refusal[gather]{
		{Name: "elements", Edit: func(a *gather) { a.Output = checktest.Zeros(tensor.U8, 3) }, Operand: "output", Want: "6 elements"},
		{Name: "dtype", Edit: func(a *gather) { a.Output = checktest.I32(0) }, Operand: "output", Want: "the dtype of input"},
	})
	type exchange = collective.AllToAllArgs
	checktest.Validation(t, collective.AllToAll, func() exchange {
		return exchange{Input: checktest.F32(4), Output: checktest.F32(2, 2), Group: second(2)}
	}, []checktest.Refusal[exchange]{
		{Name: "parts", Edit: func(a *exchange) { a.Input, a.Output = checktest.F32(3), checktest.F32(3) }, Operand: "input", Want: "a multiple of ranks elements"},
		{Name: "elements", Edit: func(a *exchange) { a.Output = checktest.F32(2) }, Operand: "output", Want: "4 elements"},
	})
	type barrier = collective.BarrierArgs
	checktest.Validation(t, collective.Barrier, func() barrier { return barrier{second(2)} }, []checktest.Refusal[barrier]{
		{Name: "rank", Edit: func(a *barrier) { a.Rank = -1 }, Operand: "rank", Want: "a number >= 0"},
	})
}

// A buffer is read at the root and written elsewhere.
func TestBroadcast(t *testing.T) {
	type args = collective.BroadcastArgs
	good := func() args { return args{Buffer: checktest.F32(4), Root: 1, Group: second(2)} }
	checktest.Validation(t, collective.Broadcast, good, []checktest.Refusal[args]{
		{Name: "root", Edit: func(a *args) { a.Root = 2 }, Operand: "root", Want: "a rank below ranks"},
	})
	checktest.Operands(t, collective.Broadcast, good(), checktest.Access{"buffer": opregistry.AccessRead})
	elsewhere := good()
	elsewhere.Root = 0
	checktest.Operands(t, collective.Broadcast, elsewhere, checktest.Access{"buffer": opregistry.AccessWrite})
}
