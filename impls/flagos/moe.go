package flagos

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	gemmops "github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

// maxExperts bounds the experts that rows are sorted by.
const maxExperts = 1 << 16

func moeImpls() []opregistry.Impl {
	return []opregistry.Impl{
		impl(gemmops.TEGeneralGroupedGemm, groupedGemm),
		impl(moe.MoEPermuteFwd, moePermute),
		impl(moe.MoEPermuteBwd, moeUnpermute),
		impl(moe.MoEUnpermuteFwd, moeUnpermute),
		impl(moe.MoEUnpermuteBwd, moeUnpermuteBackward),
	}
}

// routes holds the rows of each token, by which parts are cut, and the weights of these rows.
type routes struct {
	cut
	rowOf        []int32
	prob         []float32 // nil for 1
	tokens, topk int
}

func (v *views) routes(rowIDMap, prob *tensor.Tensor, tokens, h int) routes {
	c := routes{rowOf: v.int32s("row_id_map", rowIDMap), tokens: tokens, topk: rowIDMap.NumElements() / max(tokens, 1)}
	if prob != nil {
		c.prob = v.vector("prob", prob)
	}
	c.cut = cutItems(tokens, h*max(c.topk, 1))
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
	in, out matrix
}

var permuteKernel = parallel.NewKernel((*permute).part)

// moePermute implements moe.MoEPermuteFwd for contiguous indices of experts from 0 to maxExperts.
// Scratch: one number per expert.
func moePermute(e *opregistry.Exec, a moe.MoEPermuteFwdArgs) error {
	var v views
	c := permute{in: v.matrix("input", a.Input), out: v.matrix("output", a.Output)}
	c.routes = v.routes(a.RowIDMap, nil, a.Input.Shape()[0], a.Input.Shape()[1])
	experts := v.int32s("indices", a.Indices)
	last := int32(-1)
	for _, expert := range experts {
		if expert < 0 || expert >= maxExperts {
			v.decline("expert %d, this impl serves those from 0 to %d", expert, maxExperts-1)
		}
		last = max(last, expert)
	}
	if v.err != nil {
		return v.err
	}
	scratch := e.Scratch(int(last) + 1)
	next := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(scratch))), len(scratch))
	c.sort(experts, next)
	e.Release(scratch)
	permuteKernel.Run(e.Pool(), c.parts, c)
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
		if int(row) >= c.out.rows {
			row = -1
		}
		c.rowOf[i%c.topk*c.tokens+i/c.topk] = row
	}
}

func (c *permute) part(part int) {
	lo, hi := c.bounds(part)
	for t := lo; t < hi; t++ {
		for k := range c.topk {
			if r := c.row(t, k); r >= 0 {
				c.out.take(r, &c.in, t)
			}
		}
	}
}

type unpermute struct {
	routes
	exec    *opregistry.Exec
	in, out matrix
}

var unpermuteKernel = parallel.NewKernel((*unpermute).part)

// moeUnpermute implements moe.MoEUnpermuteFwd and moe.MoEPermuteBwd; the terms of a
// token are added in ascending order of its choices.
func moeUnpermute(e *opregistry.Exec, a moe.MoEUnpermuteArgs) error {
	var v views
	c := unpermute{exec: e, in: v.matrix("input", a.Input), out: v.matrix("output", a.Output)}
	c.routes = v.routes(a.RowIDMap, a.Prob, a.Output.Shape()[0], a.Output.Shape()[1])
	if v.err != nil {
		return v.err
	}
	unpermuteKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (c *unpermute) part(part int) {
	lo, hi := c.bounds(part)
	h := c.out.cols
	buf := c.exec.Scratch(2 * h)
	for t := lo; t < hi; t++ {
		out := c.out.place(t, 0, h, buf[h:])
		clear(out)
		for k := range c.topk {
			if r := c.row(t, k); r >= 0 {
				vector.Axpy(c.weight(t, k), c.in.piece(r, 0, h, buf), out)
			}
		}
		c.out.settle(t, 0, out)
	}
	c.exec.Release(buf)
}

type unpermuteGrad struct {
	routes
	exec      *opregistry.Exec
	dy, x, dx matrix
	dprob     []float32 // nil without prob
}

var unpermuteGradKernel = parallel.NewKernel((*unpermuteGrad).part)

// moeUnpermuteBackward implements moe.MoEUnpermuteBwd.
func moeUnpermuteBackward(e *opregistry.Exec, a moe.MoEUnpermuteBwdArgs) error {
	var v views
	c := unpermuteGrad{exec: e, dy: v.matrix("input_bwd", a.InputBwd), x: v.matrix("input_fwd", a.InputFwd), dx: v.matrix("act_grad", a.ActGrad)}
	c.routes = v.routes(a.RowIDMap, a.Prob, a.InputBwd.Shape()[0], a.InputBwd.Shape()[1])
	if a.ProbGrad != nil {
		c.dprob = v.vector("prob_grad", a.ProbGrad)
	}
	if v.err != nil {
		return v.err
	}
	named := 0
	for _, r := range c.rowOf {
		if r >= 0 {
			named++
		}
	}
	if named < c.dx.rows {
		for r := range c.dx.rows {
			c.dx.zero(r)
		}
	}
	unpermuteGradKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (c *unpermuteGrad) part(part int) {
	lo, hi := c.bounds(part)
	h := c.dy.cols
	buf := c.exec.Scratch(2 * h)
	for t := lo; t < hi; t++ {
		dy := c.dy.piece(t, 0, h, buf[h:])
		for k := range c.topk {
			dprob := float32(0)
			if r := c.row(t, k); r >= 0 {
				dprob = vector.Dot(dy, c.x.piece(r, 0, h, buf))
				dx := c.dx.place(r, 0, h, buf)
				vector.Scale(c.weight(t, k), dx, dy)
				c.dx.settle(r, 0, dx)
			}
			if c.dprob != nil {
				c.dprob[t*c.topk+k] = dprob
			}
		}
	}
	c.exec.Release(buf)
}
