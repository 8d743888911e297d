package model

import (
	"github.com/primus-fl/primus/opmanager"
	normops "github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backends/native/recompute"
	"github.com/primus-fl/primus/tensor"
)

// layer is attention and an MLP. The input of each is normalised, and its output is added to the
// residual stream.
type layer struct {
	in, norm1, mid, norm2 *tensor.Tensor // [T h]
	inputNorm, postNorm   norm
	attention             *attention
	mlp                   mlp
	dropout1, dropout2    *dropout
	again                 computedAgain
	add, addBwd           *opmanager.Bound[normops.ResidualAddArgs]
}

func (b *builder) layer(w layerWeights, in, freqs *tensor.Tensor) layer {
	t, h := b.tokens(), b.cfg.HiddenSize
	restore := b.during(recompute.Norm)
	norm1, norm2 := b.act(t, h), b.act(t, h)
	restore()
	return layer{
		in: in, norm1: norm1, mid: b.act(t, h), norm2: norm2, again: b.computedAgain(),
		inputNorm: b.norm(w.inputNorm, t), attention: b.attention(w, freqs), dropout1: b.dropout(),
		postNorm: b.norm(w.postNorm, t), mlp: b.mlp(w), dropout2: b.dropout(),
		add: opmanager.MustBind(b.fwd, normops.ResidualAdd), addBwd: opmanager.MustBind(b.bwd, normops.ResidualAdd),
	}
}

// layers makes the layers. In a forward-only pass they share all memory except their inputs, of
// which there are two; in training, what is computed again is shared.
func (b builder) layers(weights []layerWeights, mgr *opmanager.Manager, memory *arena, freqs *tensor.Tensor) []layer {
	train := b.spare != nil
	var all []layer
	inputs := [2]*tensor.Tensor{}
	pools := newLayerPools(b.cfg, memory, train)
	if train {
		b.spare, b.again = &pool{arena: memory, shared: true}, &pool{arena: memory, shared: true}
	}
	for i, w := range weights {
		var inside bool
		b.keep, inside = pools.of(i)
		b.at(mgr.Layer(i))
		b.depth = i
		switch {
		case inside:
			inputs[i%2] = b.act(b.tokens(), b.cfg.HiddenSize)
		case train || i < len(inputs):
			inputs[i%2] = memory.new(b.cfg.Compute(), b.tokens(), b.cfg.HiddenSize)
		}
		all = append(all, b.layer(w, inputs[i%2], freqs))
	}
	return all
}

// forward writes the residual stream after the layer to out; proj is scratch. Without out, it
// computes only what backward needs.
func (l *layer) forward(r *run, i int, proj, out *tensor.Tensor) {
	r.layer(i, "attention")
	l.inputNorm.forward(r, l.in, l.norm1)
	l.attention.forward(r, l.norm1, proj)
	l.dropout1.forward(r, proj)
	call(r, l.add, normops.ResidualAddArgs{A: l.in, B: proj, Output: l.mid})
	r.layer(i, "mlp")
	l.postNorm.forward(r, l.mid, l.norm2)
	if out == nil && (l.dropout2 == nil || !r.dropout.on) {
		l.mlp.forward(r, l.norm2, nil)
		return
	}
	l.mlp.forward(r, l.norm2, proj)
	l.dropout2.forward(r, proj)
	if out != nil {
		call(r, l.add, normops.ResidualAddArgs{A: l.mid, B: proj, Output: out})
	}
}

// backward replaces the gradient of the residual stream after the layer in g.res with that before
// it.
func (l *layer) backward(r *run, i int, g *gradients) {
	r.layer(i, "mlp")
	if l.again.norms {
		l.postNorm.forward(r, l.mid, l.norm2)
	}
	if l.again.mlp {
		l.mlp.forward(r, l.norm2, nil)
	}
	l.mlp.backward(r, l.norm2, l.dropout2.backward(r, g.res), g.hidden)
	l.postNorm.backward(r, l.mid, g.hidden, g.hidden)
	call(r, l.addBwd, normops.ResidualAddArgs{A: g.res, B: g.hidden, Output: g.res})
	r.layer(i, "attention")
	if l.again.norms {
		l.inputNorm.forward(r, l.in, l.norm1)
	}
	if l.again.attention {
		l.attention.core(r)
	}
	l.attention.backward(r, l.norm1, l.dropout1.backward(r, g.res), g.hidden)
	l.inputNorm.backward(r, l.in, g.hidden, g.hidden)
	call(r, l.addBwd, normops.ResidualAddArgs{A: g.res, B: g.hidden, Output: g.res})
}
