// Command custom_op registers an implementation of rmsnorm_fwd and calls it.
package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

func rmsnorm(_ *opregistry.Exec, a norm.RMSNormFwdArgs) error {
	for r, cols := 0, a.Weight.NumElements(); r < a.Input.Shape().Rows(); r++ {
		sum := 0.0
		for i := range cols {
			sum += a.Input.At(r, i) * a.Input.At(r, i) / float64(cols)
		}
		a.RSigma.Set(1/math.Sqrt(sum+float64(a.Eps)), r)
		for i := range cols {
			a.Output.Set(a.Input.At(r, i)*a.RSigma.At(r)*a.Weight.At(i), r, i)
		}
	}
	return nil
}

func main() {
	registry := opregistry.NewRegistry()
	err := registry.Register(opregistry.Source{Name: "mybackend", Impls: []opregistry.Impl{{
		Op: norm.RMSNormFwd, ID: "vendor.mybackend", Kind: opregistry.KindVendor, Vendor: "mybackend", Priority: 200, Run: rmsnorm}}})
	op := opmanager.MustBind(opmanager.New(registry, oppolicy.Default(), opmanager.Settings{}), norm.RMSNormFwd)
	x, _ := tensor.FromSlice([]float32{3, 4, 6, 8}, 2, 2)
	w, _ := tensor.FromSlice([]float32{1, 1})
	y, _ := tensor.FromSlice(make([]float32, 4), 2, 2)
	rsigma, _ := tensor.FromSlice(make([]float32, 2))
	err = errors.Join(err, op.Call(norm.RMSNormFwdArgs{Input: x, Weight: w, Output: y, RSigma: rsigma, Eps: 1e-5, Saved: new(opregistry.Saved)}))
	fmt.Println(tensor.Data[float32](y), err)
}
