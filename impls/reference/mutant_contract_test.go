package reference_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/opscases"
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
		{name: "multi_tensor_scale:declines what it must serve", test: func(t *testing.T) {
			right := opregistry.Impl{Op: optim.MultiTensorScale, ID: "right", Run: function(t, optim.MultiTensorScale)}
			wrong := right
			wrong.Run = func(x *exec, a optim.MultiTensorScaleArgs) error {
				if len(a.TensorLists[0]) == 0 {
					return opregistry.Unsupported("empty lists")
				}
				return function(t, optim.MultiTensorScale)(x, a)
			}
			opscases.All().Run(t, wrong, right, opstest.WithDTypes(tensor.F32), opstest.MustServe(tensor.F32))
		}},
		{name: "swiglu:sign of the gradient", test: func(t *testing.T) {
			forward := opregistry.Impl{Op: activation.SwiGLU, ID: "right", Run: function(t, activation.SwiGLU)}
			backward := opregistry.Impl{Op: activation.DSwiGLU, ID: "wrong", Run: func(x *exec, a activation.DSwiGLUArgs) error {
				return errors.Join(function(t, activation.DSwiGLU)(x, a), each(a.Output, func(v float64) float64 { return -v }))
			}}
			opscases.All().GradCheck(t, backward, forward)
		}},
		{name: "rmsnorm_bwd:1e-5 too much", test: func(t *testing.T) {
			forward := opregistry.Impl{Op: norm.RMSNormFwd, ID: "right", Run: function(t, norm.RMSNormFwd)}
			backward := opregistry.Impl{Op: norm.RMSNormBwd, ID: "wrong", Run: func(x *exec, a norm.RMSNormBwdArgs) error {
				return errors.Join(function(t, norm.RMSNormBwd)(x, a), each(a.DX, func(v float64) float64 { return v * (1 + 1e-5) }))
			}}
			opscases.All().GradCheck(t, backward, forward)
		}},
	}
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
