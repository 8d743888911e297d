package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/gemm"
	normops "github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// LoRA are the parameters of low-rank adapters: a projection y = x·Wᵀ becomes
//
//	y = x·Wᵀ + alpha/rank · dropout(x)·Aᵀ·Bᵀ
//
// with A [rank in] and B [out rank]. Only A and B are trained. Source: Hu et al., LoRA (2021); the
// names and the initial values are those of PEFT.
type LoRA struct {
	Rank    int      `param:"lora_rank"`           // 0 means that there are no adapters and all weights are trained
	Alpha   float64  `param:"lora_alpha"`          // 0 means lora_rank
	Dropout float64  `param:"lora_dropout"`        // the probability that an element of x is dropped in training
	Targets []string `param:"lora_target_modules"` // the projections by the last part of their names; nil means all
}

// Adapts reports whether adapters are trained in place of the weights.
func (l LoRA) Adapts() bool { return l.Rank > 0 }

// Scale returns the factor of what adapters add.
func (l LoRA) Scale() float64 {
	if l.Alpha == 0 {
		return 1
	}
	return l.Alpha / float64(l.Rank)
}

func (c Config) validateLoRA(f *faults) {
	if c.Rank < 0 {
		f.bad("lora_rank", c.Rank, "a number >= 0")
	}
	if !(c.LoRA.Alpha >= 0) || math.IsInf(c.LoRA.Alpha, 0) {
		f.bad("lora_alpha", c.LoRA.Alpha, "a number >= 0")
	}
	if !(c.LoRA.Dropout >= 0 && c.LoRA.Dropout < 1) {
		f.bad("lora_dropout", c.LoRA.Dropout, "0 <= lora_dropout < 1")
	}
	if !c.Adapts() {
		return
	}
	if c.mixture() {
		f.bad("lora_rank", c.Rank, "0 with num_experts: experts have no adapters")
	}
	for _, t := range c.Targets {
		f.oneOf("lora_target_modules", t, c.AdapterTargets())
	}
}

// AdapterTargets returns the names of the projections that can have adapters.
func (c Config) AdapterTargets() []string {
	if c.family() == familyGPT2 {
		return []string{gpt2Names.qkv, gpt2Names.up, gpt2Names.down}
	}
	n := llamaNames
	all := []string{n.q, n.k, n.v, n.out}
	if c.gated() {
		all = append(all, n.gate)
	}
	return append(all, n.up, n.down)
}

// TrainedParameters returns the number of weights that are trained, exact up to 2⁵³: those of the
// adapters if there are any, else all.
func (c Config) TrainedParameters() float64 {
	if !c.Adapts() {
		return c.parameters()
	}
	type size struct {
		name string
		sum  int // of rows and columns
	}
	h, q, kv, f := c.HiddenSize, c.HeadDim()*c.NumAttentionHeads, c.HeadDim()*c.Groups(), c.FFNHiddenSize
	n := llamaNames
	sizes := []size{{n.q, q + h}, {n.k, kv + h}, {n.v, kv + h}, {n.out, h + q}, {n.up, f + h}, {n.down, h + f}}
	switch {
	case c.family() == familyGPT2:
		n = gpt2Names
		sizes = []size{{n.qkv, c.qkvRows() + h}, {n.out, h + q}, {n.up, f + h}, {n.down, h + f}}
	case c.gated():
		sizes = append(sizes, size{n.gate, f + h})
	}
	total := 0.0
	for _, s := range sizes {
		if c.Targets == nil || slices.Contains(c.Targets, s.name) {
			total += float64(s.sum)
		}
	}
	return total * float64(c.Rank) * float64(c.NumLayers)
}

// adapterWeights are the two matrices of an adapter, for the outputs lo to hi of a projection.
type adapterWeights struct {
	a, b   *Param
	lo, hi int
}

// adapters makes the adapters of a projection of in to out columns, whose rows are those of parts
// or, without parts, of the projection itself.
func (b *weightBuilder) adapters(name string, out, in int, parts []part) []adapterWeights {
	c := b.m.cfg
	if !c.Adapts() {
		return nil
	}
	if len(parts) == 0 {
		parts = []part{{name: name, rows: out}}
	}
	var all []adapterWeights
	from := 0
	for _, p := range parts {
		lo, hi := from, from+p.rows
		from = hi
		if c.Targets != nil && !slices.Contains(c.Targets, p.name[strings.LastIndexByte(p.name, '.')+1:]) {
			continue
		}
		w := adapterWeights{lo: lo, hi: hi}
		w.a = &Param{Name: p.name + ".lora_A.weight", Shape: tensor.Shape{c.Rank, in}, start: start{bound: 1 / math.Sqrt(float64(in))}}
		w.b = &Param{Name: p.name + ".lora_B.weight", Shape: tensor.Shape{p.rows, c.Rank}}
		for _, matrix := range []*Param{w.a, w.b} {
			matrix.Decay, matrix.Depth = true, b.depth
			b.m.adapters = append(b.m.adapters, matrix)
		}
		all = append(all, w)
	}
	return all
}

