package opregistry_test

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// clampArgs are the arguments of clamp. The tags say what a call does with them.
type clampArgs struct {
	Input  *tensor.Tensor `op:"0 input read f32 [..]"`
	Output *tensor.Tensor `op:"1 output write =input [..] may=input"`
	Limit  float32        `op:"2 limit >=0"`
}

var clamp = opregistry.NewOp("clamp", opregistry.Schema[clampArgs]{
	Doc:       "values limited to [-limit, limit]",
	Tolerance: opregistry.Exact("a choice of values"),
})

// An op is a handle with the type of its arguments, an impl a function of that type. Calls usually
// go through a manager of package opmanager, which chooses the impl.
func Example() {
	run := func(_ *opregistry.Exec, a clampArgs) error {
		out := tensor.Data[float32](a.Output)
		for i, v := range tensor.Data[float32](a.Input) {
			out[i] = max(-a.Limit, min(v, a.Limit))
		}
		return nil
	}
	registry := opregistry.NewRegistry()
	err := registry.Register(opregistry.Source{Name: "acme", Ops: []opregistry.Handle{clamp}, Impls: []opregistry.Impl{
		{Op: clamp, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100, Run: run},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}

	x, _ := tensor.FromSlice([]float32{-3, 0.5, 2})
	args := clampArgs{Input: x, Output: x, Limit: 1}
	if err := clamp.Validate(args); err != nil {
		fmt.Println(err)
		return
	}
	err = run(opregistry.NewExec(opregistry.Serial{}, 0), args)
	fmt.Println(tensor.Data[float32](x), err)

	snapshot := registry.Snapshot()
	op, _ := snapshot.Index("clamp")
	for _, impl := range snapshot.Impls(op) {
		fmt.Println(impl.ID, impl.Kind, impl.Vendor)
	}
	// Output:
	// [-1 0.5 1] <nil>
	// vendor.acme vendor acme
}

// An impl uses the workers that its caller has. Sums of blocks that do not depend on the number of
// workers, added in order, have the same bits for any number of them.
func ExampleExec_Blocks() {
	sumOfSquares := func(x *opregistry.Exec, values []float32) float32 {
		const block = 4
		sums := x.Scratch((len(values) + block - 1) / block)
		defer x.Release(sums)
		x.Blocks(len(values), block, func(lo, hi int) {
			sum := float32(0)
			for _, v := range values[lo:hi] {
				sum += v * v
			}
			sums[lo/block] = sum
		})
		total := float32(0)
		for _, sum := range sums {
			total += sum
		}
		return total
	}
	values := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, pool := range []opregistry.Pool{opregistry.Serial{}, opregistry.Goroutines(2), opregistry.Goroutines(8)} {
		fmt.Println(pool.Workers(), sumOfSquares(opregistry.NewExec(pool, 0), values))
	}
	// Output:
	// 1 385
	// 2 385
	// 8 385
}
