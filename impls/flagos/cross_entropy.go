package flagos

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/gemm"
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
)

// lossImpls returns the impls of the family.
func lossImpls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(loss.CrossEntropyFwd, crossEntropyFwd),
		host.Impl(loss.CrossEntropyBwd, crossEntropyBwd),
		gemm.FlushingPairs(host.Impl(loss.LinearCrossEntropyFwd, linearCrossEntropyFwd)),
		gemm.FlushingPairs(host.Impl(loss.LinearCrossEntropyBwd, linearCrossEntropyBwd)),
	}
}

type entropy struct {
	host.Cut
	exec        *opregistry.Exec
	logits      host.Matrix
	targets     host.Indexes
	losses, lse []float32
	ignore      int
}

var entropyKernel = parallel.NewKernel((*entropy).part)

// crossEntropyFwd implements loss.CrossEntropyFwd. A row with +Inf and no NaN has the log-sum-exp
// +Inf, and one with only −Inf has −Inf.
func crossEntropyFwd(e *opregistry.Exec, a loss.CrossEntropyFwdArgs) error {
	var v host.Views
	c := entropy{
		exec:    e,
		logits:  v.Matrix("logits", a.Logits),
		targets: v.Indexes("targets", a.Targets),
		losses:  v.Vector("losses", a.Losses),
		lse:     v.Vector("lse", a.LSE),
		ignore:  a.IgnoreIndex,
	}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.logits.Rows, c.logits.Cols)
	host.KernelFor(entropyKernel, entropyTiles, c.logits).Run(e.Pool(), c.Parts, c)
	return nil
}

// entropyRows is how many rows are processed together.
const entropyRows = 32

func (c *entropy) part(part int) {
	lo, hi := c.Bounds(part)
	for ; lo < hi; lo += entropyRows {
		c.block(lo, min(lo+entropyRows, hi))
	}
}

// block computes at most entropyRows rows.
func (c *entropy) block(lo, hi int) {
	var logs [entropyRows]float64
	vector.LogSumExp(logs[:hi-lo], c.logits.Data[lo*c.logits.Pitch:], c.logits.Cols, c.logits.Pitch)
	for r := lo; r < hi; r++ {
		lse := logs[r-lo]
		c.lse[r] = float32(lse)
		c.losses[r] = 0
		if target := c.targets.At(r); target != c.ignore {
			c.losses[r] = tokenLoss(lse, c.logits.Row(r)[target])
		}
	}
}

// tokenLoss returns the loss of a token with this log-sum-exp and this logit of its target.
func tokenLoss(lse float64, logit float32) float32 {
	if math.IsInf(lse, 0) {
		return float32(math.NaN())
	}
	return float32(max(lse-float64(logit), 0)) // rounding must not make it negative
}

type entropyGrad struct {
	host.Cut
	exec            *opregistry.Exec
	logits, dlogits host.Matrix
	targets         host.Indexes
	lse, dlosses    []float32
	ignore          int
}

var entropyGradKernel = parallel.NewKernel((*entropyGrad).part)

// crossEntropyBwd implements loss.CrossEntropyBwd.
func crossEntropyBwd(e *opregistry.Exec, a loss.CrossEntropyBwdArgs) error {
	var v host.Views
	c := entropyGrad{
		exec:    e,
		logits:  v.Matrix("logits", a.Logits),
		dlogits: v.Matrix("dlogits", a.DLogits),
		targets: v.Indexes("targets", a.Targets),
		lse:     v.Vector("lse", a.LSE),
		dlosses: v.Vector("dlosses", a.DLosses),
		ignore:  a.IgnoreIndex,
	}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.logits.Rows, c.logits.Cols)
	host.KernelFor(entropyGradKernel, entropyGradTiles, c.logits, c.dlogits).Run(e.Pool(), c.Parts, c)
	return nil
}

const (
	// logHalf is ln ½.
	logHalf = -math.Ln2

	// largeLSE is the log-sum-exp from which its rounding to f32 counts: below it, the relative error
	// of an exponential is at most 2⁻²⁰.
	largeLSE = 32

	// lseStretch is the number of elements of a row whose sum is f32.
	lseStretch = 1 << 12
)

func (c *entropyGrad) part(part int) {
	lo, hi := c.Bounds(part)
	for r := lo; r < hi; r++ {
		x, dx, target := c.logits.Row(r), c.dlogits.Row(r), c.targets.At(r)
		if target == c.ignore {
			clear(dx)
			continue
		}
		entropyGradient(dx, x, target, c.lse[r], c.dlosses[r])
	}
}

// entropyGradient stores the gradient of the logits x of a token. A target of -1 is none of them.
func entropyGradient(dx, x []float32, target int, lse, dloss float32) {
	size, logit := math.Abs(float64(lse)), 0.
	if math.IsInf(size, 0) {
		fill(dx, float32(math.NaN()))
		return
	}
	if target >= 0 {
		logit = float64(x[target])
	}
	log := logit - float64(lse)
	if size < largeLSE {
		vector.ExpScale(dx, x, lse, dloss)
	} else {
		log -= expScaleLarge(dx, x, lse, dloss)
	}
	switch {
	case target < 0:
	case log > logHalf:
		// p−1 has lost digits where p is close to 1.
		dx[target] = float32(float64(dloss) * math.Expm1(log))
	default:
		dx[target] -= dloss
	}
}

// expScaleLarge stores dloss·eˣ⁻ˡˢᵉ for an lse that may be a rounded log-sum-exp of x: the sum of
// the exponentials is then 1 but for that rounding, and they are divided by it. A sum that is
// further from 1 has another reason, such as an lse of more logits than these. It returns what the
// lse of x is above lse.
func expScaleLarge(dx, x []float32, lse, dloss float32) float64 {
	sum := 0.
	for at := 0; at < len(x); at += lseStretch {
		end := min(at+lseStretch, len(x))
		sum += float64(vector.ExpSum(dx[at:end], x[at:end], lse))
	}
	above := 0.
	if math.Abs(sum-1) <= math.Abs(float64(lse))*0x1p-23 {
		above = math.Log(sum)
		dloss = float32(float64(dloss) / sum)
	}
	vector.Scale(dloss, dx, dx)
	return above
}

func fill(to []float32, v float32) {
	for i := range to {
		to[i] = v
	}
}