// adapter computes what an adapter adds to a projection.
type adapter struct {
	adapterWeights
	matrixA, matrixB *tensor.Tensor
	scale            opregistry.OptionalFloat
	hidden, dHidden  *tensor.Tensor // x·Aᵀ [T rank], scratch
	out, grad        columns        // the columns of y and of dy
	drop             *adapterDropout
	fwd, bwd         *opmanager.Bound[gemm.GenericGemmArgs]
}

// adapters returns the adapters of a projection of in columns. Their memory is scratch: backward
// computes the small products of forward again.
func (b *builder) adapters(w linearWeights, in int) []adapter {
	if len(w.adapters) == 0 {
		return nil
	}
	memory := b.keep // of a forward-only pass, which its layers share
	if b.again != nil {
		memory = b.again
	}
	d, t := b.cfg.Compute(), b.tokens()
	hidden, dHidden := memory.new(d, t, b.cfg.Rank), memory.new(d, t, b.cfg.Rank)
	var dropped, dDropped *tensor.Tensor
	if b.cfg.LoRA.Dropout > 0 && b.spare != nil {
		dropped, dDropped = memory.new(d, t, in), memory.new(d, t, in)
	}
	var all []adapter
	for _, one := range w.adapters {
		a := adapter{
			adapterWeights: one, matrixA: b.matrix(one.a), matrixB: b.matrix(one.b), scale: opregistry.Float(float32(b.cfg.Scale())),
			hidden: hidden, dHidden: dHidden,
			fwd: opmanager.MustBind(b.fwd, gemm.GenericGemm), bwd: opmanager.MustBind(b.bwd, gemm.GenericGemm),
		}
		if dropped != nil {
			n := t * in
			a.drop = &adapterDropout{
				probability: float32(b.cfg.LoRA.Dropout), offset: b.random(n), out: dropped, grad: dDropped, mask: memory.new(tensor.U8, (n+7)/8), saved: saved(),
				fwd: opmanager.MustBind(b.fwd, dropoutops.DropoutFwd), bwd: opmanager.MustBind(b.bwd, dropoutops.DropoutBwd),
				add: opmanager.MustBind(b.bwd, normops.ResidualAdd),
			}
		}
		all = append(all, a)
	}
	return all
}

// columns is a view of some columns of a matrix, made once per matrix.
type columns struct{ of, view *tensor.Tensor }

func (c *columns) slice(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	if c.of != t {
		rows := must(t.Reshape(t.Shape().NumElements()/t.Shape().Cols(), t.Shape().Cols()))
		c.of, c.view = t, must(rows.Slice(1, lo, hi))
	}
	return c.view
}

// down computes hidden and returns the x that it has used.
func (a *adapter) down(r *run, x *tensor.Tensor) *tensor.Tensor {
	if a.drop != nil && r.dropout.on {
		x = a.drop.forward(r, x)
	}
	call(r, a.fwd, gemm.GenericGemmArgs{A: a.matrixA, TransA: true, B: x, D: a.hidden})
	return x
}

// forward adds to y.
func (a *adapter) forward(r *run, x, y *tensor.Tensor) {
	a.down(r, x)
	call(r, a.fwd, gemm.GenericGemmArgs{A: a.matrixB, TransA: true, B: a.hidden, D: a.out.slice(y, a.lo, a.hi), Accumulate: true, Alpha: a.scale})
}

