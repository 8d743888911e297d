package moe

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
)

// epsilon keeps the sums of scores from being 0.
const epsilon = layers.ScoreEpsilon

// router holds what the ops of a router share; parts are cut by tokens.
type router struct {
	host.Cut
	exec    *opregistry.Exec
	experts int
	topk    int
	score   moe.ScoreFunction
}

func newRouter(e *opregistry.Exec, tokens, experts, topk int, score moe.ScoreFunction) router {
	return router{Cut: host.CutItems(tokens, routerCost*experts), exec: e, experts: experts, topk: topk, score: score}
}

// routerCost is the work for a score in the units of host.CutItems.
const routerCost = 4

// softmax stores the softmax of x.
func softmax(s, x []float32) {
	m := vector.Max(x)
	if math.IsInf(float64(m), 0) {
		for i := range s {
			s[i] = float32(math.NaN())
		}
		return
	}
	sum := vector.ExpSum(s, x, m)
	vector.Scale(1/sum, s, s)
}

// scores stores a score function of the logits of a token.
func (c *router) scores(s, x []float32) {
	switch c.score {
	case moe.SoftmaxScore:
		softmax(s, x)
	case moe.SigmoidScore:
		vector.Sigmoid(s, x)
	default:
		for i, v := range x {
			s[i] = sqrtSoftplus(v)
		}
	}
}

// sqrtSoftplus returns √ln(1 + eˣ).
func sqrtSoftplus(x float32) float32 {
	v := float64(x)
	return float32(math.Sqrt(max(v, 0) + math.Log1p(math.Exp(-math.Abs(v)))))
}

type topkFwd struct {
	router
	logits, probs, saved host.Matrix
	routes               host.Bytes
	bias                 []float32 // nil without
	pre                  bool
	groups, groupTopk    int
	scale                float32
}

var topkFwdKernel = parallel.NewKernel((*topkFwd).part)

// topkForward implements moe.FusedTopkWithScoreFunctionFwd. Scratch: the rows of some tokens per
// part.
func topkForward(e *opregistry.Exec, a moe.FusedTopkWithScoreFunctionFwdArgs) error {
	var v host.Views
	c := topkFwd{
		logits: v.Matrix("logits", a.Logits), probs: v.Matrix("probs", a.Probs), saved: v.Matrix("intermediate_output", a.IntermediateOutput),
		routes: v.Bytes("routing_map", a.RoutingMap), pre: a.UsePreSoftmax, groups: a.NumGroups, groupTopk: a.GroupTopk,
		scale: a.ScalingFactor.Or(1),
	}
	if a.ExpertBias != nil {
		bias := v.Flat("expert_bias", a.ExpertBias)
		if v.Err == nil {
			c.bias = e.Scratch(bias.Cols)
			defer e.Release(c.bias)
			copy(c.bias, bias.Piece(0, 0, bias.Cols, c.bias))
		}
	}
	if v.Err != nil {
		return v.Err
	}
	c.router = newRouter(e, c.logits.Rows, c.logits.Cols, a.Topk, a.ScoreFunction)
	topkFwdKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *topkFwd) part(part int) {
	lo, hi := c.Bounds(part)
	n, k := c.experts, c.topk
	memory, size := choiceScratch(k, n)+2*layers.Tokens*n+2*n, n
	if c.groupTopk > 0 {
		size = n / c.groups
		memory += groupScratch(k/c.groupTopk, c.groupTopk, c.groups, size)
	}
	buf := c.exec.Scratch(memory)
	scores, ranked := buf[:layers.Tokens*n], buf[layers.Tokens*n:][:layers.Tokens*n]
	rest := buf[2*layers.Tokens*n:]
	probs, kept := rest[:n], rest[n:][:n]
	experts := newChoice(k, n, rest[2*n:])
	var groups groupChoice
	if c.groupTopk > 0 {
		groups = newGroupChoice(k/c.groupTopk, c.groupTopk, c.groups, size, rest[2*n+choiceScratch(k, n):])
	}
	for ; lo < hi; lo += layers.Tokens {
		tokens := min(layers.Tokens, hi-lo)
		for i := range tokens {
			value := ranked[i*n:][:n]
			x := c.logits.Piece(lo+i, 0, n, kept)
			score := c.scored(lo+i, x, scores[i*n:][:n])
			if c.bias != nil {
				vector.Add(value, score, c.bias)
			} else {
				copy(value, score)
			}
			// Scores of different logits may be equal by rounding.
			byLogits := c.bias == nil && !(c.score == moe.SoftmaxScore && score[0] != score[0])
			switch {
			case c.groupTopk > 0:
				groups.choose(i, value)
				if byLogits {
					for _, g := range groups.of(i) {
						first := int(g) * size
						copy(value[first:first+size], x[first:])
					}
				}
			case byLogits:
				copy(value, x)
			}
		}
		experts.rank(ranked, n, tokens, n)
		if c.score == moe.SoftmaxScore && !c.pre {
			experts.exponentials()
		}
		for i := range tokens {
			t, value := lo+i, ranked[i*n:][:n]
			routes, saved := c.routes.Piece(t, 0, n), c.saved.Row(t)
			var considered []int32
			if c.groupTopk > 0 {
				considered = groups.of(i)
			}
			p := c.probs.Place(t, 0, n, probs)
			switch {
			case c.score == moe.SoftmaxScore && !c.pre:
				sorted := experts.mark(routes, saved, value, i, considered, size)
				experts.softmax(p, saved, i, sorted)
				c.finish(p, saved, routes)
			case c.score == moe.SqrtSoftplusScore:
				experts.mark(routes, kept, value, i, considered, size)
				c.weigh(p, scores[i*n:][:n], routes)
			default:
				experts.mark(routes, kept, value, i, considered, size)
				c.weigh(p, saved, routes)
			}
			c.probs.Settle(t, 0, p)
		}
	}
	c.exec.Release(buf)
}

