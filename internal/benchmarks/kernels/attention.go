package main

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// attnHeads is the number of heads; each serves its own keys and values.
const attnHeads = hidden / headDim

// attentions compares causal attention, forward and backward, over as many tokens as a training
// step has, in sequences of growing length.
func (b *bench) attentions() []contest {
	var all []contest
	for _, seq := range []int{256, 512, 1024, 2048} {
		all = append(all, b.attention(tokens/seq, seq))
	}
	return all
}

func (b *bench) attention(batch, seq int) contest {
	return contest{group: "attention", name: fmt.Sprintf("causal/b%d_s%d", batch, seq), unit: "GFLOP/s", prepare: func() (match, error) {
		ours, work, err := b.causal(batch, seq, nil)
		if err != nil {
			return match{}, err
		}
		return match{
			oursWork: work, peerWork: work, peerName: "PyTorch",
			ours: ours, peer: b.torch.attention(batch, attnHeads, seq, headDim),
		}, nil
	}}
}

// causal returns a side that runs a forward and a backward pass of causal attention, with the
// options that edit sets, and the work for the keys that queries see: two products forward and five
// backward.
func (b *bench) causal(batch, seq int, edit func(*attention.FusedAttnBwdArgs)) (side, float64, error) {
	x := func() *tensor.Tensor { return b.floats(batch, seq, attnHeads, headDim) }
	a := attention.FusedAttnBwdArgs{
		Q: x(), K: x(), V: x(), O: x(), DO: x(), DQ: x(), DK: x(), DV: x(), Stats: b.floats(batch, attnHeads, seq, 1),
		QKVFormat: attention.BSHD, AttnMaskType: attention.CausalMask, Saved: &opregistry.Saved{},
	}
	if edit != nil {
		edit(&a)
	}
	if err := attention.FusedAttnBwd.Validate(a); err != nil {
		return side{}, 0, err
	}
	pairs := 0.5 * float64(seq*seq)
	if left, _ := a.WindowSize.Bounds(); left >= 0 && left < seq {
		beyond := float64(seq - left)
		pairs -= 0.5 * beyond * beyond
	}
	fwd, bwd := implOf(b.flagos, attention.FusedAttnFwd), implOf(b.flagos, attention.FusedAttnBwd)
	return timed(b.now, func() error {
		if err := fwd(b.exec, a.Fwd()); err != nil {
			return err
		}
		return bwd(b.exec, a)
	}), 1e-9 * 14 * float64(batch*attnHeads*headDim) * pairs, nil
}

// attentionOptions compares attention with options with plain attention, both of flagos.
func (b *bench) attentionOptions() []contest {
	var all []contest
	for _, shape := range [][2]int{{4, 512}, {1, 1024}} {
		batch, seq := shape[0], shape[1]
		square := func() *tensor.Tensor { return b.floats(1, attnHeads, seq, seq) }
		dropout := func(a *attention.FusedAttnBwdArgs) { a.PDropout, a.RNGSeed = 0.1, 1 }
		window := func(a *attention.FusedAttnBwdArgs) { a.WindowSize = attention.Window(256, 0) }
		sinks := func(a *attention.FusedAttnBwdArgs) {
			a.SoftmaxType, a.SoftmaxOffset, a.DSoftmaxOffset = attention.LearnableSoftmax, b.floats(attnHeads), b.floats(attnHeads)
		}
		alibi := func(a *attention.FusedAttnBwdArgs) { a.BiasType = attention.ALiBi }
		for _, o := range []struct {
			name string
			edit func(*attention.FusedAttnBwdArgs)
		}{
			{"dropout", dropout},
			{"window", window},
			{"sinks", sinks},
			{"alibi", alibi},
			{"bias", func(a *attention.FusedAttnBwdArgs) { a.BiasType, a.Bias = attention.PostScaleBias, square() }},
			{"bias_and_gradient", func(a *attention.FusedAttnBwdArgs) {
				a.BiasType, a.Bias, a.DBias = attention.PostScaleBias, square(), square()
			}},
			{"window_alibi_sinks", func(a *attention.FusedAttnBwdArgs) { window(a); alibi(a); sinks(a) }},
		} {
			all = append(all, contest{group: "options", name: fmt.Sprintf("%s/b%d_s%d", o.name, batch, seq), unit: "GFLOP/s", prepare: func() (match, error) {
				m := match{peerName: "without"}
				var err error
				if m.ours, m.oursWork, err = b.causal(batch, seq, o.edit); err == nil {
					m.peer, m.peerWork, err = b.causal(batch, seq, nil)
				}
				return m, err
			}})
		}
	}
	return all
}
