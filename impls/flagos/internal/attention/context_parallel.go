package attention

import (
	"math"
	"sort"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// thdGetPartitionedIndices implements attention.THDGetPartitionedIndices.
func thdGetPartitionedIndices(_ *opregistry.Exec, a attention.THDGetPartitionedIndicesArgs) error {
	var v host.Views
	ends, out := v.Int32s("cu_seqlens", a.CuSeqlens), v.Int32s("output", a.Output)
	if v.Err != nil {
		return v.Err
	}
	for b := range len(ends) - 1 {
		chunk := (ends[b+1] - ends[b]) / int32(2*a.WorldSize)
		for _, c := range [...]int{a.Rank, 2*a.WorldSize - 1 - a.Rank} {
			for i := range chunk {
				out[i] = ends[b] + int32(c)*chunk + i
			}
			out = out[chunk:]
		}
	}
	return nil
}

// thdReadHalfTensor implements attention.THDReadHalfTensor.
func thdReadHalfTensor(e *opregistry.Exec, a attention.THDReadHalfTensorArgs) error {
	var v host.Views
	ends := v.Int32s("cu_seqlens", a.CuSeqlens)
	c, zero := tokensOf(&v, e, "half", a.Half, "tensor", a.Tensor), tokensOf(&v, e, "half", a.Half, "", nil)
	if v.Err != nil {
		return v.Err
	}
	axis, copies := len(a.Half.Shape())-3, 1
	to, from := a.Half.Strides(), a.Tensor.Strides()
	if axis > 0 {
		copies = a.Half.Shape()[0]
	}
	last := int(ends[len(ends)-1]) / 2
	for n := range copies {
		at, source := n*to[0]*axis, n*from[0]*axis
		for b := range len(ends) - 1 {
			first, half := int(ends[b]), int(ends[b+1]-ends[b])/2
			c.run(half, at+first/2*to[axis], to[axis], source+(first+a.HalfIdx*half)*from[axis], from[axis])
		}
		zero.run(a.Half.Shape()[axis]-last, at+last*to[axis], to[axis], 0, 0)
	}
	return nil
}

// thdReadSecondHalfLSE implements attention.THDReadSecondHalfLSE.
func thdReadSecondHalfLSE(e *opregistry.Exec, a attention.THDReadSecondHalfLSEArgs) error {
	var v host.Views
	ends := v.Int32s("cu_seqlens", a.CuSeqlens)
	c, zero := v.Copy("half_lse", a.HalfLSE, "lse", a.LSE), v.Copy("half_lse", a.HalfLSE, "", nil)
	from, to := lseOf(&v, "lse", a.LSE, a.LSEPacked), lseOf(&v, "half_lse", a.HalfLSE, a.LSEPacked)
	if v.Err != nil {
		return v.Err
	}
	shape := a.HalfLSE.Shape()
	heads, positions := shape[len(shape)-2], shape[len(shape)-1]
	for b := range len(ends) - 1 {
		first, half := int(ends[b]), int(ends[b+1]-ends[b])/2
		c.At(to.at(first/2, b, 0, 0), from.at(first, b, 0, half)).Along(heads, to.head, from.head).Along(half, to.step, from.step).Run(e)
		if !a.LSEPacked {
			zero.At(to.at(0, b, 0, half), 0).Along(heads, to.head, 0).Along(positions-half, to.step, 0).Run(e)
		}
	}
	if last := int(ends[len(ends)-1]) / 2; a.LSEPacked {
		zero.At(last*to.step, 0).Along(heads, to.head, 0).Along(positions-last, to.step, 0).Run(e)
	}
	return nil
}

// logSums are log-sum-exps at distances.
type logSums struct {
	stats
	packed bool
}

// lseOf requires log-sum-exps of f32 in host memory.
func lseOf(v *host.Views, name string, t *tensor.Tensor, packed bool) logSums {
	if !v.Host(name, t, tensor.F32) {
		return logSums{}
	}
	s, axis := t.Strides(), len(t.Strides())-2
	l := logSums{stats: stats{data: tensor.Data[float32](t), head: s[axis], step: s[axis+1]}, packed: packed}
	if !packed {
		l.sequence = s[0]
	}
	return l
}

// at returns the index of position i of sequence b, which begins at first if it is packed.
func (l *logSums) at(first, b, head, i int) int {
	if l.packed {
		i += first
	}
	return b*l.sequence + head*l.head + i*l.step
}

// positions are the tokens of packed sequences, or those of their second halves, one after the
// other.
type positions struct {
	ends []int32
	half bool
}

// before returns how many of the positions are in the sequences before b.
func (p *positions) before(b int) int {
	if p.half {
		return int(p.ends[b]) / 2
	}
	return int(p.ends[b])
}

func (p *positions) len() int { return p.before(len(p.ends) - 1) }

// each calls f with the sequence and the index of each position from lo to hi, counted in the
// sequence or in its half, and with the token.
func (p *positions) each(lo, hi int, f func(b, i, token int)) {
	b := sort.Search(len(p.ends)-1, func(b int) bool { return p.before(b+1) > lo })
	for n := lo; n < hi; n++ {
		for p.before(b+1) <= n {
			b++
		}
		token := n
		if p.half {
			token += p.before(b + 1)
		}
		f(b, n-p.before(b), token)
	}
}

// lseCorrection is a call of attention.THDSecondHalfLSECorrection.
type lseCorrection struct {
	host.Cut
	positions
	lse, step logSums
	heads     int
}

var lseCorrectionKernel = parallel.NewKernel((*lseCorrection).part)

// thdSecondHalfLSECorrection implements attention.THDSecondHalfLSECorrection, in f64.
func thdSecondHalfLSECorrection(e *opregistry.Exec, a attention.THDSecondHalfLSECorrectionArgs) error {
	var v host.Views
	c := lseCorrection{
		positions: positions{ends: v.Int32s("cu_seqlens", a.CuSeqlens), half: true}, heads: a.LSE.Shape()[len(a.LSE.Shape())-2],
		lse: lseOf(&v, "lse", a.LSE, a.LSEPacked), step: lseOf(&v, "lse_per_step", a.LSEPerStep, a.LSEPacked),
	}
	if v.Err != nil {
		return v.Err
	}
	const perHead = 16 // an exponential and a logarithm take as long as so many elements
	c.Cut = host.CutItems(c.len(), perHead*c.heads)
	lseCorrectionKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *lseCorrection) part(part int) {
	lo, hi := c.Bounds(part)
	c.each(lo, hi, func(b, i, token int) {
		first := int(c.ends[b])
		for h := range c.heads {
			to := &c.lse.data[c.lse.at(first, b, h, token-first)]
			*to = logAdd(*to, c.step.data[c.step.at(first/2, b, h, i)])
		}
	})
}

// logAdd returns ln(exp(x) + exp(y)).
func logAdd(x, y float32) float32 {
	if x < y {
		x, y = y, x
	}
	if x == y {
		if math.IsInf(float64(x), 0) {
			return x
		}
		return float32(float64(x) + math.Ln2)
	}
	return float32(float64(x) + math.Log1p(math.Exp(float64(y)-float64(x))))
}

// outCorrection is a call of attention.THDOutCorrection.
type outCorrection struct {
	host.Cut
	positions
	exec      *opregistry.Exec
	out, step host.Heads
	lse, part logSums // of all steps and of this one
	heads, d  int
}

var outCorrectionKernel = parallel.NewKernel((*outCorrection).run)

// thdOutCorrection implements attention.THDOutCorrection.
func thdOutCorrection(e *opregistry.Exec, a attention.THDOutCorrectionArgs) error {
	var v host.Views
	c := outCorrection{
		positions: positions{ends: v.Int32s("cu_seqlens", a.CuSeqlens), half: a.OnlySecondHalf}, exec: e,
		out: v.Heads("out", a.Out, attention.THD), step: v.Heads("out_per_step", a.OutPerStep, attention.THD),
		lse: lseOf(&v, "lse", a.LSE, a.LSEPacked), part: lseOf(&v, "lse_per_step", a.LSEPerStep, a.LSEPacked),
		heads: a.Out.Shape()[1], d: a.Out.Shape()[2],
	}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.len(), c.heads*c.d)
	outCorrectionKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *outCorrection) run(part int) {
	lo, hi := c.Bounds(part)
	buf := c.exec.Scratch(2 * c.d)
	c.each(lo, hi, func(b, i, token int) {
		first := int(c.ends[b])
		for h := range c.heads {
			lse := c.lse.data[c.lse.at(first, b, h, token-first)]
			step := c.part.data[c.part.at(c.before(b), b, h, i)]
			x, y := c.step.Piece(0, c.before(b)+i, h, buf[:c.d]), c.out.Piece(0, token, h, buf[c.d:])
			addFactor(y, x, float32(math.Exp(float64(step)-float64(lse))))
			c.out.Settle(0, token, h, y)
		}
	})
	c.exec.Release(buf)
}

