package main

import (
	"fmt"

	"github.com/primus-fl/primus/internal/opbench"
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
		batch := tokens / seq
		all = append(all, contest{group: "attention", name: fmt.Sprintf("causal/b%d_s%d", batch, seq), unit: "GFLOP/s", prepare: func(m *opbench.Maker) (match, error) {
			ours, work, err := b.causal(m, batch, seq, nil)
			return match{oursWork: work, peerWork: work, peerName: "PyTorch", ours: ours, peer: b.torch.attention(batch, attnHeads, seq, headDim)}, err
		}})
	}
	return all
}

// causal returns a side that runs a forward and a backward pass of causal attention, with the
// options that edit sets, and the work of both.
func (b *bench) causal(m *opbench.Maker, batch, seq int, edit func(*attention.FusedAttnBwdArgs)) (*opbench.Side, float64, error) {
	fwd, bwd, err := m.Attention(batch, seq, attnHeads, attnHeads, headDim, attention.CausalMask, edit)
	if err != nil {
		return nil, 0, err
	}
	first, second := implOf(b.snap, fwd.Op, flagosID), implOf(b.snap, bwd.Op, flagosID)
	return opbench.NewSide(b.now, func() error {
		if err := fwd.Call.Run(first.Run, b.exec); err != nil {
			return err
		}
		return bwd.Call.Run(second.Run, b.exec)
	}), 1e-9 * (fwd.FLOPs + bwd.FLOPs), nil
}

// attentionOptions compares attention with options with plain attention, both of flagos.
func (b *bench) attentionOptions() []contest {
	type edit = func(*opbench.Maker, *attention.FusedAttnBwdArgs)
	window := func(_ *opbench.Maker, a *attention.FusedAttnBwdArgs) { a.WindowSize = attention.Window(256, 0) }
	sinks := func(m *opbench.Maker, a *attention.FusedAttnBwdArgs) {
		a.SoftmaxType, a.SoftmaxOffset, a.DSoftmaxOffset = attention.LearnableSoftmax, m.Random(attnHeads), m.Random(attnHeads)
	}
	alibi := func(_ *opbench.Maker, a *attention.FusedAttnBwdArgs) { a.BiasType = attention.ALiBi }
	var all []contest
	for _, shape := range [][2]int{{4, 512}, {1, 1024}} {
		batch, seq := shape[0], shape[1]
		square := func(m *opbench.Maker) *tensor.Tensor { return m.Random(1, attnHeads, seq, seq) }
		for _, o := range []struct {
			name string
			edit edit
		}{
			{"dropout", func(_ *opbench.Maker, a *attention.FusedAttnBwdArgs) { a.PDropout, a.RNGSeed = 0.1, 1 }},
			{"window", window},
			{"sinks", sinks},
			{"alibi", alibi},
			{"bias", func(m *opbench.Maker, a *attention.FusedAttnBwdArgs) {
				a.BiasType, a.Bias = attention.PostScaleBias, square(m)
			}},
			{"bias_and_gradient", func(m *opbench.Maker, a *attention.FusedAttnBwdArgs) {
				a.BiasType, a.Bias, a.DBias = attention.PostScaleBias, square(m), square(m)
			}},
			{"window_alibi_sinks", func(m *opbench.Maker, a *attention.FusedAttnBwdArgs) { window(m, a); alibi(m, a); sinks(m, a) }},
		} {
			all = append(all, contest{group: "options", name: fmt.Sprintf("%s/b%d_s%d", o.name, batch, seq), unit: "GFLOP/s", prepare: func(m *opbench.Maker) (match, error) {
				with := match{peerName: "without"}
				var err error
				if with.ours, with.oursWork, err = b.causal(m, batch, seq, func(a *attention.FusedAttnBwdArgs) { o.edit(m, a) }); err == nil {
					with.peer, with.peerWork, err = b.causal(m, batch, seq, nil)
				}
				return with, err
			}})
		}
	}
	return all
}