// backward writes the gradients of A and B and adds to dx.
func (a *adapter) backward(r *run, x, dy, dx *tensor.Tensor) {
	used := a.down(r, x)
	dy = a.grad.slice(dy, a.lo, a.hi)
	call(r, a.bwd, gemm.GenericGemmArgs{A: a.matrixB, B: dy, D: a.dHidden, Alpha: a.scale})
	call(r, a.bwd, gemm.GenericGemmArgs{A: a.hidden, B: dy, TransB: true, D: a.b.Grad, Grad: true, Accumulate: r.accumulate, Alpha: a.scale})
	call(r, a.bwd, gemm.GenericGemmArgs{A: used, B: a.dHidden, TransB: true, D: a.a.Grad, Grad: true, Accumulate: r.accumulate})
	if used == x {
		call(r, a.bwd, gemm.GenericGemmArgs{A: a.matrixA, B: a.dHidden, D: dx, Accumulate: true})
		return
	}
	call(r, a.bwd, gemm.GenericGemmArgs{A: a.matrixA, B: a.dHidden, D: a.drop.grad})
	a.drop.backward(r, dx)
}

// adapterDropout is the dropout of the input of an adapter, which has a result of its own.
type adapterDropout struct {
	probability float32
	offset      uint64
	out, grad   *tensor.Tensor // [T in]
	mask        *tensor.Tensor
	saved       *opregistry.Saved
	fwd         *opmanager.Bound[dropoutops.DropoutFwdArgs]
	bwd         *opmanager.Bound[dropoutops.DropoutBwdArgs]
	add         *opmanager.Bound[normops.ResidualAddArgs]
}

func (d *adapterDropout) forward(r *run, x *tensor.Tensor) *tensor.Tensor {
	call(r, d.fwd, dropoutops.DropoutFwdArgs{
		Input: x, Out: d.out, Mask: d.mask, DropoutProbability: d.probability, Seed: r.dropout.key, Offset: d.offset, Saved: d.saved,
	})
	return d.out
}

// backward adds the gradient of x to dx, given that of out in grad.
func (d *adapterDropout) backward(r *run, dx *tensor.Tensor) {
	call(r, d.bwd, dropoutops.DropoutBwdArgs{GradOutput: d.grad, Mask: d.mask, GradInput: d.grad, DropoutProbability: d.probability, Saved: d.saved})
	call(r, d.add, normops.ResidualAddArgs{A: dx, B: d.grad, Output: dx})
}

// Trained returns the weights that are trained: the adapters if there are any, else all. The caller
// must not change the slice.
func (m *Model) Trained() []*Param {
	if m.cfg.Adapts() {
		return m.adapters
	}
	return m.params
}

// SplitTrained is Split for tensors that correspond to Trained.
func (m *Model) SplitTrained(beside []*tensor.Tensor) []Named {
	return named(m.Trained(), func(i int) *tensor.Tensor { return beside[i] })
}

// Adapters returns views of the adapters under their names in PEFT's files without the prefix
// base_model.model.
func (m *Model) Adapters() []Named {
	return named(m.adapters, func(i int) *tensor.Tensor { return m.adapters[i].Value })
}

// Merged returns copies of the weights, under the names of Tensors, to which the products of their
// adapters are added, and a function that returns their memory. Weights without adapters are views.
func (m *Model) Merged(mgr *opmanager.Manager) (all []Named, release func() error, err error) {
	memory := &arena{backend: m.memory.backend}
	product := opmanager.MustBind(mgr, gemm.GenericGemm)
	scale := opregistry.Float(float32(m.cfg.Scale()))
	values := map[*Param]*tensor.Tensor{}
	for _, l := range m.layers {
		for _, w := range []linearWeights{l.qkv, l.out, l.up, l.down} {
			for _, a := range w.adapters {
				into := values[w.weight]
				if into == nil {
					if into = memory.new(tensor.F32, w.weight.Shape...); into == nil {
						return nil, nil, fmt.Errorf("merge the adapters: %w", memory.fail())
					}
					copy(tensor.Data[float32](into), tensor.Data[float32](w.weight.Value))
					values[w.weight] = into
				}
				args := gemm.GenericGemmArgs{A: a.a.Value, B: a.b.Value, Accumulate: true, Alpha: scale}
				if w.inOut {
					args = gemm.GenericGemmArgs{A: a.b.Value, TransA: true, B: a.a.Value, TransB: true, D: must(into.Slice(1, a.lo, a.hi)), Accumulate: true, Alpha: scale}
				} else {
					args.D = rows(into, a.lo, a.hi)
				}
				if err := product.Call(args); err != nil {
					return nil, nil, errors.Join(fmt.Errorf("merge the adapters: %w", err), memory.close())
				}
			}
		}
	}
	all = named(m.params, func(i int) *tensor.Tensor {
		if v := values[m.params[i]]; v != nil {
			return v
		}
		return m.params[i].Value
	})
	return all, memory.close, nil
}
