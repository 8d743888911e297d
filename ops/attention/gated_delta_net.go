package attention

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
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
		c := check.Call{Op: "gated_delta_net_forward"}
		if !c.Compute("query", a.Query) || !c.Rank("query", a.Query, 4) || !c.Compute("value", a.Value) || !c.Rank("value", a.Value, 4) {
			return c.Err
		}
		Like(&c, "key", a.Key, "query", a.Query)
		c.SameDType("value", a.Value, "query", a.Query)
		q, dv := a.Query.Shape(), a.Value.Shape()[3]
		axes(&c, "value", a.Value, q[0], q[1], q[2], dv)
		if c.Compute("g", a.G) {
			axes(&c, "g", a.G, q[0], q[1], q[2])
		}
		if c.Compute("beta", a.Beta) {
			axes(&c, "beta", a.Beta, q[0], q[1], q[2])
		}
		Like(&c, "output", a.Output, "value", a.Value)
		for _, x := range [...]check.Named{{Name: "initial_state", Tensor: a.InitialState}, {Name: "final_state", Tensor: a.FinalState}} {
			if x.Tensor != nil && c.Compute(x.Name, x.Tensor) {
				axes(&c, x.Name, x.Tensor, q[0], q[2], q[3], dv)
			}
		}
		c.Apart([]check.Named{{Name: "output", Tensor: a.Output}, {Name: "final_state", Tensor: a.FinalState}},
			[]check.Named{{Name: "query", Tensor: a.Query}, {Name: "key", Tensor: a.Key}, {Name: "value", Tensor: a.Value}, {Name: "g", Tensor: a.G}, {Name: "beta", Tensor: a.Beta}, {Name: "initial_state", Tensor: a.InitialState}})
		return c.Err
	},
	Operands: func(a GatedDeltaNetForwardArgs) []opregistry.Operand {
		return check.Operands{}.Read("query", a.Query).Read("key", a.Key).Read("value", a.Value).Read("g", a.G).Read("beta", a.Beta).
			Read("initial_state", a.InitialState).Write("output", a.Output).Write("final_state", a.FinalState)
	},
})
