// Command custom_op registers an implementation of rmsnorm_fwd and calls it.
package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"gonum.org/v1/gonum/floats"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "custom_op:", err)
		os.Exit(1)
	}
}

// run normalises two rows with rmsnorm and prints them.
func run(stdout io.Writer) error {
	registry := opregistry.NewRegistry()
	if err := registry.Register(source()); err != nil {
		return err
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	op, err := opmanager.Bind(manager, norm.RMSNormFwd)
	if err != nil {
		return err
	}

	var errs [4]error
	args := norm.RMSNormFwdArgs{Eps: 1e-5, Saved: new(opregistry.Saved)}
	args.Input, errs[0] = tensor.FromSlice([]float32{3, 4, 6, 8}, 2, 2)
	args.Weight, errs[1] = tensor.FromSlice([]float32{1, 1})
	args.Output, errs[2] = tensor.FromSlice(make([]float32, 4), 2, 2)
	args.RSigma, errs[3] = tensor.FromSlice(make([]float32, 2))
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if err := op.Call(args); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, tensor.Data[float32](args.Output))
	return err
}

// source lists the implementations of mybackend.
func source() opregistry.Source {
	return opregistry.Source{Name: "mybackend", Impls: []opregistry.Impl{{
		Op:       norm.RMSNormFwd,
		ID:       "vendor.mybackend",
		Kind:     opregistry.KindVendor,
		Vendor:   "mybackend",
		Priority: 200,
		Run:      rmsnorm,
	}}}
}

// rmsnorm follows norm.RMSNormFwd, for any shape and dtype that the op allows. It computes in
// float64 and makes copies to do so; an implementation for production works in place.
func rmsnorm(_ *opregistry.Exec, a norm.RMSNormFwdArgs) error {
	x, gamma := a.Input.Float64s(), a.Weight.Float64s()
	if a.ZeroCenteredGamma {
		floats.AddConst(1, gamma)
	}
	cols := len(gamma)
	rsigma := make([]float64, len(x)/cols)
	for r := range rsigma {
		row := x[r*cols:][:cols]
		rsigma[r] = 1 / math.Sqrt(floats.Dot(row, row)/float64(cols)+float64(a.Eps))
		floats.Scale(rsigma[r], row)
		floats.Mul(row, gamma)
	}
	if err := a.RSigma.SetFloat64s(rsigma); err != nil {
		return err
	}
	return a.Output.SetFloat64s(x)
}
