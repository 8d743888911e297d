package ops

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// GatedDeltaNetForwardArgs are the arguments of GatedDeltaNetForward.
type GatedDeltaNetForwardArgs struct {
	Query        *tensor.Tensor // [b, s, h, d_k]
	Key          *tensor.Tensor // [b, s, h, d_k]
	Value        *tensor.Tensor // [b, s, h, d_v]
	G            *tensor.Tensor // [b, s, h]: the logarithm of the decay
	Beta         *tensor.Tensor // [b, s, h]: the strength of the update
	InitialState *tensor.Tensor // [b, h, d_k, d_v], nil for 0
	UseQKL2Norm  bool
	Output       *tensor.Tensor // [b, s, h, d_v]
	FinalState   *tensor.Tensor // [b, h, d_k, d_v], nil when not wanted
}

// GatedDeltaNetForward is linear attention by the gated delta rule. For each batch and head,
// starting from the initial state, it computes position by position
//
//	S = exp(g)·S
//	S = S + k ⊗ beta·(v − Sᵀk)
//	o = Sᵀq / √d_k
//
// With UseQKL2Norm, q and k are divided by their Euclidean norms, or by 1e-6 where those are
// smaller.
//
// Output and final_state are written, the others are read; all are disjoint. Query, key, value and
// output have one compute dtype, the others any; the state is kept in f32 or better. Without
// positions the final state is the initial one. Source: Yang et al. 2024, arXiv:2412.06464;
// TransformerEngine-FL, September 2026.
var GatedDeltaNetForward = opregistry.NewOp("gated_delta_net_forward", opregistry.Schema[GatedDeltaNetForwardArgs]{
	Doc: "linear attention by the gated delta rule",
	Validate: func(a GatedDeltaNetForwardArgs) error {
		c := check{op: "gated_delta_net_forward"}
		if !c.compute("query", a.Query) || !c.rank("query", a.Query, 4) || !c.compute("value", a.Value) || !c.rank("value", a.Value, 4) {
			return c.err
		}
		c.like("key", a.Key, "query", a.Query)
		c.sameDType("value", a.Value, "query", a.Query)
		q, dv := a.Query.Shape(), a.Value.Shape()[3]
		c.axes("value", a.Value, q[0], q[1], q[2], dv)
		if c.compute("g", a.G) {
			c.axes("g", a.G, q[0], q[1], q[2])
		}
		if c.compute("beta", a.Beta) {
			c.axes("beta", a.Beta, q[0], q[1], q[2])
		}
		c.like("output", a.Output, "value", a.Value)
		for _, x := range [...]named{{"initial_state", a.InitialState}, {"final_state", a.FinalState}} {
			if x.t != nil && c.compute(x.name, x.t) {
				c.axes(x.name, x.t, q[0], q[2], q[3], dv)
			}
		}
		c.apart([]named{{"output", a.Output}, {"final_state", a.FinalState}},
			[]named{{"query", a.Query}, {"key", a.Key}, {"value", a.Value}, {"g", a.G}, {"beta", a.Beta}, {"initial_state", a.InitialState}})
		return c.err
	},
	Operands: func(a GatedDeltaNetForwardArgs) []opregistry.Operand {
		return operands{}.read("query", a.Query).read("key", a.Key).read("value", a.Value).read("g", a.G).read("beta", a.Beta).
			read("initial_state", a.InitialState).write("output", a.Output).write("final_state", a.FinalState)
	},
})
