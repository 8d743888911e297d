// Package fp8 rounds the operands of products to fp8 and back, as training in fp8 does.
package fp8

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// Recipe says how operands are scaled, with Megatron's names.
type Recipe string

// The recipes; "" means Delayed.
const (
	Delayed    Recipe = "delayed"    // one scale per tensor, from the largest magnitudes of earlier steps
	Tensorwise Recipe = "tensorwise" // one scale per tensor, from the largest magnitude in it
	Blockwise  Recipe = "blockwise"  // a power of two for each 1×128 elements, of weights for each 128×128
	MXFP8      Recipe = "mxfp8"      // a power of two for each 1×32 elements
)

// Values returns the recipes.
func (Recipe) Values() []string {
	return []string{string(Delayed), string(Tensorwise), string(Blockwise), string(MXFP8)}
}

// Algo chooses the largest magnitude from which Delayed computes a scale, with Megatron's names.
type Algo string

// The algorithms; "" means MostRecent.
const (
	MostRecent Algo = "most_recent" // that of the last step
	Max        Algo = "max"         // the largest of the history
)

// Values returns the algorithms.
func (Algo) Values() []string { return []string{string(MostRecent), string(Max)} }

// Params are the parameters of fp8, with Megatron's names.
type Params struct {
	Format Format `param:"fp8"`
	Recipe Recipe `param:"fp8_recipe"`

	// Of Delayed.
	Margin     int  `param:"fp8_margin"`           // scales are 2^margin times smaller than they could be
	HistoryLen int  `param:"fp8_amax_history_len"` // steps; 0 means 1
	Algo       Algo `param:"fp8_amax_compute_algo"`

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
		faults = append(faults, fmt.Errorf("%s: given %v, want %s", key, got, want))
	}
	oneOf := func(key, got string, values []string) bool {
		if got != "" && !slices.Contains(values, got) {
			bad(key, fmt.Sprintf("%q", got), strings.Join(values, " or "))
			return false
		}
		return true
	}
	if oneOf("fp8", string(c.Format), c.Format.Values()) && !narrow {
		bad("fp8", c.Format, "null without bf16 or fp16")
	}
	oneOf("fp8_recipe", string(c.Recipe), c.Recipe.Values())
	oneOf("fp8_amax_compute_algo", string(c.Algo), c.Algo.Values())
	if c.HistoryLen < 0 {
		bad("fp8_amax_history_len", c.HistoryLen, "a number >= 1")
	}
	if c.Margin < -maxMargin || c.Margin > maxMargin {
		bad("fp8_margin", c.Margin, fmt.Sprintf("a number from %d to %d", -maxMargin, maxMargin))
	}
	if c.Start < 0 || c.End < 0 {
		bad("num_layers_at_start_in_bf16 and num_layers_at_end_in_bf16", fmt.Sprintf("%d and %d", c.Start, c.End), "numbers >= 0")
	}
	return errors.Join(faults...)
}

// maxMargin bounds the margin to factors that a number of f32 has room for.
const maxMargin = 64

// At reports whether the products of a layer, of so many, have operands of fp8.
func (c Params) At(layer, layers int) bool {
	if c.Format == "" {
		return false
	}
	return !c.FirstLast || layer >= cmp.Or(c.Start, 1) && layer < layers-cmp.Or(c.End, 1)
}

// DType returns the type of an operand.
func (c Params) DType(of Operand) tensor.DType {
	if of == Gradient && c.Format == Hybrid {
		return tensor.F8E5M2
	}
	return tensor.F8E4M3
}

// Sided reports whether a weight has other values in products along its rows than in those along
// its columns. The other operands have them with blocks.
func (c Params) Sided() bool { return c.Format != "" && c.Recipe == MXFP8 }

func (c Params) delayed() bool { return c.Format != "" && cmp.Or(c.Recipe, Delayed) == Delayed }

// quantizer returns how an operand is scaled.
func (c Params) quantizer(of Operand) quant.Quantizer {
	switch c.Recipe {
	case Tensorwise:
		return quant.Quantizer{Scaling: quant.CurrentScaling}
	case Blockwise:
		return quant.Quantizer{Scaling: quant.BlockScaling, ForcePow2Scales: true, Block2D: of == Weight}
	case MXFP8:
		return quant.Quantizer{Scaling: quant.MXFP8Scaling}
	default:
		return quant.Quantizer{Scaling: quant.DelayedScaling}
	}
}

// Operand is an operand of the products of a linear layer.
type Operand int

// The operands.
const (
	Input Operand = iota
	Weight
	Gradient // of the output
)