// addFactor adds factor·x to y, except for zeros of x.
func addFactor(y, x []float32, factor float32) {
	if factor-factor == 0 {
		vector.Axpy(factor, x, y)
		return
	}
	for i, v := range x {
		if v != 0 {
			y[i] += v * factor
		}
	}
}

// gradCorrection is a call of attention.THDGradCorrection; its items are the positions of the
// second halves, in each copy.
type gradCorrection struct {
	host.Cut
	positions
	exec       *opregistry.Exec
	grad, step host.Heads
	heads, d   int
	whole      bool // step has both halves
	corrects   [2]attention.Correction
}

var gradCorrectionKernel = parallel.NewKernel((*gradCorrection).part)

// thdGradCorrection implements attention.THDGradCorrection.
func thdGradCorrection(e *opregistry.Exec, a attention.THDGradCorrectionArgs) error {
	var v host.Views
	shape, format, copies := a.Grad.Shape(), attention.THD, 1
	if len(shape) == 4 {
		format, copies = attention.BSHD, shape[0]
	}
	c := gradCorrection{
		positions: positions{ends: v.Int32s("cu_seqlens", a.CuSeqlens), half: true}, exec: e,
		grad: v.Heads("grad", a.Grad, format), step: v.Heads("grad_per_step", a.GradPerStep, format),
		heads: shape[len(shape)-2], d: shape[len(shape)-1], corrects: [...]attention.Correction{a.FirstHalf, a.SecondHalf},
		whole: a.FirstHalf != attention.NoCorrection && a.SecondHalf != attention.NoCorrection,
	}
	if v.Err != nil {
		return v.Err
	}
	if c.grad.Head == c.d && c.step.Head == c.d {
		c.heads, c.d = min(c.heads, 1), c.heads*c.d
	}
	c.Cut = host.CutItems(copies*c.len(), c.heads*c.d)
	gradCorrectionKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *gradCorrection) part(part int) {
	lo, hi := c.Bounds(part)
	buf := c.exec.Scratch(2 * c.d)
	for n := c.len(); lo < hi; {
		entry, at := lo/n, lo%n
		end := min(n, at+hi-lo)
		c.each(at, end, func(b, i, second int) {
			to := [...]int{int(c.ends[b]) + i, second}
			from := to
			if !c.whole {
				from[0] = c.before(b) + i
				from[1] = from[0]
			}
			for half, x := range c.corrects {
				c.correct(x, entry, to[half], from[half], buf)
			}
		})
		lo += end - at
	}
	c.exec.Release(buf)
}

// correct corrects the heads of a token.
func (c *gradCorrection) correct(x attention.Correction, entry, to, from int, buf []float32) {
	for h := range c.heads {
		switch x {
		case attention.CopyCorrection:
			c.grad.Take(entry, to, h, &c.step, entry, from, h, c.d)
		case attention.AddCorrection:
			y := c.grad.Piece(entry, to, h, buf[:c.d])
			vector.Add(y, y, c.step.Piece(entry, from, h, buf[c.d:]))
			c.grad.Settle(entry, to, h, y)
		case attention.NoCorrection:
		default:
			panic("BUG: attention: unknown correction")
		}
	}
}
