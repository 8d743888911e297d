package moe

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
)

// epsilon keeps the sums of scores from being 0.
const epsilon = 1e-20

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
	sum := vector.ExpSum(s, x, m)
	if !math.IsInf(float64(m), 0) {
		vector.Scale(1/sum, s, s)
	}
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

// best keeps the indexes of the largest numbers in descending order; of equal ones the first comes
// first, and NaN comes last.
type best struct {
	keys    []int32 // of the numbers
	indexes []int32
	n       int
}

// newBest returns room for k numbers in memory of 2·k elements.
func newBest(k int, memory []float32) best {
	ints := host.ScratchInts(memory)
	return best{keys: ints[:k], indexes: ints[k : 2*k]}
}

// keyOf returns an integer that orders numbers as best does.
func keyOf(v float32) int32 {
	if v != v {
		return math.MinInt32
	}
	u := int32(math.Float32bits(v + 0)) // no −0
	return u ^ u>>31&math.MaxInt32
}

// add considers the numbers with indexes from first on.
func (b *best) add(values []float32, first int) {
	k := len(b.keys)
	for i, v := range values {
		key := keyOf(v)
		at := b.n
		if at == k {
			if key <= b.keys[k-1] {
				continue
			}
			at--
		} else {
			b.n++
		}
		for ; at > 0 && b.keys[at-1] < key; at-- {
			b.keys[at], b.indexes[at] = b.keys[at-1], b.indexes[at-1]
		}
		b.keys[at], b.indexes[at] = key, int32(first+i)
	}
}

// chosen is the memory for the choice of a token.
type chosen struct {
	experts best
	within  best // of one group, and then of the groups
	groups  best
	worth   []float32
	weights []float32
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

// topkForward implements moe.FusedTopkWithScoreFunctionFwd. Scratch: some rows per part.
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
	buf := c.exec.Scratch(4*n + 5*k + 3*max(c.groups, 1))
	x, s, value, probs := buf[:n], buf[n:][:n], buf[2*n:][:n], buf[3*n:][:n]
	rest := buf[4*n:]
	m := chosen{experts: newBest(k, rest), weights: rest[2*k:][:k]}
	if c.groupTopk > 0 {
		m.within = newBest(k/c.groupTopk, rest[3*k:])
		m.groups, m.worth = newBest(c.groupTopk, rest[5*k:]), rest[5*k+2*c.groupTopk:][:c.groups]
	}
	for t := lo; t < hi; t++ {
		row := c.logits.Piece(t, 0, n, x)
		score := row
		if c.score != moe.SoftmaxScore || c.pre {
			score = s
			c.scores(s, row)
		}
		ranked := score
		if c.bias != nil {
			ranked = value
			vector.Add(value, score, c.bias)
		}
		c.choose(&m, ranked)
		c.weigh(m.weights, score, m.experts.indexes)
		p := c.probs.Place(t, 0, n, probs)
		routes := c.routes.Piece(t, 0, n)
		clear(p)
		clear(routes)
		for i, e := range m.experts.indexes {
			p[e], routes[e] = c.scale*m.weights[i], 1
		}
		c.probs.Settle(t, 0, p)
		c.save(c.saved.Row(t), row, score, &m)
	}
	c.exec.Release(buf)
}

// choose finds the experts of a token.
func (c *topkFwd) choose(m *chosen, value []float32) {
	m.experts.n = 0
	if c.groupTopk == 0 {
		m.experts.add(value, 0)
		return
	}
	size := c.experts / c.groups
	for g := range m.worth {
		m.within.n = 0
		m.within.add(value[g*size:][:size], g*size)
		worth := 0.0
		for _, e := range m.within.indexes {
			worth += float64(value[e])
		}
		m.worth[g] = float32(worth)
	}
	m.groups.n = 0
	m.groups.add(m.worth, 0)
	for _, g := range m.groups.sorted() {
		m.experts.add(value[int(g)*size:][:size], int(g)*size)
	}
}

// sorted returns the indexes in ascending order.
func (b *best) sorted() []int32 {
	x := b.indexes[:b.n]
	for i := range x {
		for at := i; at > 0 && x[at-1] > x[at]; at-- {
			x[at-1], x[at] = x[at], x[at-1]
		}
	}
	return x
}

// weigh stores p of the chosen experts.
func (c *topkFwd) weigh(p, score []float32, experts []int32) {
	sum := float32(epsilon)
	for i, e := range experts {
		p[i] = score[e]
		sum += p[i]
	}
	switch {
	case c.score == moe.SoftmaxScore && !c.pre:
		softmax(p, p)
	case c.score != moe.SoftmaxScore && len(experts) > 1:
		for i := range p {
			p[i] /= sum
		}
	}
}

// save stores what the gradient needs.
func (c *topkFwd) save(saved, logits, score []float32, m *chosen) {
	switch {
	case c.score == moe.SqrtSoftplusScore:
		copy(saved, logits)
	case c.score == moe.SoftmaxScore && !c.pre:
		for i := range saved {
			saved[i] = float32(math.Inf(-1))
		}
		for i, e := range m.experts.indexes {
			saved[e] = m.weights[i]
		}
	default:
		copy(saved, score)
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

// topkBackward implements moe.FusedTopkWithScoreFunctionBwd. Scratch: three rows per part.
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
	n := c.experts
	buf := c.exec.Scratch(5 * n)
	grads, dxs := buf[:n], buf[n:][:n]
	g, s := buf[2*n:][:n], buf[3*n:][:n]
	index := host.ScratchInts(buf[4*n:][:n])
	for t := lo; t < hi; t++ {
		grad, saved := c.grad.Piece(t, 0, n, grads), c.saved.Row(t)
		count := 0
		for e, taken := range c.routes.Piece(t, 0, n) {
			if taken != 0 {
				index[count], g[count], s[count] = int32(e), c.scale*grad[e], saved[e]
				count++
			}
		}
		dx := c.dx.Place(t, 0, n, dxs)
		chosen := g[:count]
		product := c.gradient(chosen, s[:count])
		if c.all {
			vector.Scale(-product, dx, saved)
		} else {
			clear(dx)
		}
		for i, e := range index[:count] {
			dx[e] = chosen[i]
		}
		c.dx.Settle(t, 0, dx)
	}
	c.exec.Release(buf)
}

// gradient replaces the gradients of the weights of experts by those of their logits, given what
// the forward op has saved of them, and returns Σ s·g of softmax.
func (c *router) gradient(g, saved []float32) (product float32) {
	if c.score == moe.SoftmaxScore {
		product = vector.Dot(saved, g)
		vector.MulSub(g, saved, g, product)
		return product
	}
	sum, weighted := epsilon, 0.0
	for i, v := range saved {
		if c.score == moe.SqrtSoftplusScore {
			v = sqrtSoftplus(v)
		}
		sum += float64(v)
		weighted += float64(v) * float64(g[i])
	}
	inverse, factor := 1/sum, weighted/(sum*sum)
	if c.topk == 1 {
		inverse, factor = 1, 0
	}
	for i, v := range saved {
		ds := float64(g[i])*inverse - factor
		if c.score == moe.SigmoidScore {
			g[i] = float32(ds * float64(v) * (1 - float64(v)))
		} else {
			g[i] = float32(ds / (1 + math.Exp(-float64(v))) / (2*float64(sqrtSoftplus(v)) + epsilon))
		}
	}
	return 0
}
