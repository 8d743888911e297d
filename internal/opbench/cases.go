package opbench

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// Layout says how the operands of a product lie in memory.
type Layout string

// The layouts of the three products of a linear layer.
const (
	Forward Layout = "forward" // y = x·Wᵀ
	DGrad   Layout = "dgrad"   // dx = dy·W
	WGrad   Layout = "wgrad"   // dW = dyᵀ·x
)

// Layouts returns all layouts.
func Layouts() []Layout { return []Layout{Forward, DGrad, WGrad} }

// GEMM returns the product D [rows, cols] = op(B)·op(A) over inner elements, of 2·rows·cols·inner
// operations.
func (m *Maker) GEMM(rows, cols, inner int, l Layout) (Case, error) {
	c, err := newCase(m, gemm.GenericGemm, fmt.Sprintf("%dx%dx%d %s", rows, cols, inner, l), m.product(rows, cols, inner, l))
	c.FLOPs, c.Bound = 2*float64(rows)*float64(cols)*float64(inner), Compute
	return c, err
}

// GroupedGEMM returns the products of several experts, each like that of GEMM.
func (m *Maker) GroupedGEMM(groups, rows, cols, inner int, l Layout) (Case, error) {
	var a gemm.TEGeneralGroupedGemmArgs
	for range groups {
		p := m.product(rows, cols, inner, l)
		a.A, a.B, a.D = append(a.A, p.A), append(a.B, p.B), append(a.D, p.D)
		a.TransA, a.TransB = p.TransA, p.TransB
	}
	c, err := newCase(m, gemm.TEGeneralGroupedGemm, fmt.Sprintf("%d of %dx%dx%d %s", groups, rows, cols, inner, l), a)
	c.FLOPs, c.Bound = 2*float64(groups)*float64(rows)*float64(cols)*float64(inner), Compute
	return c, err
}

// product makes the operands of one product.
func (m *Maker) product(rows, cols, inner int, l Layout) gemm.GenericGemmArgs {
	a := gemm.GenericGemmArgs{D: m.fresh(m.dtype, rows, cols)}
	switch l {
	case Forward:
		a.A, a.TransA, a.B = m.random(cols, inner), true, m.random(rows, inner)
	case DGrad:
		a.A, a.B = m.random(inner, cols), m.random(rows, inner)
	case WGrad:
		a.A, a.B, a.TransB = m.random(inner, cols), m.random(inner, rows), true
	}
	return a
}

// Attention returns self-attention of [batch, seq, heads, dim] over groups heads of keys and
// values, forward and backward. Forward has 4·batch·heads·seq²·dim operations, half of them under
// the causal mask; backward has 2.5 times as many.
func (m *Maker) Attention(batch, seq, heads, groups, dim int, mask attention.MaskType) (fwd, bwd Case, err error) {
	f := attention.FusedAttnFwdArgs{
		Q: m.random(batch, seq, heads, dim), K: m.random(batch, seq, groups, dim), V: m.random(batch, seq, groups, dim),
		O: m.fresh(m.dtype, batch, seq, heads, dim), Stats: m.fresh(tensor.F32, batch, heads, seq, 1),
		QKVFormat: attention.BSHD, AttnMaskType: mask, Saved: new(opregistry.Saved),
	}
	b := attention.FusedAttnBwdArgs{
		Q: f.Q, K: f.K, V: f.V, O: f.O, DO: m.random(batch, seq, heads, dim), Stats: f.Stats,
		DQ: m.fresh(m.dtype, batch, seq, heads, dim), DK: m.fresh(m.dtype, batch, seq, groups, dim), DV: m.fresh(m.dtype, batch, seq, groups, dim),
		QKVFormat: attention.BSHD, AttnMaskType: mask, Saved: f.Saved,
	}
	shape := fmt.Sprintf("%dx%dx%dx%dx%d %v", batch, seq, heads, groups, dim, mask)
	if fwd, err = newCase(m, attention.FusedAttnFwd, shape, f); err != nil {
		return fwd, bwd, err
	}
	bwd, err = newCase(m, attention.FusedAttnBwd, shape, b)
	fwd.FLOPs = 4 * float64(batch) * float64(heads) * float64(seq) * float64(seq) * float64(dim)
	if mask != attention.NoMask {
		fwd.FLOPs /= 2
	}
	bwd.FLOPs = 2.5 * fwd.FLOPs
	fwd.Bound, bwd.Bound, bwd.forward = Compute, Compute, &fwd
	return fwd, bwd, err
}

// Ops returns the names of the ops that Op has cases for, in order.
func Ops() []string { return slices.Sorted(maps.Keys(opCases())) }

