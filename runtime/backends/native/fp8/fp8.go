// Package fp8 rounds the operands of products to fp8 and back, as training in fp8 does.
package fp8

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// Format says which fp8 types operands have, with Megatron's names.
type Format string

// The formats; "" means no fp8.
const (
	E4M3   Format = "e4m3"   // all operands
	Hybrid Format = "hybrid" // activations and weights have E4M3, gradients E5M2
)

// Values returns the formats.
func (Format) Values() []string { return []string{string(E4M3), string(Hybrid)} }

// Tensorwise is the recipe with one scale per tensor, from the largest magnitude in it.
const Tensorwise = "tensorwise"

// Params are the parameters of fp8, with Megatron's names.
type Params struct {
	Format Format `param:"fp8"`
	Recipe string `param:"fp8_recipe"`

	// FirstLast leaves the layers at the start and at the end in 16 bits.
	FirstLast bool `param:"first_last_layers_bf16"`
	Start     int  `param:"num_layers_at_start_in_bf16"` // with FirstLast; 0 means 1
	End       int  `param:"num_layers_at_end_in_bf16"`   // with FirstLast; 0 means 1
}

// Validate returns every fault of the configuration, for activations of 16 bits or not.
func (c Params) Validate(narrow bool) error {
	if c.Format == "" {
		return nil
	}
	var faults []error
	bad := func(key string, got any, want string) {
		faults = append(faults, fmt.Errorf("%s: got %v, want %s", key, got, want))
	}
	switch {
	case !slices.Contains(c.Format.Values(), string(c.Format)):
		bad("fp8", fmt.Sprintf("%q", c.Format), strings.Join(c.Format.Values(), " or "))
	case !narrow:
		bad("fp8", c.Format, "null without bf16 or fp16")
	}
	if c.Recipe != Tensorwise {
		bad("fp8_recipe", cmp.Or(c.Recipe, "delayed, its default"), Tensorwise)
	}
	if c.Start < 0 || c.End < 0 {
		bad("num_layers_at_start_in_bf16 and num_layers_at_end_in_bf16", fmt.Sprintf("%d and %d", c.Start, c.End), "numbers >= 0")
	}
	return errors.Join(faults...)
}

// At reports whether the products of a layer, of so many, have operands of fp8.
func (c Params) At(layer, layers int) bool {
	if c.Format == "" {
		return false
	}
	return !c.FirstLast || layer >= cmp.Or(c.Start, 1) && layer < layers-cmp.Or(c.End, 1)
}

// GradType returns the type of gradients.
func (c Params) GradType() tensor.DType {
	if c.Format == Hybrid {
		return tensor.F8E5M2
	}
	return tensor.F8E4M3
}

// Rounder is the state in which matrices are rounded: fp8 data and its scale.
type Rounder struct {
	Quantize   *opmanager.Bound[quant.QuantizeArgs]
	Dequantize *opmanager.Bound[quant.DequantizeArgs]
	data       *tensor.Tensor
	scales     [3]*tensor.Tensor // scale_inv, scale, amax
}

// NewRounder returns a rounder for matrices of a shape, in memory that allocate returns.
func NewRounder(m *opmanager.Manager, d tensor.DType, allocate func(d tensor.DType, shape ...int) *tensor.Tensor, rows, cols int) *Rounder {
	r := &Rounder{Quantize: opmanager.MustBind(m, quant.Quantize), Dequantize: opmanager.MustBind(m, quant.Dequantize), data: allocate(d, rows, cols)}
	for i := range r.scales {
		r.scales[i] = allocate(tensor.F32, 1)
	}
	return r
}

// Args returns the arguments that write x [rows, cols], rounded to fp8, to y. They are for one call
// of each op.
func (r *Rounder) Args(x, y *tensor.Tensor) (quant.QuantizeArgs, quant.DequantizeArgs) {
	q := quant.Quantized{Data: r.data, ScaleInv: r.scales[0], Scale: r.scales[1], Amax: r.scales[2]}
	return quant.QuantizeArgs{Tensor: x, Quantizer: quant.Quantizer{Scaling: quant.CurrentScaling}, Output: q},
		quant.DequantizeArgs{Input: quant.Quantized{Data: r.data, ScaleInv: r.scales[0]}, Scaling: quant.CurrentScaling, Output: y}
}
