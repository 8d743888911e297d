package opstest_test

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

type doubleArgs struct {
	Input  *tensor.Tensor `op:"0 input read f32 [..]"`
	Output *tensor.Tensor `op:"1 output write =input [..]"`
}

var double = opregistry.NewOp("double", opregistry.Schema[doubleArgs]{
	Doc:       "twice the values",
	Tolerance: opregistry.Exact("a power of two"),
})

// The author of an op writes its cases, the author of an impl runs them beside an oracle.
func Example() {
	kit := opstest.Kit{Suites: []*opstest.Suite{opstest.Spec[doubleArgs]{
		Op: double,
		Cases: func(d tensor.DType) []opstest.Case[doubleArgs] {
			if d != tensor.F32 {
				return nil
			}
			return []opstest.Case[doubleArgs]{{Name: "odd", Make: func(s *opstest.Stage) doubleArgs {
				return doubleArgs{Input: s.In(opstest.Dense, d, 3, 5), Output: s.Out(opstest.Padded, d, 3, 5)}
			}}}
		},
	}.Suite()}}
	oracle := opregistry.Impl{Op: double, ID: "reference.double", Kind: opregistry.KindReference, Run: func(_ *opregistry.Exec, a doubleArgs) error {
		values := a.Input.Float64s()
		for i := range values {
			values[i] *= 2
		}
		return a.Output.SetFloat64s(values)
	}}
	wrong := opregistry.Impl{Op: double, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: func(_ *opregistry.Exec, a doubleArgs) error {
		return a.Output.SetFloat64s(a.Input.Float64s())
	}}
	for _, impl := range []opregistry.Impl{oracle, wrong} {
		results, err := kit.Verify(impl, oracle)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(impl.ID, opstest.AnyFailed(results))
	}
	// Output:
	// reference.double false
	// vendor.acme true
}