// scored returns the scores of the logits x of a token, and saves what the gradient needs, but for
// softmax over the chosen experts. It uses s for scores that are not saved.
func (c *topkFwd) scored(token int, x, s []float32) []float32 {
	saved := c.saved.Row(token)
	switch {
	case c.score == moe.SqrtSoftplusScore:
		copy(saved, x)
	case c.score == moe.SoftmaxScore && !c.pre:
		return x
	default:
		s = saved
	}
	c.scores(s, x)
	return s
}

// finish stores the softmax p of the chosen experts, and replaces it by scale·p.
func (c *topkFwd) finish(p, saved []float32, routes []byte) {
	layers.Select(saved, p, routes, float32(math.Inf(-1)))
	if c.scale != 1 {
		vector.Scale(c.scale, p, p)
	}
	if p[0] != p[0] { // NaN is that of the chosen experts alone
		layers.Select(p, p, routes, 0)
	}
}

// weigh stores scale·p of the chosen experts.
func (c *topkFwd) weigh(p, score []float32, routes []byte) {
	layers.Select(p, score, routes, 0)
	factor := c.scale
	if c.score != moe.SoftmaxScore && c.topk > 1 {
		factor /= vector.Sum(p) + epsilon
	}
	if factor == 1 {
		return
	}
	vector.Scale(factor, p, p)
	if !(factor > 0 && factor <= math.MaxFloat32) { // which leave no zeros
		layers.Select(p, p, routes, 0)
	}
}

type topkBwd struct {
	router
	grad, dx host.Matrix
	saved    host.Matrix
	routes   host.Bytes
	all      bool // softmax ran over all experts
	scale    float32
}

var topkBwdKernel = parallel.NewKernel((*topkBwd).part)

// topkBackward implements moe.FusedTopkWithScoreFunctionBwd. Scratch: two rows per part.
func topkBackward(e *opregistry.Exec, a moe.FusedTopkWithScoreFunctionBwdArgs) error {
	var v host.Views
	c := topkBwd{
		grad: v.Matrix("grad_probs", a.GradProbs), dx: v.Matrix("grad_logits", a.GradLogits), saved: v.Matrix("intermediate_output", a.IntermediateOutput),
		routes: v.Bytes("routing_map", a.RoutingMap), all: a.ScoreFunction == moe.SoftmaxScore && a.UsePreSoftmax, scale: a.ScalingFactor.Or(1),
	}
	if v.Err != nil {
		return v.Err
	}
	c.router = newRouter(e, c.grad.Rows, c.grad.Cols, a.Topk, a.ScoreFunction)
	topkBwdKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *topkBwd) part(part int) {
	lo, hi := c.Bounds(part)
	c.gradients(lo, hi, &gradientOperands{c.dx, c.grad, c.saved, c.routes}, c.scale, c.all)
}

// gradientOperands are those of a gradient; routes has no rows where all experts count.
type gradientOperands struct {
	dx, grad, saved host.Matrix
	routes          host.Bytes
}

// gradients stores the gradients of the logits of the tokens [lo, hi), given what the forward op
// has saved of them. Where all is true, softmax ran over all experts.
func (c *router) gradients(lo, hi int, o *gradientOperands, scale float32, all bool) {
	n := c.experts
	if lo == hi || n == 0 {
		return
	}
	block := hi - lo // tokens at a time
	if o.dx.Narrow() || c.score == moe.SqrtSoftplusScore {
		block = 1
	}
	buf := c.exec.Scratch(2 * n)
	for t := lo; t < hi; t += block {
		r := layers.RouterRows{Count: block, Cols: n, DX: o.dx.Pitch, Saved: o.saved.Pitch, Grad: o.grad.Pitch, Chosen: o.routes.Pitch}
		var chosen []byte
		if o.routes.Rows > 0 {
			chosen = o.routes.Data[t*o.routes.Pitch:]
		}
		g, dx := o.grad.Piece(t, 0, n, buf), o.dx.Place(t, 0, n, buf[n:])
		s := o.saved.Data[t*o.saved.Pitch:]
		if block > 1 {
			g, dx = o.grad.Data[t*o.grad.Pitch:], o.dx.Data[t*o.dx.Pitch:]
		}
		switch c.score {
		case moe.SoftmaxScore:
			layers.SoftmaxGradient(r, dx, s, g, chosen, scale, all)
		case moe.SigmoidScore:
			layers.SigmoidGradient(r, dx, s, g, chosen, scale, c.topk == 1)
		default:
			sqrtSoftplusGradient(dx, s, g, chosen, scale, c.topk == 1)
		}
		o.dx.Settle(t, 0, dx)
	}
	c.exec.Release(buf)
}

// sqrtSoftplusGradient is layers.SigmoidGradient for logits x of scores √ln(1 + eˣ), for one token.
func sqrtSoftplusGradient(dx, x, g []float32, chosen []byte, scale float32, plain bool) {
	inverse, mean := 1.0, 0.0
	if !plain {
		sum, product := epsilon, 0.0
		for i := range dx {
			if chosen == nil || chosen[i] != 0 {
				s := float64(sqrtSoftplus(x[i]))
				sum += s
				product += s * float64(g[i])
			}
		}
		inverse, mean = 1/sum, product/sum
	}
	for i := range dx {
		d := 0.0
		if chosen == nil || chosen[i] != 0 {
			d = float64(scale) * inverse * (float64(g[i]) - mean) / (1 + math.Exp(-float64(x[i]))) / (2*float64(sqrtSoftplus(x[i])) + epsilon)
		}
		dx[i] = float32(d)
	}
}
