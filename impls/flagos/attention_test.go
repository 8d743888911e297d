package flagos_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// attnCase is a forward and a backward call over the same operands.
type attnCase struct {
	bwd     attention.FusedAttnBwdArgs
	written []matrixCase
}

// newAttnCase makes operands with values in Q, K, V and dO. With fused set, Q, K
// and V, and their gradients, are views of one block, as a projection writes it.
func newAttnCase(t testing.TB, r *rand.Rand, d attention.AttnDims, format attention.QKVFormat, mask attention.MaskType, fused bool) attnCase {
	t.Helper()
	var c attnCase
	shape := func(s, h, w int) []int {
		if format == attention.SBHD {
			return []int{s, d.Batch, h, w}
		}
		return []int{d.Batch, s, h, w}
	}
	alone := func(s, h, w int, written bool) *tensor.Tensor {
		layout := "dense"
		if r.IntN(2) == 0 {
			layout = "pitch"
		}
		m := newMatrix(t, r, layout, shape(s, h, w)...)
		if written {
			c.written = append(c.written, m)
		}
		return m.tensor
	}
	c.bwd = attention.FusedAttnBwdArgs{QKVFormat: format, AttnMaskType: mask, Saved: &opregistry.Saved{}}
	if r.IntN(2) == 0 {
		c.bwd.AttnScale = opregistry.Float(0.3)
	}
	if fused {
		c.bwd.Q, c.bwd.K, c.bwd.V = fusedViews(t, r, d, shape)
		c.bwd.DQ, c.bwd.DK, c.bwd.DV = fusedViews(t, r, d, shape)
	} else {
		c.bwd.Q, c.bwd.K, c.bwd.V = alone(d.SeqQ, d.Heads, d.DimQK, false), alone(d.SeqKV, d.Groups, d.DimQK, false), alone(d.SeqKV, d.Groups, d.DimV, false)
		c.bwd.DQ, c.bwd.DK, c.bwd.DV = alone(d.SeqQ, d.Heads, d.DimQK, true), alone(d.SeqKV, d.Groups, d.DimQK, true), alone(d.SeqKV, d.Groups, d.DimV, true)
	}
	c.bwd.O, c.bwd.DO = alone(d.SeqQ, d.Heads, d.DimV, true), alone(d.SeqQ, d.Heads, d.DimV, false)
	stats := newMatrix(t, r, "dense", d.Batch, d.Heads, d.SeqQ, 1)
	c.bwd.Stats = stats.tensor
	c.written = append(c.written, stats)
	return c
}

// fusedViews cuts a block of [.., (heads + 2·groups)·dim] into query, key and value.
func fusedViews(t testing.TB, r *rand.Rand, d attention.AttnDims, shape func(s, h, w int) []int) (q, k, v *tensor.Tensor) {
	t.Helper()
	block := newMatrix(t, r, "dense", shape(d.SeqQ, d.Heads+2*d.Groups, d.DimQK)...).tensor
	cut := func(lo, hi int) *tensor.Tensor {
		x, err := block.Slice(2, lo, hi)
		require.NoError(t, err)
		return x
	}
	return cut(0, d.Heads), cut(d.Heads, d.Heads+d.Groups), cut(d.Heads+d.Groups, d.Heads+2*d.Groups)
}

// naiveAttn computes both ops in float64, as their documentation specifies.
type naiveAttn struct {
	d                    attention.AttnDims
	sbhd                 bool
	o, stats, dQ, dK, dV []float64
}

func (n *naiveAttn) at(batch, step, head, steps, heads, width int) int {
	if n.sbhd {
		return ((step*n.d.Batch+batch)*heads + head) * width
	}
	return ((batch*steps+step)*heads + head) * width
}

