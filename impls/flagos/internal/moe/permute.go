package moe

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

// maxExperts bounds the experts that rows are sorted by.
const maxExperts = 1 << 16

// Impls returns the impls of the family.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(moe.MoEPermuteFwd, moePermute),
		host.Impl(moe.MoEPermuteBwd, moeUnpermute),
		host.Impl(moe.MoEUnpermuteFwd, moeUnpermute),
		host.Impl(moe.MoEUnpermuteBwd, moeUnpermuteBackward),
		host.Impl(moe.MoEPermuteWithRoutingMap, permuteByMap),
		host.Impl(moe.MoEUnpermuteWithRoutingMap, unpermuteByMap),
		host.Impl(moe.MoESortChunksFwd, sortChunks),
		host.Impl(moe.MoESortChunksBwd, unsortChunks),
		host.Impl(moe.FusedMultiRowPadding, copyGroups),
		host.Impl(moe.FusedMultiRowUnpadding, copyGroups),
		host.Impl(moe.FusedTopkWithScoreFunctionFwd, topkForward),
		host.Impl(moe.FusedTopkWithScoreFunctionBwd, topkBackward),
		host.Impl(moe.FusedScoreForMoEAuxLossFwd, scoreForward),
		host.Impl(moe.FusedScoreForMoEAuxLossBwd, scoreBackward),
		host.Impl(moe.FusedMoEAuxLossFwd, auxLossForward),
		host.Impl(moe.FusedMoEAuxLossBwd, auxLossBackward),
	}
}

// routes holds the rows of each token, by which parts are cut, and the weights of these rows.
type routes struct {
	host.Cut
	rowOf        []int32
	prob         []float32 // nil for 1
	tokens, topk int
}

func routesOf(v *host.Views, rowIDMap, prob *tensor.Tensor, tokens, h int) routes {
	c := routes{rowOf: v.Int32s("row_id_map", rowIDMap), tokens: tokens, topk: rowIDMap.NumElements() / max(tokens, 1)}
	if prob != nil {
		c.prob = v.Vector("prob", prob)
	}
	c.Cut = host.CutItems(tokens, h*max(c.topk, 1))
	return c
}

// row returns the row of a choice of a token; it is negative when there is none.
func (c *routes) row(token, choice int) int { return int(c.rowOf[choice*c.tokens+token]) }

func (c *routes) weight(token, choice int) float32 {
	if c.prob == nil {
		return 1
	}
	return c.prob[token*c.topk+choice]
}

type permute struct {
	routes
	in, out host.Matrix
}

var permuteKernel = parallel.NewKernel((*permute).part)

