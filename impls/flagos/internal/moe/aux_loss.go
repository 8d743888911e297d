package moe

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

type scoreFwd struct {
	router
	logits, scores, saved host.Matrix
	routes                host.Bytes
}

var scoreFwdKernel = parallel.NewKernel((*scoreFwd).part)

// scoreForward implements moe.FusedScoreForMoEAuxLossFwd. Scratch: the rows of some tokens per
// part.
func scoreForward(e *opregistry.Exec, a moe.FusedScoreForMoEAuxLossFwdArgs) error {
	var v host.Views
	c := scoreFwd{
		logits: v.Matrix("logits", a.Logits), scores: v.Matrix("scores", a.Scores), saved: v.Matrix("intermediate_output", a.IntermediateOutput),
		routes: v.Bytes("routing_map", a.RoutingMap),
	}
	if v.Err != nil {
		return v.Err
	}
	c.router = newRouter(e, c.logits.Rows, c.logits.Cols, a.Topk, a.ScoreFunction)
	scoreFwdKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *scoreFwd) part(part int) {
	lo, hi := c.Bounds(part)
	n := c.experts
	buf := c.exec.Scratch(choiceScratch(c.topk, n) + n)
	row, best := buf[:n], newChoice(c.topk, n, buf[n:])
	for ; lo < hi; lo += layers.Tokens {
		tokens := min(layers.Tokens, hi-lo)
		for t := lo; t < lo+tokens; t++ {
			x, s, saved := c.logits.Piece(t, 0, n, row), c.scores.Row(t), c.saved.Row(t)
			c.router.scores(s, x)
			if c.score == moe.SqrtSoftplusScore {
				copy(saved, x)
			} else {
				copy(saved, s)
			}
		}
		best.rank(c.scores.Data[lo*c.scores.Pitch:], c.scores.Pitch, tokens, n)
		for i := range tokens {
			s := c.scores.Row(lo + i)
			best.mark(c.routes.Piece(lo+i, 0, n), row, s, i, nil, n)
			if c.score != moe.SoftmaxScore && c.topk > 1 { // after the choice: a NaN makes all of them NaN
				vector.Scale(1/(vector.Sum(s)+epsilon), s, s)
			}
		}
	}
	c.exec.Release(buf)
}

type scoreBwd struct {
	router
	saved, grad, dx host.Matrix
}

var scoreBwdKernel = parallel.NewKernel((*scoreBwd).part)

// scoreBackward implements moe.FusedScoreForMoEAuxLossBwd. Scratch: two rows per part.
func scoreBackward(e *opregistry.Exec, a moe.FusedScoreForMoEAuxLossBwdArgs) error {
	var v host.Views
	c := scoreBwd{saved: v.Matrix("intermediate_output", a.IntermediateOutput), grad: v.Matrix("grad_scores", a.GradScores), dx: v.Matrix("grad_logits", a.GradLogits)}
	if v.Err != nil {
		return v.Err
	}
	c.router = newRouter(e, c.dx.Rows, c.dx.Cols, a.Topk, a.ScoreFunction)
	scoreBwdKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *scoreBwd) part(part int) {
	lo, hi := c.Bounds(part)
	c.gradients(lo, hi, &gradientOperands{dx: c.dx, grad: c.grad, saved: c.saved}, 1, true)
}

// tokensOf returns the tokens of each expert as numbers in scratch, which the caller releases.
func tokensOf(e *opregistry.Exec, v *host.Views, t *tensor.Tensor) []float32 {
	n := t.NumElements()
	out := e.Scratch(n)
	switch t.DType() {
	case tensor.I32, tensor.I64:
		if x := v.Indexes("tokens_per_expert", t); v.Err == nil {
			for i := range n {
				out[i] = float32(x.At(i))
			}
		}
	case tensor.F64, tensor.F32, tensor.BF16, tensor.F16:
		if x := v.Flat("tokens_per_expert", t); v.Err == nil {
			copy(out, x.Piece(0, 0, n, out))
		}
	default:
		v.Decline("dtype %v of tokens_per_expert, this impl serves integers and floats", t.DType())
	}
	return out
}

