package model

import (
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// Layer is attention and an MLP. The input of each is normalised, or its output, which is added to
// the residual stream.
type Layer struct {
	In, mid             *tensor.Tensor // [R h], rows of the stream
	norm1, norm2        *tensor.Tensor // [T h], the inputs; In and mid themselves where nothing normalises or collects them
	stream              *Stream
	mlpStream           *Stream // of the MLP; experts work on the rows of this rank
	inputNorm, postNorm Norm    // nil without
	attentionNorm       *outputNorm
	mlpNorm             *outputNorm
	attention           *attention
	mlp                 mlp
	dropout1, dropout2  *dropout
	again               computedAgain
	add, addBwd         *opmanager.Bound[norm.ResidualAddArgs]
}

func (b *Builder) layer(w LayerWeights, in *tensor.Tensor, angles angles) Layer {
	t, h := b.tokens(), b.Config.HiddenSize
	mid, mlpStream := b.Rows(), b.stream
	if b.Part.Sequence && b.Config.Mixture() {
		mlpStream = b.stream.apart()
	}
	norm1, norm2 := in, mid
	restore := b.during(architecture.Norm)
	if w.InputNorm.Gain != nil || b.stream.ranks != nil {
		norm1 = b.Act(t, h)
	}
	if w.PostNorm.Gain != nil || mlpStream.ranks != nil {
		norm2 = b.Act(b.mlpRows(), h)
	}
	restore()
	return Layer{
		In: in, norm1: norm1, mid: mid, norm2: norm2, stream: b.stream, mlpStream: mlpStream, again: b.computedAgain(),
		attentionNorm: b.outputNorm(w.AttentionNorm), mlpNorm: b.outputNorm(w.MLPNorm),
		inputNorm: b.StreamNorm(w.InputNorm), attention: b.attention(w, angles), dropout1: b.dropout(),
		postNorm: b.StreamNorm(w.PostNorm), mlp: b.mlp(w), dropout2: b.dropout(),
		add: opmanager.MustBind(b.Fwd, norm.ResidualAdd), addBwd: opmanager.MustBind(b.Bwd, norm.ResidualAdd),
	}
}

// mlpRows is the number of rows on which the MLP of this rank works: experts do not share a layer,
// and have those of the rank.
func (b *Builder) mlpRows() int {
	if b.Config.Mixture() {
		return b.rows()
	}
	return b.tokens()
}

// Layers makes the layers. In a forward-only pass they share all memory except their inputs, of
// which there are two; in training, what is computed again is shared. first is the number of the
// first one.
func (b Builder) Layers(weights []LayerWeights, first int, mgr *opmanager.Manager, a *memory.Arena, angles angles) []Layer {
	train := b.Spare != nil
	var all []Layer
	inputs := [2]*tensor.Tensor{}
	pools := newLayerPools(b.Config, len(weights), a, train)
	b.narrow = &memory.Pool{Arena: a, Shared: true}
	if train {
		b.Spare, b.again = &memory.Pool{Arena: a, Shared: true}, &memory.Pool{Arena: a, Shared: true}
	}
	for i, w := range weights {
		var inside bool
		b.Keep, inside = pools.of(i)
		b.At(mgr.Layer(first + i))
		b.depth = first + i
		switch {
		case inside:
			inputs[i%2] = b.Rows()
		case train || i < len(inputs):
			inputs[i%2] = a.New(b.Config.Compute(), b.rows(), b.Config.HiddenSize)
		}
		all = append(all, b.layer(w, inputs[i%2], angles))
	}
	return all
}

// Forward writes the residual stream after the layer to out. Without out, it computes only what
// backward needs.
func (l *Layer) Forward(r *Run, i int, out *tensor.Tensor) {
	s := l.stream
	r.layer(i, "attention")
	s.Norm(r, l.inputNorm, l.In, l.norm1)
	l.attention.Forward(r, l.norm1, s.into(l.attentionNorm))
	y := s.output(r, l.attentionNorm)
	l.dropout1.Forward(r, y)
	Call(r, l.add, norm.ResidualAddArgs{A: l.In, B: y, Output: l.mid})
	r.layer(i, "mlp")
	s = l.mlpStream
	s.Norm(r, l.postNorm, l.mid, l.norm2)
	if out == nil && l.mlpNorm == nil && (l.dropout2 == nil || !r.Dropout.On) {
		l.mlp.Forward(r, l.norm2, nil)
		return
	}
	l.mlp.Forward(r, l.norm2, s.into(l.mlpNorm))
	y = s.output(r, l.mlpNorm)
	l.dropout2.Forward(r, y)
	if out != nil {
		Call(r, l.add, norm.ResidualAddArgs{A: l.mid, B: y, Output: out})
	}
}

// Backward replaces the gradient of the residual stream after the layer in g.Res with that before
// it.
func (l *Layer) Backward(r *Run, i int, g *Gradients) {
	r.layer(i, "mlp")
	all := g
	if l.mlpStream != l.stream {
		g = g.apart
	}
	if l.again.norms {
		l.mlpStream.Norm(r, l.postNorm, l.mid, l.norm2)
	}
	if l.again.mlp {
		l.mlp.Forward(r, l.norm2, nil)
	}
	l.mlp.Backward(r, l.norm2, g.whole(r, l.mlpNorm.Backward(r, l.dropout2.Backward(r, g.Res))), g.Hidden)
	dx := g.Sum(r)
	if l.postNorm != nil {
		l.postNorm.Backward(r, l.mid, dx, dx)
	}
	Call(r, l.addBwd, norm.ResidualAddArgs{A: g.Res, B: dx, Output: g.Res})
	r.layer(i, "attention")
	g = all
	if l.again.norms {
		l.stream.Norm(r, l.inputNorm, l.In, l.norm1)
	}
	if l.again.attention {
		l.attention.core(r)
	}
	l.attention.Backward(r, l.norm1, g.whole(r, l.attentionNorm.Backward(r, l.dropout1.Backward(r, g.Res))), g.Hidden)
	dx = g.Sum(r)
	if l.inputNorm != nil {
		l.inputNorm.Backward(r, l.In, dx, dx)
	}
	Call(r, l.addBwd, norm.ResidualAddArgs{A: g.Res, B: dx, Output: g.Res})
}
