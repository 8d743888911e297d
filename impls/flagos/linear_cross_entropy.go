package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/gemm"
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/impls/flagos/internal/panel"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
)

const (
	// linearFloats bounds the logits that exist at a time, those of some tokens, unless they are at
	// most a part in linearShares of all: each time, the weight is read and packed, and its gradient
	// is read and written.
	linearFloats = 3 << 23
	linearShares = 9

	// linearMostRows and linearLeastRows bound how many tokens these are.
	linearMostRows, linearLeastRows = 1024, 32
)

// linearEntropy is a call of linear_cross_entropy_fwd or _bwd. The tokens are processed some rows
// at a time: their logits, of which the losses are made, become the gradient of the logits in place
// and enter two more products. How many rows follows from the shape alone.
type linearEntropy struct {
	exec            *opregistry.Exec
	hidden, weight  panel.Operand
	dhidden         host.Matrix
	dweight         host.Matrix
	targets         host.Indexes
	losses, lse     []float32 // of fwd: both are written
	dlosses         []float32 // nil without gradients
	known           bool      // lse is given
	learns          bool      // dweight is wanted
	ignore, first   int
	accumulate      bool
	rows, vocab     int
	logits          host.Matrix // of the rows from lo on
	lo              int
	cut             host.Cut
	narrow          host.Matrix // the gradient in the memory of the logits, where hidden is narrow
	narrowGradients bool
}

// linearCrossEntropyFwd implements loss.LinearCrossEntropyFwd. Scratch, in f32: the logits of some
// tokens, at most linearFloats or one in linearShares, and that of three products.
func linearCrossEntropyFwd(e *opregistry.Exec, a loss.LinearCrossEntropyFwdArgs) error {
	var v host.Views
	c := linearEntropy{
		exec: e, hidden: gemm.Operand(&v, "hidden", a.Hidden), weight: gemm.Operand(&v, "weight", a.Weight), targets: v.Indexes("targets", a.Targets),
		losses: v.Vector("losses", a.Losses), lse: v.Vector("lse", a.LSE), ignore: a.IgnoreIndex, first: a.First, accumulate: a.Accumulate,
	}
	if a.DLosses != nil {
		c.dlosses, c.dhidden = v.Vector("dlosses", a.DLosses), v.Matrix("dhidden", a.DHidden)
	}
	if c.learns = a.DWeight != nil; c.learns {
		c.dweight = v.Matrix("dweight", a.DWeight)
	}
	return c.run(&v, a.DLosses != nil)
}

// linearCrossEntropyBwd implements loss.LinearCrossEntropyBwd, as linearCrossEntropyFwd.
func linearCrossEntropyBwd(e *opregistry.Exec, a loss.LinearCrossEntropyBwdArgs) error {
	var v host.Views
	c := linearEntropy{
		exec: e, hidden: gemm.Operand(&v, "hidden", a.Hidden), weight: gemm.Operand(&v, "weight", a.Weight), targets: v.Indexes("targets", a.Targets),
		lse: v.Vector("lse", a.LSE), dlosses: v.Vector("dlosses", a.DLosses), dhidden: v.Matrix("dhidden", a.DHidden), known: true,
		ignore: a.IgnoreIndex, first: a.First, accumulate: a.Accumulate,
	}
	if c.learns = a.DWeight != nil; c.learns {
		c.dweight = v.Matrix("dweight", a.DWeight)
	}
	return c.run(&v, true)
}

// linearPitch returns the distance of rows of logits. The columns that a product reads lie in lines
// of all sets of a cache: rows are no multiple of wayFloats apart, nor almost.
func linearPitch(vocab int) int {
	const wayFloats, apart = 1 << 12, 9 * panel.LeftPad
	pitch := host.RoundUp(vocab, panel.LeftPad)
	if pitch < wayFloats {
		return pitch + panel.LeftPad
	}
	if over := pitch % wayFloats; over > wayFloats-apart {
		pitch += wayFloats - over + apart
	} else if over < apart {
		pitch += apart - over
	}
	return pitch
}

var linearEntropyKernel = parallel.NewKernel((*linearEntropy).part)

// run goes through the tokens, with gradients or without.
func (c *linearEntropy) run(v *host.Views, gradients bool) error {
	c.rows, c.vocab = c.hidden.Rows, c.weight.Rows
	pitch := linearPitch(c.vocab)
	step := min(max(linearFloats/pitch, c.rows/linearShares, linearLeastRows), linearMostRows) / linearLeastRows * linearLeastRows
	if c.learns && c.dweight.Narrow() && c.rows > step {
		v.Decline("%v of dweight with %d rows of hidden, this impl adds up to f32 beyond %d", c.dweight.DType(), c.rows, step)
	}
	if v.Err != nil {
		return v.Err
	}
	buf := c.exec.Scratch(min(step, c.rows) * pitch)
	defer c.exec.Release(buf)
	c.logits = host.Matrix{Data: buf, Cols: c.vocab, Pitch: pitch}
	dlogits := panel.Operand{Data: buf, Cols: c.vocab, RowStep: pitch, ColStep: 1}
	c.narrowGradients = gradients && c.hidden.Narrow()
	if c.narrowGradients {
		c.narrow = host.Matrix{Half: host.HalfIn(buf, c.hidden.DType()), Cols: c.vocab, Pitch: 2 * pitch}
		dlogits = panel.Operand{Half: c.narrow.Half, Cols: c.vocab, RowStep: 2 * pitch, ColStep: 1}
	}
	for c.lo = 0; c.lo == 0 || c.lo < c.rows; c.lo += step {
		rows := min(step, c.rows-c.lo)
		hidden := c.hidden.Block(c.lo, rows)
		c.logits.Rows, dlogits.Rows = rows, rows
		gemm.Multiply(c.exec, hidden, c.weight.Transposed(), c.logits, false)
		c.cut = host.CutItems(rows, c.vocab)
		linearEntropyKernel.Run(c.exec.Pool(), c.cut.Parts, *c)
		if !gradients {
			continue
		}
		gemm.Multiply(c.exec, dlogits, c.weight, c.dhidden.Sub(c.lo, rows), false)
		if c.learns {
			gemm.Multiply(c.exec, dlogits.Transposed(), hidden, c.dweight, c.accumulate || c.lo > 0)
		}
	}
	return nil
}

// part computes the losses of some of the current rows, and replaces their logits by the gradient.
func (c *linearEntropy) part(part int) {
	lo, hi := c.cut.Bounds(part)
	for r := lo; r < hi; r++ {
		token, x := c.lo+r, c.logits.Row(r)
		target, ignored := c.targets.At(token)-c.first, c.targets.At(token) == c.ignore
		if ignored || target < 0 || target >= c.vocab {
			target = -1
		}
		if !c.known {
			var log [1]float64
			vector.LogSumExp(log[:], x, c.vocab, c.logits.Pitch)
			c.lse[token], c.losses[token] = float32(log[0]), 0
			if target >= 0 {
				c.losses[token] = tokenLoss(log[0], x[target])
			}
		}
		switch {
		case c.dlosses == nil:
			continue
		case ignored:
			clear(x)
		default:
			entropyGradient(x, x, target, c.lse[token], c.dlosses[token])
		}
		if c.narrowGradients {
			c.round(r, x)
		}
	}
}

// round stores the gradient of a row in 16 bits, over the logits from which it has been made.
func (c *linearEntropy) round(r int, x []float32) {
	var some [1024]float32
	for at := 0; at < len(x); at += len(some) {
		n := copy(some[:], x[at:])
		c.narrow.Store(r*c.narrow.Pitch+at, some[:n])
	}
}
