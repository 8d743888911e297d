package opmanager_test

import (
	"context"
	"fmt"
	"math"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// A vendor's rmsnorm: define it, register it, call the op through a manager.
func Example() {
	rmsnorm := func(_ *opregistry.Exec, a norm.RMSNormFwdArgs) error {
		if a.Input.DType() != tensor.F32 || !a.Input.IsContiguous() {
			return opregistry.Unsupported("given %v, want contiguous f32", a.Input)
		}
		x, w, y := tensor.Data[float32](a.Input), tensor.Data[float32](a.Weight), tensor.Data[float32](a.Output)
		for r, cols := 0, len(w); r*cols < len(x); r++ {
			sum := 0.0
			for _, v := range x[r*cols : (r+1)*cols] {
				sum += float64(v) * float64(v)
			}
			rsigma := float32(1 / math.Sqrt(sum/float64(cols)+float64(a.Eps)))
			tensor.Data[float32](a.RSigma)[r] = rsigma
			for i := range w {
				y[r*cols+i] = x[r*cols+i] * rsigma * w[i]
			}
		}
		return nil
	}
	backward := func(*opregistry.Exec, norm.RMSNormBwdArgs) error {
		return opregistry.Unsupported("left out of the example")
	}

	registry := opregistry.NewRegistry()
	err := registry.Register(opregistry.Source{Name: "mybackend", Impls: []opregistry.Impl{
		{Op: norm.RMSNormFwd, ID: "vendor.mybackend", Kind: opregistry.KindVendor, Vendor: "mybackend", Priority: 200, Run: rmsnorm},
		{Op: norm.RMSNormBwd, ID: "vendor.mybackend", Kind: opregistry.KindVendor, Vendor: "mybackend", Priority: 200, Run: backward},
	}})
	if err != nil {
		panic(err)
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()

	x, _ := tensor.FromSlice([]float32{3, 4, 6, 8}, 2, 2)
	w, _ := tensor.FromSlice([]float32{1, 1})
	y, _ := tensor.FromSlice(make([]float32, 4), 2, 2)
	rsigma, _ := tensor.FromSlice(make([]float32, 2))
	bound := opmanager.MustBind(manager, norm.RMSNormFwd)
	err = bound.Call(norm.RMSNormFwdArgs{Input: x, Weight: w, Output: y, RSigma: rsigma, Eps: 1e-5, Saved: new(opregistry.Saved)})
	fmt.Printf("%.3f %v\n", tensor.Data[float32](y), err)
	// Output: [0.849 1.131 0.849 1.131] <nil>
}

// A program reads a policy file, sees what it would change, and sets a layer of its own above it.
func ExamplePolicyStack() {
	registry := opregistry.NewRegistry()
	add := func(*opregistry.Exec, norm.ResidualAddArgs) error { return nil }
	err := registry.Register(opregistry.Source{Name: "mybackend", Impls: []opregistry.Impl{
		{Op: norm.ResidualAdd, ID: "default.flagos", Kind: opregistry.KindFlagos, Run: add},
		{Op: norm.ResidualAdd, ID: "vendor.mybackend", Kind: opregistry.KindVendor, Vendor: "mybackend", Run: add},
	}})
	if err != nil {
		panic(err)
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()
	stack := manager.PolicyStack()

	file, err := policyfile.Parse(context.Background(), "policy.yaml", []byte("prefer: vendor\nstrict: true\n"))
	if err != nil {
		panic(err)
	}
	for _, c := range stack.DryRun(opmanager.LayerFile, file.PolicyLayer).Changes {
		fmt.Printf("would change %s: %s -> %s\n", c.Op, c.From, c.To)
	}
	if _, err := stack.Set(opmanager.LayerFile, file.PolicyLayer); err != nil {
		panic(err)
	}
	var own oppolicy.Policy
	if err := own.SetDeny("mybackend", "my program"); err != nil {
		panic(err)
	}
	if _, err := stack.Set(opmanager.LayerFlags, opmanager.PolicyLayer{Policy: own}); err != nil {
		panic(err)
	}

	policy := stack.State().Policy
	fmt.Println("strict, from", policy.Source(oppolicy.FieldStrict))
	e, _ := manager.Explain(norm.ResidualAdd.Name())
	fmt.Printf("%s, because %s: %s\n", e.Selected, e.Rejected[0].ID, e.Rejected[0].Reason)
	// Output:
	// would change residual_add: default.flagos -> vendor.mybackend
	// strict, from policy.yaml:2
	// default.flagos, because vendor.mybackend: vendor mybackend is denied by my program
}
