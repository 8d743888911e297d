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
	c, err := NewCase(m, gemm.GenericGemm, fmt.Sprintf("%dx%dx%d %s", rows, cols, inner, l), m.product(rows, cols, inner, l))
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
	c, err := NewCase(m, gemm.TEGeneralGroupedGemm, fmt.Sprintf("%d of %dx%dx%d %s", groups, rows, cols, inner, l), a)
	c.FLOPs, c.Bound = 2*float64(groups)*float64(rows)*float64(cols)*float64(inner), Compute
	return c, err
}

// product makes the operands of one product.
func (m *Maker) product(rows, cols, inner int, l Layout) gemm.GenericGemmArgs {
	a := gemm.GenericGemmArgs{D: m.Fresh(m.dtype, rows, cols)}
	switch l {
	case Forward:
		a.A, a.TransA, a.B = m.Random(cols, inner), true, m.Random(rows, inner)
	case DGrad:
		a.A, a.B = m.Random(inner, cols), m.Random(rows, inner)
	case WGrad:
		a.A, a.B, a.TransB = m.Random(inner, cols), m.Random(inner, rows), true
	}
	return a
}

// Attention returns self-attention of [batch, seq, heads, dim] over groups heads of keys and
// values, forward and backward. edit may set options; it may be nil. Forward has 4·batch·heads·dim
// operations for each pair of a query and a key: seq² of them, half of those under the causal mask,
// and only those within the window. Backward has 2.5 times as many.
func (m *Maker) Attention(batch, seq, heads, groups, dim int, mask attention.MaskType, edit func(*attention.FusedAttnBwdArgs)) (fwd, bwd Case, err error) {
	queries, keys := []int{batch, seq, heads, dim}, []int{batch, seq, groups, dim}
	a := attention.FusedAttnBwdArgs{
		Q: m.Random(queries...), K: m.Random(keys...), V: m.Random(keys...), O: m.Fresh(m.dtype, queries...), DO: m.Random(queries...),
		Stats: m.Fresh(tensor.F32, batch, heads, seq, 1), DQ: m.Fresh(m.dtype, queries...), DK: m.Fresh(m.dtype, keys...), DV: m.Fresh(m.dtype, keys...),
		QKVFormat: attention.BSHD, AttnMaskType: mask, Saved: new(opregistry.Saved),
	}
	if edit != nil {
		edit(&a)
	}
	shape := fmt.Sprintf("%dx%dx%dx%dx%d %v", batch, seq, heads, groups, dim, mask)
	fwd, bwd, err = pair(m, shape, attention.FusedAttnFwd, a.Fwd(), attention.FusedAttnBwd, a)
	pairs := float64(seq) * float64(seq)
	if mask != attention.NoMask {
		pairs /= 2
	}
	if left, _ := a.WindowSize.Bounds(); left >= 0 && left < seq {
		pairs -= float64(seq-left) * float64(seq-left) / 2
	}
	fwd.FLOPs, fwd.Bound = 4*float64(batch*heads*dim)*pairs, Compute
	bwd.FLOPs, bwd.Bound = 2.5*fwd.FLOPs, Compute
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
		loss.LinearCrossEntropyFwd.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			a := m.LinearEntropy(rows, linearHidden, cols)
			return NewCase(m, loss.LinearCrossEntropyFwd, shape, a)
		},
		loss.LinearCrossEntropyBwd.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			a := m.LinearEntropy(rows, linearHidden, cols)
			return NewCase(m, loss.LinearCrossEntropyBwd, shape, loss.LinearCrossEntropyBwdArgs{
				Hidden: a.Hidden, Weight: a.Weight, Targets: a.Targets, LSE: m.Positive(rows), DLosses: a.DLosses, DHidden: a.DHidden, DWeight: a.DWeight,
				IgnoreIndex: a.IgnoreIndex, Saved: a.Saved,
			})
		},
		norm.ResidualAdd.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, norm.ResidualAdd, shape, norm.ResidualAddArgs{A: m.Random(rows, cols), B: m.Random(rows, cols), Output: m.Fresh(m.dtype, rows, cols)})
		},
		rope.FusedRopeForward.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, rope.FusedRopeForward, shape, m.rope(rows, cols))
		},
		rope.FusedRopeBackward.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, rope.FusedRopeBackward, shape, m.rope(rows, cols))
		},
		embedding.EmbeddingFwd.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, embedding.EmbeddingFwd, shape, embedding.EmbeddingFwdArgs{Indices: m.Indexes(rows, rows), Weight: m.Random(rows, cols), Output: m.Fresh(m.dtype, rows, cols)})
		},
		embedding.EmbeddingBwd.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, embedding.EmbeddingBwd, shape, embedding.EmbeddingBwdArgs{Grad: m.Random(rows, cols), Indices: m.Indexes(rows, rows), DWeight: m.Fresh(m.dtype, rows, cols)})
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
		Input: m.Random(rows, cols), Weight: m.Random(cols), Output: m.Fresh(m.dtype, rows, cols), RSigma: m.Fresh(tensor.F32, rows),
		Eps: 1e-5, Saved: new(opregistry.Saved),
	}
	return pair(m, shape, norm.RMSNormFwd, f, norm.RMSNormBwd, norm.RMSNormBwdArgs{
		DZ: m.Random(rows, cols), X: f.Input, RSigma: f.RSigma, Gamma: f.Weight, DX: m.Fresh(m.dtype, rows, cols), DGamma: m.Fresh(m.dtype, cols),
		Saved: f.Saved,
	})
}