func newNaiveAttn(a attention.FusedAttnBwdArgs) *naiveAttn {
	fwd := a.Fwd()
	d := fwd.Dims()
	n := &naiveAttn{d: d, sbhd: a.QKVFormat == attention.SBHD}
	q, k, v, dO := a.Q.Float64s(), a.K.Float64s(), a.V.Float64s(), a.DO.Float64s()
	n.o, n.stats = make([]float64, len(dO)), make([]float64, d.Batch*d.Heads*d.SeqQ)
	n.dQ, n.dK, n.dV = make([]float64, len(q)), make([]float64, len(k)), make([]float64, len(v))
	scale := float64(a.AttnScale.Or(float32(1 / math.Sqrt(float64(d.DimQK)))))
	for b := range d.Batch {
		for h := range d.Heads {
			g := h / (d.Heads / d.Groups)
			for i := range d.SeqQ {
				qi, oi := n.at(b, i, h, d.SeqQ, d.Heads, d.DimQK), n.at(b, i, h, d.SeqQ, d.Heads, d.DimV)
				limit := d.SeqKV
				switch a.AttnMaskType {
				case attention.CausalMask:
					limit = min(i+1, d.SeqKV)
				case attention.CausalBottomRightMask:
					limit = min(max(i+1+d.SeqKV-d.SeqQ, 0), d.SeqKV)
				}
				p := make([]float64, limit)
				total := 0.0
				for j := range p {
					kj := n.at(b, j, g, d.SeqKV, d.Groups, d.DimQK)
					for x := range d.DimQK {
						p[j] += scale * q[qi+x] * k[kj+x]
					}
					total += math.Exp(p[j])
				}
				n.stats[(b*d.Heads+h)*d.SeqQ+i] = math.Log(total)
				inner := 0.0
				for j := range p {
					p[j] = math.Exp(p[j]) / total
					vj := n.at(b, j, g, d.SeqKV, d.Groups, d.DimV)
					for x := range d.DimV {
						n.o[oi+x] += p[j] * v[vj+x]
					}
				}
				for x := range d.DimV {
					inner += dO[oi+x] * n.o[oi+x]
				}
				for j := range p {
					kj, vj := n.at(b, j, g, d.SeqKV, d.Groups, d.DimQK), n.at(b, j, g, d.SeqKV, d.Groups, d.DimV)
					dp := 0.0
					for x := range d.DimV {
						n.dV[vj+x] += p[j] * dO[oi+x]
						dp += dO[oi+x] * v[vj+x]
					}
					ds := scale * p[j] * (dp - inner)
					for x := range d.DimQK {
						n.dQ[qi+x] += ds * k[kj+x]
						n.dK[kj+x] += ds * q[qi+x]
					}
				}
			}
		}
	}
	return n
}

func TestAttentionMatchesFloat64(t *testing.T) {
	fwd, bwd := flagosRun(t, attention.FusedAttnFwd), flagosRun(t, attention.FusedAttnBwd)
	masks := []attention.MaskType{attention.NoMask, attention.CausalMask, attention.CausalBottomRightMask}
	formats := []attention.QKVFormat{attention.SBHD, attention.BSHD}
	wants := map[int]*naiveAttn{} // of the cases, which are the same with all kernels
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		pool := parallel.New(3)
		defer pool.Close()
		e := opregistry.NewExec(pool, 0)
		for i := range primustest.Cases(80, 160) {
			groups := 1 + r.IntN(2)
			d := attention.AttnDims{
				Batch: 1 + r.IntN(2), SeqQ: 1 + r.IntN(70), SeqKV: 1 + r.IntN(70),
				Heads: groups * (1 + r.IntN(3)), Groups: groups, DimQK: 1 + r.IntN(40), DimV: 1 + r.IntN(40),
			}
			fused := i%3 == 0
			switch {
			case i%20 == 7:
				d.SeqQ, d.SeqKV = 170, 170
			case i%50 == 11: // several blocks of keys
				d.SeqQ, d.SeqKV, d.Batch = 60, 600, 1
			case i%50 == 12:
				d.SeqQ, d.SeqKV, d.Batch = 600, 60, 1
			case i == 5: // bottom right, what a block of queries sees ends inside a tile of keys
				d.SeqQ, d.SeqKV = 150, 207
			case i == 20:
				d.SeqKV = 0
			}
			if fused {
				d.SeqKV, d.DimV = d.SeqQ, d.DimQK
			}
			c := newAttnCase(t, r, d, formats[r.IntN(2)], masks[i%3], fused)
			what := fmt.Sprintf("case %d: %+v, %v, %v", i, d, c.bwd.QKVFormat, c.bwd.AttnMaskType)
			require.NoError(t, attention.FusedAttnFwd.Validate(c.bwd.Fwd()), what)
			require.NoError(t, attention.FusedAttnBwd.Validate(c.bwd), what)
			if wants[i] == nil {
				wants[i] = newNaiveAttn(c.bwd)
			}
			want := wants[i]
			require.NoError(t, fwd(e, c.bwd.Fwd()), what)
			const tolerance = 2e-5
			requireClose(t, want.o, c.bwd.O, tolerance, what+" O")
			for j, v := range c.bwd.Stats.Float64s() {
				if math.IsInf(want.stats[j], -1) {
					require.Equal(t, want.stats[j], v, what)
				} else {
					require.InDelta(t, want.stats[j], v, tolerance, what+" stats")
				}
			}
			require.NoError(t, bwd(e, c.bwd), what)
			requireClose(t, want.dQ, c.bwd.DQ, 5*tolerance, what+" dQ")
			requireClose(t, want.dK, c.bwd.DK, 5*tolerance, what+" dK")
			requireClose(t, want.dV, c.bwd.DV, 5*tolerance, what+" dV")
			for _, w := range c.written {
				w.requireGuards(t)
			}
		}
	})
}

func TestAttentionIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	fwd, bwd := flagosRun(t, attention.FusedAttnFwd), flagosRun(t, attention.FusedAttnBwd)
	for _, d := range []attention.AttnDims{
		{Batch: 2, SeqQ: 250, SeqKV: 250, Heads: 4, Groups: 2, DimQK: 32, DimV: 32},
		{Batch: 1, SeqQ: 600, SeqKV: 600, Heads: 2, Groups: 1, DimQK: 8, DimV: 8}, // several parts a head
	} {
		var first [][]float64
		for _, workers := range []int{1, 2, 3} {
			pool := parallel.New(workers)
			e := opregistry.NewExec(pool, 0)
			c := newAttnCase(t, rand.New(rand.NewPCG(2, 2)), d, attention.BSHD, attention.CausalMask, true)
			require.NoError(t, fwd(e, c.bwd.Fwd()))
			require.NoError(t, bwd(e, c.bwd))
			pool.Close()
			got := [][]float64{c.bwd.O.Float64s(), c.bwd.Stats.Float64s(), c.bwd.DQ.Float64s(), c.bwd.DK.Float64s(), c.bwd.DV.Float64s()}
			if first == nil {
				first = got
			}
			assert.Equal(t, first, got, "%+v, %d workers", d, workers)
		}
	}
}

func TestAttentionSurvivesLargeScores(t *testing.T) {
	fwd := flagosRun(t, attention.FusedAttnFwd)
	kerneltest.EachFeature(t, func(t *testing.T) {
		c := newAttnCase(t, rand.New(rand.NewPCG(3, 3)), attention.AttnDims{Batch: 1, SeqQ: 9, SeqKV: 9, Heads: 1, Groups: 1, DimQK: 4, DimV: 4}, attention.BSHD, attention.CausalMask, true)
		c.bwd.AttnScale = opregistry.Float(500)
		want := newNaiveAttn(c.bwd)
		require.NoError(t, fwd(opregistry.NewExec(nil, 0), c.bwd.Fwd()))
		for i, v := range c.bwd.O.Float64s() {
			require.False(t, math.IsNaN(v) || math.IsInf(v, 0))
			if !math.IsNaN(want.o[i]) {
				require.InDelta(t, want.o[i], v, 1e-2)
			}
		}
	})
}

func TestAttentionPropagatesNaN(t *testing.T) {
	fwd := flagosRun(t, attention.FusedAttnFwd)
	kerneltest.EachFeature(t, func(t *testing.T) {
		c := newAttnCase(t, rand.New(rand.NewPCG(4, 4)), attention.AttnDims{Batch: 1, SeqQ: 40, SeqKV: 40, Heads: 1, Groups: 1, DimQK: 4, DimV: 4}, attention.BSHD, attention.CausalMask, true)
		c.bwd.Q.Set(math.NaN(), 0, 5, 0, 1)
		require.NoError(t, fwd(opregistry.NewExec(nil, 0), c.bwd.Fwd()))
		for i := range 40 {
			v := c.bwd.O.At(0, i, 0, 2)
			assert.Equal(t, i == 5, v != v, "query %d", i)
		}
	})
}