// moePermute implements moe.MoEPermuteFwd for contiguous indices of experts from 0 to maxExperts.
// Scratch: one number per expert.
func moePermute(e *opregistry.Exec, a moe.MoEPermuteFwdArgs) error {
	var v host.Views
	c := permute{in: v.Matrix("input", a.Input), out: v.Matrix("output", a.Output)}
	c.routes = routesOf(&v, a.RowIDMap, nil, a.Input.Shape()[0], a.Input.Shape()[1])
	experts := v.Int32s("indices", a.Indices)
	last := int32(-1)
	for _, expert := range experts {
		if expert < 0 || expert >= maxExperts {
			v.Decline("expert %d, this impl serves those from 0 to %d", expert, maxExperts-1)
		}
		last = max(last, expert)
	}
	if v.Err != nil {
		return v.Err
	}
	scratch := e.Scratch(int(last) + 1)
	c.sort(experts, host.ScratchInts(scratch))
	e.Release(scratch)
	permuteKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

// sort fills the map of rows; next must have one element per expert.
func (c *permute) sort(experts, next []int32) {
	clear(next)
	for _, expert := range experts {
		next[expert]++
	}
	first := int32(0)
	for i, n := range next {
		next[i] = first
		first += n
	}
	for i, expert := range experts {
		row := next[expert]
		next[expert]++
		if int(row) >= c.out.Rows {
			row = -1
		}
		c.rowOf[i%c.topk*c.tokens+i/c.topk] = row
	}
}

func (c *permute) part(part int) {
	lo, hi := c.Bounds(part)
	for t := lo; t < hi; t++ {
		for k := range c.topk {
			if r := c.row(t, k); r >= 0 {
				c.out.Take(r, &c.in, t)
			}
		}
	}
}

type unpermute struct {
	routes
	exec    *opregistry.Exec
	in, out host.Matrix
}

var unpermuteKernel = parallel.NewKernel((*unpermute).part)

// moeUnpermute implements moe.MoEUnpermuteFwd and moe.MoEPermuteBwd; the terms of a
// token are added in ascending order of its choices.
func moeUnpermute(e *opregistry.Exec, a moe.MoEUnpermuteArgs) error {
	var v host.Views
	c := unpermute{exec: e, in: v.Matrix("input", a.Input), out: v.Matrix("output", a.Output)}
	c.routes = routesOf(&v, a.RowIDMap, a.Prob, a.Output.Shape()[0], a.Output.Shape()[1])
	if v.Err != nil {
		return v.Err
	}
	unpermuteKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *unpermute) part(part int) {
	lo, hi := c.Bounds(part)
	if !c.in.Narrow() {
		c.sum(lo, hi)
		return
	}
	h := c.out.Cols
	buf := c.exec.Scratch(2 * h)
	for t := lo; t < hi; t++ {
		out, empty := buf[h:], true
		for k := range c.topk {
			switch r := c.row(t, k); {
			case r < 0:
			case empty:
				vector.Scale(c.weight(t, k), out, c.in.Piece(r, 0, h, buf))
				empty = false
			default:
				vector.Axpy(c.weight(t, k), c.in.Piece(r, 0, h, buf), out)
			}
		}
		if empty {
			clear(out)
		}
		c.out.Put(t, 0, out)
	}
	c.exec.Release(buf)
}

// sum adds up rows of f32 for the tokens [lo, hi).
func (c *unpermute) sum(lo, hi int) {
	k := c.topk
	buf := c.exec.Scratch(2*k + 1)
	rows, w, one := host.ScratchInts(buf[:k]), buf[k:][:k], buf[2*k:]
	one[0] = 1
	for t := lo; t < hi; t++ {
		n, weights := c.rowsOf(rows, w, t), one
		if c.prob != nil {
			weights = w[:n]
		}
		vector.SumRows(c.out.Row(t), weights, c.in.Data, c.in.Pitch, rows[:n])
	}
	c.exec.Release(buf)
}

// rowsOf stores the rows of a token and their weights, and returns their number.
func (c *routes) rowsOf(rows []int32, w []float32, token int) int {
	n := 0
	for k := range c.topk {
		if r := c.row(token, k); r >= 0 {
			rows[n], w[n] = int32(r), c.weight(token, k)
			n++
		}
	}
	return n
}

type unpermuteGrad struct {
	routes
	exec      *opregistry.Exec
	dy, x, dx host.Matrix
	dprob     []float32 // nil without prob
}

var unpermuteGradKernel = parallel.NewKernel((*unpermuteGrad).part)

// moeUnpermuteBackward implements moe.MoEUnpermuteBwd.
func moeUnpermuteBackward(e *opregistry.Exec, a moe.MoEUnpermuteBwdArgs) error {
	var v host.Views
	c := unpermuteGrad{exec: e, dy: v.Matrix("input_bwd", a.InputBwd), x: v.Matrix("input_fwd", a.InputFwd), dx: v.Matrix("act_grad", a.ActGrad)}
	c.routes = routesOf(&v, a.RowIDMap, a.Prob, a.InputBwd.Shape()[0], a.InputBwd.Shape()[1])
	if a.ProbGrad != nil {
		c.dprob = v.Vector("prob_grad", a.ProbGrad)
	}
	if v.Err != nil {
		return v.Err
	}
	named := 0
	for _, r := range c.rowOf {
		if r >= 0 {
			named++
		}
	}
	if named < c.dx.Rows {
		for r := range c.dx.Rows {
			c.dx.Zero(r)
		}
	}
	unpermuteGradKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *unpermuteGrad) part(part int) {
	lo, hi := c.Bounds(part)
	h := c.dy.Cols
	buf := c.exec.Scratch(2 * h)
	for t := lo; t < hi; t++ {
		dy := c.dy.Piece(t, 0, h, buf[h:])
		for k := range c.topk {
			dprob := float32(0)
			if r := c.row(t, k); r >= 0 {
				dprob = vector.Dot(dy, c.x.Piece(r, 0, h, buf))
				dx := c.dx.Place(r, 0, h, buf)
				vector.Scale(c.weight(t, k), dx, dy)
				c.dx.Settle(r, 0, dx)
			}
			if c.dprob != nil {
				c.dprob[t*c.topk+k] = dprob
			}
		}
	}
	c.exec.Release(buf)
}
