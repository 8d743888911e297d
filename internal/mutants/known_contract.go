package main

import (
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// contractMutants returns mutants that compute the right values and break the contract of an impl.
func contractMutants() []mutant {
	type (
		exec = opregistry.Exec
		sum  = norm.ResidualAddArgs
	)
	m := func(name string, wrong func(right opregistry.Func[sum], x *exec, a sum) error) mutant {
		return mutate(name, norm.ResidualAdd, tensor.F32, wrong)
	}
	return []mutant{
		m("input is written", func(right opregistry.Func[sum], x *exec, a sum) error {
			err := right(x, a)
			if a.A.NumElements() == 7 && a.A != a.Output {
				return errors.Join(err, a.A.SetFloat64s(make([]float64, 7)))
			}
			return err
		}),
		m("gap is written", func(right opregistry.Func[sum], x *exec, a sum) error {
			err := right(x, a)
			if !a.Output.IsContiguous() && a.Output.NumElements() > 0 {
				tensor.Data[float32](a.Output)[a.Output.Shape().Cols()] = 0
			}
			return err
		}),
		m("element after the end is written", func(right opregistry.Func[sum], x *exec, a sum) error {
			err := right(x, a)
			if n := a.Output.NumElements(); a.Output.IsContiguous() && n > 0 {
				*(*float32)(unsafe.Add(a.Output.Pointer(), 4*n)) = 0
			}
			return err
		}),
		m("declines after it has written", func(right opregistry.Func[sum], x *exec, a sum) error {
			if err := right(x, a); err != nil || a.A.IsContiguous() {
				return err
			}
			return opregistry.Unsupported("strides")
		}),
		m("declines everything", func(opregistry.Func[sum], *exec, sum) error { return opregistry.Unsupported("everything") }),
		m("fails", func(right opregistry.Func[sum], x *exec, a sum) error {
			if a.A.IsContiguous() {
				return right(x, a)
			}
			return errors.New("no strides")
		}),
		m("panics", func(right opregistry.Func[sum], x *exec, a sum) error {
			if a.A.NumElements() == 0 {
				panic("empty")
			}
			return right(x, a)
		}),
		m("depends on the number of workers", func(right opregistry.Func[sum], x *exec, a sum) error {
			err := right(x, a)
			if x.Pool().Workers() > 1 {
				return errors.Join(err, each(a.Output, func(v float64) float64 { return v * (1 + 0x1p-23) }))
			}
			return err
		}),
		m("does not bear company", solitary()),
		mustServe(mutate("declines what it must serve", optim.MultiTensorScale, tensor.F32, func(right opregistry.Func[optim.MultiTensorScaleArgs], x *exec, a optim.MultiTensorScaleArgs) error {
			if len(a.TensorLists[0]) == 0 {
				return opregistry.Unsupported("empty lists")
			}
			return right(x, a)
		})),
	}
}

// mustServe requires of a mutant that it declines nothing.
func mustServe(m mutant) mutant {
	m.options = append(m.options, opstest.MustServe(m.dtype))
	return m
}

// solitary is wrong when another call runs at the same time.
func solitary() func(right opregistry.Func[norm.ResidualAddArgs], x *opregistry.Exec, a norm.ResidualAddArgs) error {
	var running atomic.Int32
	return func(right opregistry.Func[norm.ResidualAddArgs], x *opregistry.Exec, a norm.ResidualAddArgs) error {
		running.Add(1)
		defer running.Add(-1)
		err, alone := right(x, a), true
		for range 100 {
			runtime.Gosched()
			alone = alone && running.Load() == 1
		}
		if !alone {
			return errors.Join(err, each(a.Output, func(v float64) float64 { return v + 1 }))
		}
		return err
	}
}