func (m *Maker) entropy(shape string, rows, cols int) (fwd, bwd Case, err error) {
	f := loss.CrossEntropyFwdArgs{
		Logits: m.Random(rows, cols), Targets: m.Indexes(cols, rows), Losses: m.Fresh(tensor.F32, rows), LSE: m.Fresh(tensor.F32, rows),
		IgnoreIndex: -100, Saved: new(opregistry.Saved),
	}
	return pair(m, shape, loss.CrossEntropyFwd, f, loss.CrossEntropyBwd, loss.CrossEntropyBwdArgs{
		Logits: f.Logits, Targets: f.Targets, LSE: f.LSE, DLosses: m.Positive(rows), DLogits: m.Fresh(m.dtype, rows, cols),
		IgnoreIndex: f.IgnoreIndex, Saved: f.Saved,
	})
}

// linearHidden is the hidden size of the output layers whose cross entropy is measured.
const linearHidden = 512

// LinearEntropy makes a call of linear_cross_entropy_fwd with gradients.
func (m *Maker) LinearEntropy(rows, hidden, vocab int) loss.LinearCrossEntropyFwdArgs {
	return loss.LinearCrossEntropyFwdArgs{
		Hidden: m.Random(rows, hidden), Weight: m.Random(vocab, hidden), Targets: m.Indexes(vocab, rows), Losses: m.Fresh(tensor.F32, rows),
		LSE: m.Fresh(tensor.F32, rows), DLosses: m.Positive(rows), DHidden: m.Fresh(m.dtype, rows, hidden), DWeight: m.Fresh(tensor.F32, vocab, hidden),
		IgnoreIndex: -100, Saved: new(opregistry.Saved),
	}
}

// ropeDim is the usual size of a head; rows that it does not divide are one head.
const ropeDim = 64

func (m *Maker) rope(rows, cols int) rope.FusedRopeArgs {
	dim := ropeDim
	if cols%dim != 0 {
		dim = cols
	}
	at := -1
	freqs := m.fill(m.Fresh(tensor.F32, rows, 1, 1, dim), func() float64 {
		at++
		return float64(at/dim) * math.Pow(1e4, -2*float64(at%dim%max(dim/2, 1))/float64(dim))
	})
	return rope.FusedRopeArgs{
		Input: m.Random(1, rows, cols/dim, dim), Freqs: freqs, Output: m.Fresh(m.dtype, 1, rows, cols/dim, dim), QKVFormat: attention.BSHD,
	}
}