// Op returns the case of an op whose bound is memory, over matrices of rows × cols.
func (m *Maker) Op(name string, rows, cols int) (Case, error) {
	build, ok := opCases()[name]
	if !ok {
		return Case{}, fmt.Errorf("op %q has no case to measure", name)
	}
	return build(m, fmt.Sprintf("%dx%d", rows, cols), rows, cols)
}

type builder func(m *Maker, shape string, rows, cols int) (Case, error)

func opCases() map[string]builder {
	cases := map[string]builder{
		norm.RMSNormFwd.Name():      first((*Maker).norm),
		norm.RMSNormBwd.Name():      second((*Maker).norm),
		loss.CrossEntropyFwd.Name(): first((*Maker).entropy),
		loss.CrossEntropyBwd.Name(): second((*Maker).entropy),
		norm.ResidualAdd.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return newCase(m, norm.ResidualAdd, shape, norm.ResidualAddArgs{A: m.random(rows, cols), B: m.random(rows, cols), Output: m.fresh(m.dtype, rows, cols)})
		},
		rope.FusedRopeForward.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return newCase(m, rope.FusedRopeForward, shape, m.rope(rows, cols))
		},
		rope.FusedRopeBackward.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return newCase(m, rope.FusedRopeBackward, shape, m.rope(rows, cols))
		},
		embedding.EmbeddingFwd.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return newCase(m, embedding.EmbeddingFwd, shape, embedding.EmbeddingFwdArgs{Indices: m.indexes(rows, rows), Weight: m.random(rows, cols), Output: m.fresh(m.dtype, rows, cols)})
		},
		embedding.EmbeddingBwd.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return newCase(m, embedding.EmbeddingBwd, shape, embedding.EmbeddingBwdArgs{Grad: m.random(rows, cols), Indices: m.indexes(rows, rows), DWeight: m.fresh(m.dtype, rows, cols)})
		},
	}
	maps.Copy(cases, familyCases())
	maps.Copy(cases, activationCases())
	maps.Copy(cases, softmaxCases())
	maps.Copy(cases, listCases())
	return cases
}

func (m *Maker) norm(shape string, rows, cols int) (fwd, bwd Case, err error) {
	f := norm.RMSNormFwdArgs{
		Input: m.random(rows, cols), Weight: m.random(cols), Output: m.fresh(m.dtype, rows, cols), RSigma: m.fresh(tensor.F32, rows),
		Eps: 1e-5, Saved: new(opregistry.Saved),
	}
	return pair(m, shape, norm.RMSNormFwd, f, norm.RMSNormBwd, norm.RMSNormBwdArgs{
		DZ: m.random(rows, cols), X: f.Input, RSigma: f.RSigma, Gamma: f.Weight, DX: m.fresh(m.dtype, rows, cols), DGamma: m.fresh(m.dtype, cols),
		Saved: f.Saved,
	})
}

func (m *Maker) entropy(shape string, rows, cols int) (fwd, bwd Case, err error) {
	f := loss.CrossEntropyFwdArgs{
		Logits: m.random(rows, cols), Targets: m.indexes(cols, rows), Losses: m.fresh(tensor.F32, rows), LSE: m.fresh(tensor.F32, rows),
		IgnoreIndex: -100, Saved: new(opregistry.Saved),
	}
	return pair(m, shape, loss.CrossEntropyFwd, f, loss.CrossEntropyBwd, loss.CrossEntropyBwdArgs{
		Logits: f.Logits, Targets: f.Targets, LSE: f.LSE, DLosses: m.positive(rows), DLogits: m.fresh(m.dtype, rows, cols),
		IgnoreIndex: f.IgnoreIndex, Saved: f.Saved,
	})
}

// ropeDim is the usual size of a head; rows that it does not divide are one head.
const ropeDim = 64

func (m *Maker) rope(rows, cols int) rope.FusedRopeArgs {
	dim := ropeDim
	if cols%dim != 0 {
		dim = cols
	}
	freqs := m.fresh(tensor.F32, rows, 1, 1, dim)
	if m.err == nil {
		angles := tensor.Data[float32](freqs)
		for i := range angles {
			position, pair := i/dim, i%dim%max(dim/2, 1)
			angles[i] = float32(float64(position) * math.Pow(1e4, -2*float64(pair)/float64(dim)))
		}
	}
	return rope.FusedRopeArgs{
		Input: m.random(1, rows, cols/dim, dim), Freqs: freqs, Output: m.fresh(m.dtype, 1, rows, cols/dim, dim), QKVFormat: attention.BSHD,
	}
}
