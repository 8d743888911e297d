package block

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backends/native/memory"
	"github.com/primus-fl/primus/runtime/backends/native/param"
	"github.com/primus-fl/primus/runtime/backends/native/recompute"
	"github.com/primus-fl/primus/tensor"
)

// Gradients holds the gradients of the tensors between blocks. That of the logits overwrites the
// logits.
type Gradients struct {
	Res    *tensor.Tensor // of the residual stream [T h]
	Hidden *tensor.Tensor // of a norm's output, then of its input [T h]
	Losses *tensor.Tensor // [T]
}

// Layer is attention and an MLP. The input of each is normalised, and its output is added to the
// residual stream.
type Layer struct {
	In, norm1, mid, norm2 *tensor.Tensor // [T h]
	inputNorm, postNorm   Norm
	attention             *attention
	mlp                   mlp
	dropout1, dropout2    *dropout
	again                 computedAgain
	add, addBwd           *opmanager.Bound[norm.ResidualAddArgs]
}

func (b *Builder) layer(w param.LayerWeights, in, freqs *tensor.Tensor) Layer {
	t, h := b.tokens(), b.Config.HiddenSize
	restore := b.during(recompute.Norm)
	norm1, norm2 := b.Act(t, h), b.Act(t, h)
	restore()
	return Layer{
		In: in, norm1: norm1, mid: b.Act(t, h), norm2: norm2, again: b.computedAgain(),
		inputNorm: b.Norm(w.InputNorm, t), attention: b.attention(w, freqs), dropout1: b.dropout(),
		postNorm: b.Norm(w.PostNorm, t), mlp: b.mlp(w), dropout2: b.dropout(),
		add: opmanager.MustBind(b.Fwd, norm.ResidualAdd), addBwd: opmanager.MustBind(b.Bwd, norm.ResidualAdd),
	}
}

// Layers makes the layers. In a forward-only pass they share all memory except their inputs, of
// which there are two; in training, what is computed again is shared.
func (b Builder) Layers(weights []param.LayerWeights, mgr *opmanager.Manager, a *memory.Arena, freqs *tensor.Tensor) []Layer {
	train := b.Spare != nil
	var all []Layer
	inputs := [2]*tensor.Tensor{}
	pools := newLayerPools(b.Config, a, train)
	if train {
		b.Spare, b.again = &memory.Pool{Arena: a, Shared: true}, &memory.Pool{Arena: a, Shared: true}
	}
	for i, w := range weights {
		var inside bool
		b.Keep, inside = pools.of(i)
		b.At(mgr.Layer(i))
		b.depth = i
		switch {
		case inside:
			inputs[i%2] = b.Act(b.tokens(), b.Config.HiddenSize)
		case train || i < len(inputs):
			inputs[i%2] = a.New(b.Config.Compute(), b.tokens(), b.Config.HiddenSize)
		}
		all = append(all, b.layer(w, inputs[i%2], freqs))
	}
	return all
}

// Forward writes the residual stream after the layer to out; proj is scratch. Without out, it
// computes only what backward needs.
func (l *Layer) Forward(r *Run, i int, proj, out *tensor.Tensor) {
	r.layer(i, "attention")
	l.inputNorm.Forward(r, l.In, l.norm1)
	l.attention.Forward(r, l.norm1, proj)
	l.dropout1.Forward(r, proj)
	Call(r, l.add, norm.ResidualAddArgs{A: l.In, B: proj, Output: l.mid})
	r.layer(i, "mlp")
	l.postNorm.Forward(r, l.mid, l.norm2)
	if out == nil && (l.dropout2 == nil || !r.Dropout.On) {
		l.mlp.Forward(r, l.norm2, nil)
		return
	}
	l.mlp.Forward(r, l.norm2, proj)
	l.dropout2.Forward(r, proj)
	if out != nil {
		Call(r, l.add, norm.ResidualAddArgs{A: l.mid, B: proj, Output: out})
	}
}

// Backward replaces the gradient of the residual stream after the layer in g.res with that before
// it.
func (l *Layer) Backward(r *Run, i int, g *Gradients) {
	r.layer(i, "mlp")
	if l.again.norms {
		l.postNorm.Forward(r, l.mid, l.norm2)
	}
	if l.again.mlp {
		l.mlp.Forward(r, l.norm2, nil)
	}
	l.mlp.Backward(r, l.norm2, l.dropout2.Backward(r, g.Res), g.Hidden)
	l.postNorm.Backward(r, l.mid, g.Hidden, g.Hidden)
	Call(r, l.addBwd, norm.ResidualAddArgs{A: g.Res, B: g.Hidden, Output: g.Res})
	r.layer(i, "attention")
	if l.again.norms {
		l.inputNorm.Forward(r, l.In, l.norm1)
	}
	if l.again.attention {
		l.attention.core(r)
	}
	l.attention.Backward(r, l.norm1, l.dropout1.Backward(r, g.Res), g.Hidden)
	l.inputNorm.Backward(r, l.In, g.Hidden, g.Hidden)
	Call(r, l.addBwd, norm.ResidualAddArgs{A: g.Res, B: g.Hidden, Output: g.Res})
}
