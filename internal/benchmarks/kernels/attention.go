package main

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// attnHeads is the number of heads; each serves its own keys and values.
const attnHeads = hidden / headDim

// attentions are forward and backward of causal attention over as many tokens as a
// training step has, in sequences of growing length.
func (b *bench) attentions() []contest {
	var all []contest
	for _, seq := range []int{256, 512, 1024, 2048} {
		all = append(all, b.attention(tokens/seq, seq))
	}
	return all
}

func (b *bench) attention(batch, seq int) contest {
	// The visible half of two products forward and of five backward.
	work := 1e-9 * 7 * float64(batch*attnHeads*seq*seq*headDim)
	return contest{group: "attention", name: fmt.Sprintf("causal/b%d_s%d", batch, seq), unit: "GFLOP/s", prepare: func() (match, error) {
		x := func() *tensor.Tensor { return b.floats(batch, seq, attnHeads, headDim) }
		a := ops.FusedAttnBwdArgs{
			Q: x(), K: x(), V: x(), O: x(), DO: x(), DQ: x(), DK: x(), DV: x(), Stats: b.floats(batch, attnHeads, seq, 1),
			QKVFormat: ops.BSHD, AttnMaskType: ops.CausalMask, Saved: &opregistry.Saved{},
		}
		if err := ops.FusedAttnBwd.Validate(a); err != nil {
			return match{}, err
		}
		fwd, bwd := implOf(b.flagos, ops.FusedAttnFwd), implOf(b.flagos, ops.FusedAttnBwd)
		pair := match{oursWork: work, peerWork: work, peerName: "PyTorch", ours: timed(func() error {
			if err := fwd(b.exec, a.Fwd()); err != nil {
				return err
			}
			return bwd(b.exec, a)
		})}
		pair.peer = b.torch.attention(batch, attnHeads, seq, headDim)
		return pair, nil
	}}
}