func TestAttentionDeclinesBeforeWriting(t *testing.T) {
	fwd, bwd := flagosRun(t, attention.FusedAttnFwd), flagosRun(t, attention.FusedAttnBwd)
	e := opregistry.NewExec(nil, 0)
	d := attention.AttnDims{Batch: 1, SeqQ: 3, SeqKV: 3, Heads: 1, Groups: 1, DimQK: 4, DimV: 4}
	r := rand.New(rand.NewPCG(5, 5))
	double := func() *tensor.Tensor {
		x, err := tensor.FromSlice(make([]float64, 12), 1, 3, 1, 4)
		require.NoError(t, err)
		return x
	}
	c := newAttnCase(t, r, d, attention.BSHD, attention.NoMask, false)
	a := c.bwd
	a.Q, a.K, a.V, a.O, a.DO, a.DQ, a.DK, a.DV = double(), double(), double(), double(), double(), double(), double(), double()
	require.NoError(t, attention.FusedAttnBwd.Validate(a))
	assert.ErrorIs(t, fwd(e, a.Fwd()), opregistry.ErrUnsupported)
	assert.ErrorIs(t, bwd(e, a), opregistry.ErrUnsupported)

	a = c.bwd
	a.V = newMatrix(t, r, "sparse", 1, 3, 1, 4).tensor
	before := a.O.Float64s()
	require.NoError(t, attention.FusedAttnFwd.Validate(a.Fwd()))
	assert.ErrorIs(t, fwd(e, a.Fwd()), opregistry.ErrUnsupported)
	assert.Equal(t, before, a.O.Float64s())
}

func TestAttentionAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("under the race detector pools of memory drop what they hold")
	}
	fwd, bwd := flagosRun(t, attention.FusedAttnFwd), flagosRun(t, attention.FusedAttnBwd)
	for _, workers := range []int{1, 2} {
		pool := parallel.New(workers)
		defer pool.Close()
		e := opregistry.NewExec(pool, 0)
		c := newAttnCase(t, rand.New(rand.NewPCG(6, 6)), attention.AttnDims{Batch: 2, SeqQ: 64, SeqKV: 300, Heads: 2, Groups: 2, DimQK: 16, DimV: 16}, attention.SBHD, attention.CausalMask, true)
		assert.Zero(t, testing.AllocsPerRun(30, func() { _ = fwd(e, c.bwd.Fwd()) }), "forward, %d workers", workers)
		assert.Zero(t, testing.AllocsPerRun(30, func() { _ = bwd(e, c.bwd) }), "backward, %d workers", workers)
	}
}

// Options that the kernels do not compute are declined, before anything is written.
func TestAttentionDeclinesOptions(t *testing.T) {
	fwd, bwd := flagosRun(t, attention.FusedAttnFwd), flagosRun(t, attention.FusedAttnBwd)
	lengths, err := tensor.FromSlice([]int32{0, 3})
	require.NoError(t, err)
	offset := vector(t, 1)
	hidden, err := tensor.FromSlice(make([]bool, 1), 1, 1, 1, 1)
	require.NoError(t, err)
	for name, edit := range map[string]func(a *attention.FusedAttnBwdArgs){
		"mask": func(a *attention.FusedAttnBwdArgs) { a.AttnMaskType, a.AttentionMask = attention.ArbitraryMask, hidden },
		"padding with an offset of the softmax": func(a *attention.FusedAttnBwdArgs) {
			a.AttnMaskType, a.CuSeqlensQ, a.CuSeqlensKV = attention.PaddingMask, lengths, lengths
			a.SoftmaxType, a.SoftmaxOffset = attention.LearnableSoftmax, offset
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newAttnCase(t, rand.New(rand.NewPCG(7, 7)), attention.AttnDims{Batch: 1, SeqQ: 3, SeqKV: 3, Heads: 1, Groups: 1, DimQK: 4, DimV: 4}, attention.BSHD, attention.NoMask, false)
			a := c.bwd
			edit(&a)
			require.NoError(t, attention.FusedAttnBwd.Validate(a))
			before := append(a.O.Float64s(), a.DQ.Float64s()...)
			require.ErrorIs(t, fwd(opregistry.NewExec(nil, 0), a.Fwd()), opregistry.ErrUnsupported)
			require.ErrorIs(t, bwd(opregistry.NewExec(nil, 0), a), opregistry.ErrUnsupported)
			assert.Equal(t, before, append(a.O.Float64s(), a.DQ.Float64s()...))
		})
	}
}
