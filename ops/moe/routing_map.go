package moe

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MoEPermuteWithRoutingMapArgs are the arguments of MoEPermuteWithRoutingMap.
type MoEPermuteWithRoutingMapArgs struct {
	Tokens        *tensor.Tensor `op:"0 tokens read compute [tokens h]"`
	RoutingMap    *tensor.Tensor `op:"1 routing_map read bool [tokens experts]"`
	Probs         *tensor.Tensor `op:"2 probs read f32 [tokens experts] ?"`
	Output        *tensor.Tensor `op:"3 output write =tokens [rows h]"`
	OutputProbs   *tensor.Tensor `op:"4 output_probs write f32 [rows] ?:probs"`
	SortedIndices *tensor.Tensor `op:"5 sorted_indices write i32 [rows]"`
	Saved         *opregistry.Saved
}

// MoEPermuteWithRoutingMap copies rows of tokens to the experts that a map names.
var MoEPermuteWithRoutingMap = opregistry.NewOp("moe_permute_with_routing_map", opregistry.Schema[MoEPermuteWithRoutingMapArgs]{
	Doc: "rows of tokens sorted by the experts that a map names",
	Formula: `
		moe_permute_with_routing_map copies rows of tokens to the experts that a map names. Row r
		belongs to the r-th true entry (t, e) of the map, ordered by e, then by t:

		  output[r,:] = tokens[t,:]    output_probs[r] = probs[t,e]    sorted_indices[r] = t

		Everything is copied bit for bit. The number of rows must be the number of true entries;
		otherwise the call is an argument error: nothing is dropped or padded. Source:
		TransformerEngine-FL, September 2026.

		Arguments:

		  output  a row for each true entry of the map

		Example:

		  tokens=[[1 2] [3 4]] routing_map=bool[[0 1] [1 1]] probs=[[0 0.5] [0.25 0.75]] →
		    output=[[3 4] [1 2] [3 4]] output_probs=[0.25 0.5 0.75] sorted_indices=i32[1 0 1]
	`,
	Family:    "moe_permute_with_routing_map",
	Forward:   true,
	Check:     routed,
	Tolerance: opregistry.Exact("a copy"),
})

func routed(c *opregistry.Check, a *MoEPermuteWithRoutingMapArgs) {
	tokens, experts, set := a.RoutingMap.Shape()[0], a.RoutingMap.Shape()[1], 0
	for t := range tokens {
		for e := range experts {
			if check.Flag(a.RoutingMap, t, e) {
				set++
			}
		}
	}
	if a.Output.Shape()[0] != set {
		c.Fail("output", check.Itoa(set)+" rows, one per true entry of routing_map", "%v", a.Output)
	}
}

// MoEUnpermuteWithRoutingMapArgs are the arguments of MoEUnpermuteWithRoutingMap.
type MoEUnpermuteWithRoutingMapArgs struct {
	PermutedTokens *tensor.Tensor `op:"0 permuted_tokens read compute [rows h]"`
	SortedIndices  *tensor.Tensor `op:"1 sorted_indices read i32 [rows]"`
	Output         *tensor.Tensor `op:"2 output write =permuted_tokens [tokens h]"`
	Saved          *opregistry.Saved
}

// MoEUnpermuteWithRoutingMap adds up the rows of each token.
var MoEUnpermuteWithRoutingMap = opregistry.NewOp("moe_unpermute_with_routing_map", opregistry.Schema[MoEUnpermuteWithRoutingMapArgs]{
	Doc: "rows sorted by moe_permute_with_routing_map added up by token",
	Formula: `
		moe_unpermute_with_routing_map adds up the rows of each token:

		  output[t,:] = Σ_{r: sorted_indices[r]=t} permuted_tokens[r,:]

		which is also the gradient of moe_permute_with_routing_map with respect to tokens. Rows are
		added in ascending r in f32 or better. An index outside [0, tokens) is an argument error.
		Source: TransformerEngine-FL, September 2026.

		Arguments:

		  sorted_indices  from moe_permute_with_routing_map

		Example:

		  permuted_tokens=[[3 4] [1 2] [3 4]] sorted_indices=i32[1 0 1] → output=[[1 2] [6 8]]
	`,
	Family: "moe_permute_with_routing_map",
	Check: func(c *opregistry.Check, a *MoEUnpermuteWithRoutingMapArgs) {
		within(c, "sorted_indices", a.SortedIndices, a.Output.Shape()[0])
	},
	Tolerance: opregistry.Arithmetic(5e-6, 2e-6, "sums of up to 60 rows, partial sums near 5"),
})

// within requires every element of a vector of integers to lie in [0, limit), where it lies in host
// memory.
func within(c *opregistry.Check, name string, t *tensor.Tensor, limit int) {
	for i := 0; c.OK() && t.OnHost() && i < t.NumElements(); i++ {
		if v := check.Integer(t, i); v < 0 || v >= limit {
			c.Fail(name, "values in [0, "+check.Itoa(limit)+")", "%d at element %d", v, i)
		}
	}
}
