package opmanager_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// noop is an impl that does nothing, so that what is measured is the call.
func noop(*opregistry.Exec, addArgs) error { return nil }

var benchOp = opregistry.NewOp("bench_op", opregistry.Schema[addArgs]{
	Validate: func(addArgs) error { return nil }, Operands: addOperands,
	Lead: func(a addArgs) *tensor.Tensor { return a.In },
})

func benchManager(b *testing.B, set opmanager.Settings, edit func(*opregistry.Impl)) *opmanager.Manager {
	b.Helper()
	reg := opregistry.NewRegistry()
	first := opregistry.Impl{Op: benchOp, ID: "default.flagos", Kind: opregistry.KindFlagos, Priority: 150, Run: noop}
	if edit != nil {
		edit(&first)
	}
	err := reg.Register(opregistry.Source{Name: "bench", Impls: []opregistry.Impl{
		first, {Op: benchOp, ID: "reference.go", Kind: opregistry.KindReference, Priority: 50, Run: noop},
	}})
	if err != nil {
		b.Fatal(err)
	}
	m := opmanager.New(reg, opmanager.DefaultPolicy(), set)
	b.Cleanup(m.Close)
	return m
}

// BenchmarkDispatch measures what a call costs. A direct call runs through a func
// value; the difference to it is the price of dispatch.
func BenchmarkDispatch(b *testing.B) {
	var ex opregistry.Exec
	bound := func(name string, m func(*testing.B) *opmanager.Manager) {
		b.Run(name, func(b *testing.B) {
			call := opmanager.MustBind(m(b), benchOp)
			a := addArgs{In: benchTensor(b)}
			b.ReportAllocs()
			for b.Loop() {
				_ = call.Call(a)
			}
		})
	}
	b.Run("direct", func(b *testing.B) {
		run := []opregistry.Func[addArgs]{noop}
		b.ReportAllocs()
		for b.Loop() {
			_ = run[0](&ex, addArgs{})
		}
	})
	bound("bound", func(b *testing.B) *opmanager.Manager { return benchManager(b, opmanager.Settings{}, nil) })
	bound("bound/uncounted", func(b *testing.B) *opmanager.Manager {
		return benchManager(b, opmanager.Settings{Uncounted: true}, nil)
	})
	bound("bound/declared_dtypes", func(b *testing.B) *opmanager.Manager {
		return benchManager(b, opmanager.Settings{}, func(i *opregistry.Impl) { i.Support.DTypes = []tensor.DType{tensor.F32} })
	})
	bound("bound/quarantined_primary", func(b *testing.B) *opmanager.Manager {
		m := benchManager(b, opmanager.Settings{}, func(i *opregistry.Impl) {
			i.Run = func(*opregistry.Exec, addArgs) error { return errors.New("broken") }
		})
		for len(m.Quarantines()) == 0 {
			_ = opmanager.MustBind(m, benchOp).Call(addArgs{})
		}
		return m
	})
	bound("bound/timed", func(b *testing.B) *opmanager.Manager { return benchManager(b, opmanager.Settings{Timing: true}, nil) })
	b.Run("by_name", func(b *testing.B) {
		m := benchManager(b, opmanager.Settings{}, nil)
		b.ReportAllocs()
		for b.Loop() {
			_ = opmanager.Call(m, "bench_op", addArgs{})
		}
	})
	b.Run("two_goroutines", func(b *testing.B) {
		m := benchManager(b, opmanager.Settings{}, nil)
		b.ReportAllocs()
		b.SetParallelism(1)
		b.RunParallel(func(pb *testing.PB) {
			bound := opmanager.MustBind(m, benchOp)
			for pb.Next() {
				_ = bound.Call(addArgs{})
			}
		})
	})
}

func benchTensor(b *testing.B) *tensor.Tensor {
	b.Helper()
	x, err := tensor.FromSlice([]float32{1})
	if err != nil {
		b.Fatal(err)
	}
	return x
}

// BenchmarkRebuild measures a change of policy with 150 ops of 10 impls each.
func BenchmarkRebuild(b *testing.B) {
	reg := opregistry.NewRegistry()
	src := opregistry.Source{Name: "bench"}
	for i := range 150 {
		op := opregistry.NewOp(fmt.Sprintf("op_%d", i), opregistry.Schema[addArgs]{Validate: func(addArgs) error { return nil }, Operands: addOperands})
		for k := range 10 {
			src.Impls = append(src.Impls, opregistry.Impl{
				Op: op, ID: fmt.Sprint("vendor.v", k), Kind: opregistry.KindVendor, Vendor: fmt.Sprint("v", k), Priority: 100, Run: noop,
				Available: func() error { return nil },
			})
		}
	}
	if err := reg.Register(src); err != nil {
		b.Fatal(err)
	}
	m := opmanager.New(reg, opmanager.DefaultPolicy(), opmanager.Settings{})
	defer m.Close()
	policy := m.Policy()
	if err := policy.SetDeny("v3,v4", "bench"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m.SetPolicy(policy)
	}
}
