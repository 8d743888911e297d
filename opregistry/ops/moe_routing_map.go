package ops

import (
	"github.com/primus-fl/primus/opregistry"
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
		return operands{}.read("tokens", a.Tokens).read("routing_map", a.RoutingMap).read("probs", a.Probs).
			write("output", a.Output).write("output_probs", a.OutputProbs).write("sorted_indices", a.SortedIndices)
	},
})

func validateRoutingMap(a MoEPermuteWithRoutingMapArgs) error {
	c := check{op: "moe_permute_with_routing_map"}
	c.rowsAlike("tokens", a.Tokens, "output", a.Output)
	if c.dtype("routing_map", a.RoutingMap, tensor.Bool) && c.rank("routing_map", a.RoutingMap, 2) {
		tokens, experts, set := a.RoutingMap.Shape()[0], a.RoutingMap.Shape()[1], 0
		if tokens != a.Tokens.Shape()[0] {
			c.fail("routing_map", "a row for each of "+itoa(a.Tokens.Shape()[0])+" tokens", "%v", a.RoutingMap)
		}
		for t := 0; c.err == nil && t < tokens; t++ {
			for e := range experts {
				if flag(a.RoutingMap, t, e) {
					set++
				}
			}
		}
		if c.err == nil && a.Output.Shape()[0] != set {
			c.fail("output", itoa(set)+" rows, one a true entry of routing_map", "%v", a.Output)
		}
	}
	if a.Probs != nil && c.dtype("probs", a.Probs, tensor.F32) {
		c.sameShape("probs", a.Probs, "routing_map", a.RoutingMap)
	}
	if a.Probs == nil && a.OutputProbs != nil {
		c.fail("output_probs", "nil without probs", "%v", a.OutputProbs)
	}
	if a.Probs != nil && c.dtype("output_probs", a.OutputProbs, tensor.F32) && c.rank("output_probs", a.OutputProbs, 1) {
		c.elements("output_probs", a.OutputProbs, a.Output.Shape()[0], "one a row of output")
	}
	if c.dtype("sorted_indices", a.SortedIndices, tensor.I32) && c.rank("sorted_indices", a.SortedIndices, 1) {
		c.elements("sorted_indices", a.SortedIndices, a.Output.Shape()[0], "one a row of output")
	}
	c.apart([]named{{"output", a.Output}, {"output_probs", a.OutputProbs}, {"sorted_indices", a.SortedIndices}},
		[]named{{"tokens", a.Tokens}, {"routing_map", a.RoutingMap}, {"probs", a.Probs}})
	c.saved(a.Saved)
	return c.err
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
		c := check{op: "moe_unpermute_with_routing_map"}
		c.rowsAlike("permuted_tokens", a.PermutedTokens, "output", a.Output)
		if c.dtype("sorted_indices", a.SortedIndices, tensor.I32) && c.rank("sorted_indices", a.SortedIndices, 1) {
			c.elements("sorted_indices", a.SortedIndices, a.PermutedTokens.Shape()[0], "one a row of permuted_tokens")
			c.within("sorted_indices", a.SortedIndices, a.Output.Shape()[0])
		}
		c.apart([]named{{"output", a.Output}}, []named{{"permuted_tokens", a.PermutedTokens}, {"sorted_indices", a.SortedIndices}})
		c.saved(a.Saved)
		return c.err
	},
	Operands: func(a MoEUnpermuteWithRoutingMapArgs) []opregistry.Operand {
		return operands{}.read("permuted_tokens", a.PermutedTokens).read("sorted_indices", a.SortedIndices).write("output", a.Output)
	},
})

// within requires every element of a vector of integers to lie in [0, limit).
func (c *check) within(name string, t *tensor.Tensor, limit int) {
	for i := 0; c.err == nil && i < t.NumElements(); i++ {
		if v := integer(t, i); v < 0 || v >= limit {
			c.fail(name, "values in [0, "+itoa(limit)+")", "%d at element %d", v, i)
		}
	}
}
