package attention

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// GatedDeltaNetForwardArgs are the arguments of GatedDeltaNetForward.
type GatedDeltaNetForwardArgs struct {
	Query        *tensor.Tensor `op:"0 query read compute [b s h dk]"`
	Key          *tensor.Tensor `op:"1 key read =query [b s h dk]"`
	Value        *tensor.Tensor `op:"2 value read =query [b s h dv]"`
	G            *tensor.Tensor `op:"3 g read compute [b s h]"`
	Beta         *tensor.Tensor `op:"4 beta read compute [b s h]"`
	InitialState *tensor.Tensor `op:"5 initial_state read compute [b h dk dv] ?"`
	UseQKL2Norm  bool           `op:"6 use_qkl2_norm"`
	Output       *tensor.Tensor `op:"7 output write =value [b s h dv]"`
	FinalState   *tensor.Tensor `op:"8 final_state write compute [b h dk dv] ?"`
}

// GatedDeltaNetForward is linear attention by the gated delta rule.
var GatedDeltaNetForward = opregistry.NewOp("gated_delta_net_forward", opregistry.Schema[GatedDeltaNetForwardArgs]{
	Doc: "linear attention by the gated delta rule",
	Formula: `
		gated_delta_net_forward is linear attention by the gated delta rule. For each batch and
		head, starting from the initial state, it computes position by position

		  S = exp(g)·S
		  S = S + k ⊗ beta·(v − Sᵀk)
		  o = Sᵀq / √d_k

		With use_qkl2_norm, q and k are divided by their Euclidean norms, or by 1e-6 where those are
		smaller.

		The state is kept in f32 or better. Without positions the final state is the initial one.
		Source: Yang et al. 2024, arXiv:2412.06464; TransformerEngine-FL, September 2026.

		Arguments:

		  g              the logarithm of the decay
		  beta           the strength of the update
		  initial_state  nil for 0
		  final_state    nil when not wanted

		Example:

		  query=[[[[1]] [[1]]]] key=[[[[1]] [[2]]]] value=[[[[3]] [[5]]]] g=[[[0] [-1]]] beta=[[[1]
		    [0.5]]] → output=[[[[3]] [[3.896]]]] final_state=[[[[3.896]]]]
	`,
	Tolerance: opregistry.Arithmetic(1e-5, 1e-5, "70 updates of a state that forgets, sums of up to 16 products"),
})
