package moe

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MoEPermuteWithRoutingMapArgs are the arguments of MoEPermuteWithRoutingMap.
type MoEPermuteWithRoutingMapArgs struct {
	Tokens        *tensor.Tensor // [tokens, h]
	RoutingMap    *tensor.Tensor // bool [tokens, experts]
	Probs         *tensor.Tensor // f32 [tokens, experts], may be nil
	Output        *tensor.Tensor // [rows, h], a row for each true entry of the map
	OutputProbs   *tensor.Tensor // f32 [rows], given when Probs is
	SortedIndices *tensor.Tensor // i32 [rows]
	Saved         *opregistry.Saved
}

// MoEPermuteWithRoutingMap copies rows of tokens to the experts that a map names. Row r belongs to
// the r-th true entry (t, e) of the map, ordered by e, then by t:
//
//	output[r,:] = tokens[t,:]    output_probs[r] = probs[t,e]    sorted_indices[r] = t
//
// Tokens, routing_map and probs are read, the others are written; all are disjoint. Everything is
// copied bit for bit; tokens may have any compute dtype. The number of rows must be the number of
// true entries; otherwise the call is an argument error: nothing is dropped or padded. Source:
// TransformerEngine-FL, September 2026.
var MoEPermuteWithRoutingMap = opregistry.NewOp("moe_permute_with_routing_map", opregistry.Schema[MoEPermuteWithRoutingMapArgs]{
	Doc:      "rows of tokens sorted by the experts that a map names",
	Family:   "moe_permute_with_routing_map",
	Forward:  true,
	Saved:    func(a MoEPermuteWithRoutingMapArgs) *opregistry.Saved { return a.Saved },
	Validate: validateRoutingMap,
	Operands: func(a MoEPermuteWithRoutingMapArgs) []opregistry.Operand {
		return check.Operands{}.Read("tokens", a.Tokens).Read("routing_map", a.RoutingMap).Read("probs", a.Probs).
			Write("output", a.Output).Write("output_probs", a.OutputProbs).Write("sorted_indices", a.SortedIndices)
	},
})

func validateRoutingMap(a MoEPermuteWithRoutingMapArgs) error {
	c := check.Call{Op: "moe_permute_with_routing_map"}
	rowsAlike(&c, "tokens", a.Tokens, "output", a.Output)
	if c.DType("routing_map", a.RoutingMap, tensor.Bool) && c.Rank("routing_map", a.RoutingMap, 2) {
		tokens, experts, set := a.RoutingMap.Shape()[0], a.RoutingMap.Shape()[1], 0
		if tokens != a.Tokens.Shape()[0] {
			c.Fail("routing_map", "a row for each of "+check.Itoa(a.Tokens.Shape()[0])+" tokens", "%v", a.RoutingMap)
		}
		for t := 0; c.Err == nil && t < tokens; t++ {
			for e := range experts {
				if check.Flag(a.RoutingMap, t, e) {
					set++
				}
			}
		}
		if c.Err == nil && a.Output.Shape()[0] != set {
			c.Fail("output", check.Itoa(set)+" rows, one a true entry of routing_map", "%v", a.Output)
		}
	}
	if a.Probs != nil && c.DType("probs", a.Probs, tensor.F32) {
		c.SameShape("probs", a.Probs, "routing_map", a.RoutingMap)
	}
	if a.Probs == nil && a.OutputProbs != nil {
		c.Fail("output_probs", "nil without probs", "%v", a.OutputProbs)
	}
	if a.Probs != nil && c.DType("output_probs", a.OutputProbs, tensor.F32) && c.Rank("output_probs", a.OutputProbs, 1) {
		c.Elements("output_probs", a.OutputProbs, a.Output.Shape()[0], "one a row of output")
	}
	if c.DType("sorted_indices", a.SortedIndices, tensor.I32) && c.Rank("sorted_indices", a.SortedIndices, 1) {
		c.Elements("sorted_indices", a.SortedIndices, a.Output.Shape()[0], "one a row of output")
	}
	c.Apart([]check.Named{{Name: "output", Tensor: a.Output}, {Name: "output_probs", Tensor: a.OutputProbs}, {Name: "sorted_indices", Tensor: a.SortedIndices}},
		[]check.Named{{Name: "tokens", Tensor: a.Tokens}, {Name: "routing_map", Tensor: a.RoutingMap}, {Name: "probs", Tensor: a.Probs}})
	c.Saved(a.Saved)
	return c.Err
}

// MoEUnpermuteWithRoutingMapArgs are the arguments of MoEUnpermuteWithRoutingMap.
type MoEUnpermuteWithRoutingMapArgs struct {
	PermutedTokens *tensor.Tensor // [rows, h]
	SortedIndices  *tensor.Tensor // i32 [rows], from MoEPermuteWithRoutingMap
	Output         *tensor.Tensor // [tokens, h]
	Saved          *opregistry.Saved
}

// MoEUnpermuteWithRoutingMap adds up the rows of each token:
//
//	output[t,:] = Σ_{r: sorted_indices[r]=t} permuted_tokens[r,:]
//
// which is also the gradient of MoEPermuteWithRoutingMap with respect to tokens. Permuted_tokens
// and sorted_indices are read, output is written; all are disjoint. One compute dtype; rows are
// added in ascending r in f32 or better. An index outside [0, tokens) is an argument error. Source:
// TransformerEngine-FL, September 2026.
var MoEUnpermuteWithRoutingMap = opregistry.NewOp("moe_unpermute_with_routing_map", opregistry.Schema[MoEUnpermuteWithRoutingMapArgs]{
	Doc:    "rows sorted by moe_permute_with_routing_map added up by token",
	Family: "moe_permute_with_routing_map",
	Saved:  func(a MoEUnpermuteWithRoutingMapArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a MoEUnpermuteWithRoutingMapArgs) error {
		c := check.Call{Op: "moe_unpermute_with_routing_map"}
		rowsAlike(&c, "permuted_tokens", a.PermutedTokens, "output", a.Output)
		if c.DType("sorted_indices", a.SortedIndices, tensor.I32) && c.Rank("sorted_indices", a.SortedIndices, 1) {
			c.Elements("sorted_indices", a.SortedIndices, a.PermutedTokens.Shape()[0], "one a row of permuted_tokens")
			within(&c, "sorted_indices", a.SortedIndices, a.Output.Shape()[0])
		}
		c.Apart([]check.Named{{Name: "output", Tensor: a.Output}}, []check.Named{{Name: "permuted_tokens", Tensor: a.PermutedTokens}, {Name: "sorted_indices", Tensor: a.SortedIndices}})
		c.Saved(a.Saved)
		return c.Err
	},
	Operands: func(a MoEUnpermuteWithRoutingMapArgs) []opregistry.Operand {
		return check.Operands{}.Read("permuted_tokens", a.PermutedTokens).Read("sorted_indices", a.SortedIndices).Write("output", a.Output)
	},
})

// within requires every element of a vector of integers to lie in [0, limit).
func within(c *check.Call, name string, t *tensor.Tensor, limit int) {
	for i := 0; c.Err == nil && i < t.NumElements(); i++ {
		if v := check.Integer(t, i); v < 0 || v >= limit {
			c.Fail(name, "values in [0, "+check.Itoa(limit)+")", "%d at element %d", v, i)
		}
	}
}
