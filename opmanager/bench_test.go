package opmanager_test

import (
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
)

// noop is an impl that does nothing, so that what is measured is the call.
func noop(*opregistry.Exec, addArgs) error { return nil }

var benchOp = opregistry.NewOp("bench_op", opregistry.Schema[addArgs]{
	Validate: func(addArgs) error { return nil }, Operands: addOperands,
})

func benchManager(b *testing.B, set opmanager.Settings) *opmanager.Manager {
	b.Helper()
	reg := opregistry.NewRegistry()
	err := reg.Register(opregistry.Source{Name: "bench", Impls: []opregistry.Impl{
		{Op: benchOp, ID: "default.flagos", Kind: opregistry.KindFlagos, Priority: 150, Run: noop},
		{Op: benchOp, ID: "reference.go", Kind: opregistry.KindReference, Priority: 50, Run: noop},
	}})
	if err != nil {
		b.Fatal(err)
	}
	m := opmanager.New(reg, opmanager.DefaultPolicy(), set)
	b.Cleanup(m.Close)
	return m
}

func BenchmarkDispatch(b *testing.B) {
	var ex opregistry.Exec
	b.Run("direct func value", func(b *testing.B) {
		run := []opregistry.Func[addArgs]{noop}
		b.ReportAllocs()
		for b.Loop() {
			_ = run[0](&ex, addArgs{})
		}
	})
	b.Run("bound", func(b *testing.B) {
		bound := opmanager.MustBind(benchManager(b, opmanager.Settings{}), benchOp)
		b.ReportAllocs()
		for b.Loop() {
			_ = bound.Call(addArgs{})
		}
	})
	b.Run("bound, timing", func(b *testing.B) {
		bound := opmanager.MustBind(benchManager(b, opmanager.Settings{Timing: true}), benchOp)
		b.ReportAllocs()
		for b.Loop() {
			_ = bound.Call(addArgs{})
		}
	})
	b.Run("bound, parallel", func(b *testing.B) {
		m := benchManager(b, opmanager.Settings{})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			bound := opmanager.MustBind(m, benchOp)
			for pb.Next() {
				_ = bound.Call(addArgs{})
			}
		})
	})
}