type auxLoss struct {
	host.Cut
	exec   *opregistry.Exec
	probs  host.Matrix
	tokens []float32
	sums   []float32 // of each part
}

var auxLossKernel = parallel.NewKernel((*auxLoss).part)

// auxLossForward implements moe.FusedMoEAuxLossFwd: sums of the parts are added up in order, in
// f64.
func auxLossForward(e *opregistry.Exec, a moe.FusedMoEAuxLossFwdArgs) error {
	var v host.Views
	c := auxLoss{exec: e, probs: v.Matrix("probs", a.Probs)}
	loss, constant := v.Flat("aux_loss", a.AuxLoss), v.Vector("const_buf", a.ConstBuf)
	c.tokens = tokensOf(e, &v, a.TokensPerExpert)
	defer e.Release(c.tokens)
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutAtMost(c.probs.Rows, c.probs.Cols, host.MaxSumParts)
	c.sums = e.Scratch(c.Parts)
	auxLossKernel.Run(e.Pool(), c.Parts, c)
	sum := 0.0
	for _, s := range c.sums {
		sum += float64(s)
	}
	e.Release(c.sums)
	n := float64(a.TotalNumTokens)
	factor := float64(a.NumExperts) * float64(a.Coeff) / (float64(a.Topk) * n * n)
	var out [1]float32
	out[0] = float32(factor * sum)
	loss.Put(0, 0, out[:])
	constant[0] = float32(factor)
	return nil
}

func (c *auxLoss) part(part int) {
	lo, hi := c.Bounds(part)
	sum := 0.0
	if !c.probs.Narrow() {
		var sums [256]float32
		for ; lo < hi; lo += len(sums) {
			s := sums[:min(len(sums), hi-lo)]
			vector.DotRows(s, c.tokens, c.probs.Data[lo*c.probs.Pitch:], c.probs.Pitch)
			sum += float64(vector.Sum(s))
		}
		c.sums[part] = float32(sum)
		return
	}
	buf := c.exec.Scratch(c.probs.Cols)
	for t := lo; t < hi; t++ {
		sum += float64(vector.Dot(c.tokens, c.probs.Piece(t, 0, c.probs.Cols, buf)))
	}
	c.sums[part] = float32(sum)
	c.exec.Release(buf)
}

type auxLossGrad struct {
	host.Cut
	dprobs host.Matrix
	row    []float32
}

var auxLossGradKernel = parallel.NewKernel((*auxLossGrad).part)

// auxLossBackward implements moe.FusedMoEAuxLossBwd: all rows are equal.
func auxLossBackward(e *opregistry.Exec, a moe.FusedMoEAuxLossBwdArgs) error {
	var v host.Views
	c := auxLossGrad{dprobs: v.Matrix("grad_probs", a.GradProbs)}
	constant, grad := v.Number("const_buf", a.ConstBuf), v.Flat("grad_aux_loss", a.GradAuxLoss)
	c.row = tokensOf(e, &v, a.TokensPerExpert)
	defer e.Release(c.row)
	if v.Err != nil {
		return v.Err
	}
	var g [1]float32
	vector.Scale(constant*grad.Piece(0, 0, 1, g[:])[0], c.row, c.row)
	c.Cut = host.CutItems(c.dprobs.Rows, c.dprobs.Cols)
	auxLossGradKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *auxLossGrad) part(part int) {
	lo, hi := c.Bounds(part)
	if lo < hi && len(c.row) > 0 && !c.dprobs.Narrow() && c.dprobs.Dense() {
		out := c.dprobs.Data[lo*c.dprobs.Pitch:][:(hi-lo)*len(c.row)]
		whole := max(copied/len(c.row), 1) * len(c.row)
		for done := copy(out, c.row); done < len(out); {
			done += copy(out[done:], out[:min(done, whole)])
		}
		return
	}
	for t := lo; t < hi; t++ {
		c.dprobs.Put(t, 0, c.row)
	}
}

// copied bounds the elements of short rows that are copied at a time, which stay in the first-level
// cache.
const copied = 2048
