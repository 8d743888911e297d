package model

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// experts is a mixture of SwiGLU experts: each token goes to the topk that the router scores best,
// whose outputs are added up by weight. R is T·topk, the rows of all experts, one expert after the
// other.
type experts struct {
	router    Linear
	wide      *wide    // of the router; nil without
	balance   *balance // nil without an auxiliary loss
	num, topk int
	pre       bool // moe_router_pre_softmax

	logits, probs *tensor.Tensor // [T experts]
	state         *tensor.Tensor // [T experts], saved by the choice for its gradient
	chosen        *tensor.Tensor // bool [T experts]
	indices       *tensor.Tensor // i32 [T topk]: the chosen, in ascending order
	weights       *tensor.Tensor // [T topk]: their probs
	counts        *tensor.Tensor // i32 [experts]: tokens of each
	rowOf         *tensor.Tensor // i32 [R]
	in            *tensor.Tensor // [R h]
	out           *tensor.Tensor // [R h]

	dLogits, dProbs *tensor.Tensor // [T experts]
	dWeights        *tensor.Tensor // [T topk]
	dOut, dIn       *tensor.Tensor // [R h]
	dHidden         *tensor.Tensor // [T h], by way of the router
	dRouted         *tensor.Tensor // dHidden in f32, which it is where activations are f32

	work    Work
	routes  *Routes     // nil where this rank has all experts
	buffers WorkBuffers // of work, with routes

	up, down                  grouped
	savedChoice, savedPermute *opregistry.Saved
	choose                    *opmanager.Bound[moe.FusedTopkWithScoreFunctionFwdArgs]
	chooseBwd                 *opmanager.Bound[moe.FusedTopkWithScoreFunctionBwdArgs]
	permute                   *opmanager.Bound[moe.MoEPermuteFwdArgs]
	permuteBwd, unpermute     *opmanager.Bound[moe.MoEUnpermuteArgs]
	unpermuteBwd              *opmanager.Bound[moe.MoEUnpermuteBwdArgs]
	swiglu                    *opmanager.Bound[activation.SwiGLUArgs]
	dSwiglu                   *opmanager.Bound[activation.DSwiGLUArgs]
	addBwd                    *opmanager.Bound[norm.ResidualAddArgs]
}

func (b *Builder) experts(w ExpertWeights) *experts {
	defer b.during(architecture.RecomputeExperts)()
	t, h, f, n, k := b.mlpRows(), b.Config.HiddenSize, b.Config.ExpertSize(), b.Config.NumExperts, b.Config.Topk()
	e := &experts{
		router: b.Linear(w.Router), wide: b.wide, num: n, topk: k, pre: b.Config.PreSoftmax,
		logits: b.Keep.F32(t, n), probs: b.Keep.F32(t, n), state: b.Keep.F32(t, n), chosen: b.Keep.New(tensor.Bool, t, n),
		indices: b.Keep.New(tensor.I32, t, k), weights: b.Keep.F32(t, k), counts: b.Keep.New(tensor.I32, n), rowOf: b.Keep.New(tensor.I32, t*k),
		in: b.Act(t*k, h), out: b.Act(t*k, h),
		dLogits: b.Spare.F32(t, n), dProbs: b.Spare.F32(t, n), dWeights: b.Spare.F32(t, k),
		dOut: b.scratch(t*k, h), dIn: b.scratch(t*k, h), dHidden: b.scratch(t, h),
		up: b.grouped(w.Up, w.Num), down: b.grouped(w.Down, w.Num), savedChoice: saved(), savedPermute: saved(),
		choose: opmanager.MustBind(b.Fwd, moe.FusedTopkWithScoreFunctionFwd), chooseBwd: opmanager.MustBind(b.Bwd, moe.FusedTopkWithScoreFunctionBwd),
		permute: opmanager.MustBind(b.Fwd, moe.MoEPermuteFwd), permuteBwd: opmanager.MustBind(b.Bwd, moe.MoEPermuteBwd),
		unpermute: opmanager.MustBind(b.Fwd, moe.MoEUnpermuteFwd), unpermuteBwd: opmanager.MustBind(b.Bwd, moe.MoEUnpermuteBwd),
		swiglu: opmanager.MustBind(b.Fwd, activation.SwiGLU), dSwiglu: opmanager.MustBind(b.Bwd, activation.DSwiGLU),
		addBwd: opmanager.MustBind(b.Bwd, norm.ResidualAdd),
	}
	if b.Part.Experts != nil {
		e.routes, e.buffers = NewRoutes(b.Part.Experts, n, h, b.Config.Compute()), WorkBuffers{Scratch: b.RowBuffers}
	} else {
		e.work = Work{
			In: e.in, Out: e.out, GateUp: b.Act(t*k, 2*f), Act: b.Act(t*k, f), DOut: e.dOut, DIn: e.dIn, DAct: b.scratch(t*k, f),
		}
	}
	e.dRouted = e.dHidden
	if e.wide != nil {
		e.dRouted = b.Spare.F32(t, h)
	}
	if b.Part.Sequence {
		e.router.sum = b.vectorGrad(w.Router.Weight).over(b.Part.Tensor)
	}
	if b.Config.Balanced() {
		e.balance = b.balance()
	}
	return e
}

func (e *experts) Forward(r *Run, x, y *tensor.Tensor) {
	e.router.Forward(r, e.wide.widen(r, x), e.logits)
	Call(r, e.choose, moe.FusedTopkWithScoreFunctionFwdArgs{
		Logits: e.logits, Topk: e.topk, UsePreSoftmax: e.pre, ScoreFunction: moe.SoftmaxScore,
		Probs: e.probs, RoutingMap: e.chosen, IntermediateOutput: e.state, Saved: e.savedChoice,
	})
	if r.Err != nil {
		return
	}
	if err := e.list(); err != nil {
		r.Err = fmt.Errorf("%s: %w", r.place(), err)
		return
	}
	e.balance.Forward(r, e)
	Call(r, e.permute, moe.MoEPermuteFwdArgs{Input: x, Indices: e.indices, Output: e.in, RowIDMap: e.rowOf, Saved: e.savedPermute})
	if e.gather(r); r.Err != nil {
		return
	}
	if w := &e.work; w.In.NumElements() > 0 {
		e.up.Forward(r, w.Counts, w.In, w.GateUp)
		Call(r, e.swiglu, activation.SwiGLUArgs{Input: w.GateUp, Output: w.Act})
		e.down.Forward(r, w.Counts, w.Act, w.Out)
	}
	e.exchange(r, func() error { return e.routes.Back(e.work.Out, e.out) })
	if y != nil {
		Call(r, e.unpermute, moe.MoEUnpermuteArgs{Input: e.out, RowIDMap: e.rowOf, Prob: e.weights, Output: y, Saved: e.savedPermute})
	}
}

// gather makes the work of this rank: its own rows, or those that all ranks have for its experts.
func (e *experts) gather(r *Run) {
	if r.Err != nil {
		return
	}
	if e.work.Counts, r.Err = tensor.Read[int32](e.counts); r.Err != nil {
		return
	}
	e.exchange(r, func() error {
		own, n, err := e.routes.Plan(e.in.Shape()[0], e.counts)
		if err != nil {
			return err
		}
		e.work = e.buffers.Work(own, n, e.in, e.down.weights[0].Shape().Cols())
		return e.routes.Out(e.in, e.work.In)
	})
}

// exchange calls a function that exchanges rows with other ranks, where ranks share the experts.
func (e *experts) exchange(r *Run, rows func() error) {
	if e.routes == nil || r.Err != nil {
		return
	}
	if err := rows(); err != nil {
		r.Err = fmt.Errorf("%s: %w", r.place(), err)
	}
}

// list converts the map of the chosen experts to lists.
func (e *experts) list() (err error) {
	chosen, unread := tensor.Read[bool](e.chosen)
	probs, fault := tensor.Read[float32](e.probs)
	if err := errors.Join(unread, fault); err != nil {
		return err
	}
	copied := tensor.Fill(e.indices, func(indices []int32) {
		unread = tensor.Fill(e.weights, func(weights []float32) {
			fault = tensor.Fill(e.counts, func(counts []int32) { err = e.choices(chosen, probs, indices, weights, counts) })
		})
	})
	return errors.Join(err, fault, unread, copied)
}

// choices lists the chosen experts of each token with their weights, and counts the tokens of each
// expert.
func (e *experts) choices(chosen []bool, probs []float32, indices []int32, weights []float32, counts []int32) error {
	clear(counts)
	for t := range len(indices) / e.topk {
		k := 0
		for expert, is := range chosen[t*e.num : (t+1)*e.num] {
			if !is {
				continue
			}
			if k < e.topk {
				indices[t*e.topk+k], weights[t*e.topk+k] = int32(expert), probs[t*e.num+expert]
			}
			counts[expert]++
			k++
		}
		if k != e.topk {
			return fmt.Errorf("op %q chose %d experts for token %d, want moe_router_topk %d", e.choose.Op().Name(), k, t, e.topk)
		}
	}
	return nil
}

// spread is the gradient of list.
func (e *experts) spread() error {
	indices, unread := tensor.Read[int32](e.indices)
	dWeights, fault := tensor.Read[float32](e.dWeights)
	if err := errors.Join(unread, fault); err != nil {
		return err
	}
	return tensor.Fill(e.dProbs, func(dProbs []float32) {
		clear(dProbs)
		for i, expert := range indices {
			dProbs[i/e.topk*e.num+int(expert)] = dWeights[i]
		}
	})
}

func (e *experts) Backward(r *Run, x, dy, dx *tensor.Tensor) {
	Call(r, e.unpermuteBwd, moe.MoEUnpermuteBwdArgs{
		InputBwd: dy, InputFwd: e.out, RowIDMap: e.rowOf, Prob: e.weights, ActGrad: e.dOut, ProbGrad: e.dWeights, Saved: e.savedPermute,
	})
	e.exchange(r, func() error { return e.routes.Out(e.dOut, e.work.DOut) })
	if w := &e.work; w.In.NumElements() > 0 {
		e.down.Backward(r, w.Counts, w.Act, w.DOut, w.DAct)
		Call(r, e.dSwiglu, activation.DSwiGLUArgs{Grad: w.DAct, FwdInput: w.GateUp, Output: w.GateUp})
		e.up.Backward(r, w.Counts, w.In, w.GateUp, w.DIn)
	} else if !r.Accumulate {
		r.Err = errors.Join(r.Err, e.up.clear(), e.down.clear())
	}
	e.exchange(r, func() error { return e.routes.Back(e.work.DIn, e.dIn) })
	Call(r, e.permuteBwd, moe.MoEUnpermuteArgs{Input: e.dIn, RowIDMap: e.rowOf, Output: dx, Saved: e.savedPermute})
	if r.Err != nil {
		return
	}
	if r.Err = e.spread(); r.Err != nil {
		return
	}
	Call(r, e.chooseBwd, moe.FusedTopkWithScoreFunctionBwdArgs{
		RoutingMap: e.chosen, IntermediateOutput: e.state, GradProbs: e.dProbs, GradLogits: e.dLogits,
		Topk: e.topk, UsePreSoftmax: e.pre, ScoreFunction: moe.SoftmaxScore, Saved: e.savedChoice,
	})
	e.balance.Backward(r, e)
	e.router.Backward(r, e.wide.widen(r, x), e.dLogits, e.dRouted)
	e.wide.narrow(r, e.dRouted, e.dHidden)
	Call(r, e.addBwd, norm.ResidualAddArgs{A: dx, B: e.dHidden, Output: dx})
}

// grouped is a linear layer of each expert on the rows that belong to it.
type grouped struct {
	weights, grads []*tensor.Tensor // a view of each expert's
	fwd, bwd       *opmanager.Bound[gemm.TEGeneralGroupedGemmArgs]
	left, right    []*tensor.Tensor // views of rows of the current call
	whole          [1]*tensor.Tensor
}

func (b *Builder) grouped(w *Param, experts int) grouped {
	g := grouped{
		fwd: opmanager.MustBind(b.Fwd, gemm.TEGeneralGroupedGemm), bwd: opmanager.MustBind(b.Bwd, gemm.TEGeneralGroupedGemm),
		left: make([]*tensor.Tensor, experts), right: make([]*tensor.Tensor, experts),
	}
	size, matrix := w.Value.Shape()[0]/experts, b.matrix(w)
	for e := range experts {
		g.weights = append(g.weights, memory.Rows(matrix, e*size, (e+1)*size))
		g.grads = append(g.grads, memory.Rows(w.Grad, e*size, (e+1)*size))
	}
	return g
}

func (g *grouped) Forward(r *Run, counts []int32, x, y *tensor.Tensor) {
	split(g.left, x, counts)
	g.whole[0] = y
	Call(r, g.fwd, gemm.TEGeneralGroupedGemmArgs{A: g.weights, TransA: true, B: g.left, D: g.whole[:], SingleOutput: true})
}

func (g *grouped) Backward(r *Run, counts []int32, x, dy, dx *tensor.Tensor) {
	split(g.left, dy, counts)
	split(g.right, x, counts)
	g.whole[0] = dx
	Call(r, g.bwd, gemm.TEGeneralGroupedGemmArgs{A: g.weights, B: g.left, D: g.whole[:], SingleOutput: true})
	Call(r, g.bwd, gemm.TEGeneralGroupedGemmArgs{A: g.right, B: g.left, TransB: true, D: g.grads, Grad: true, Accumulate: r.Accumulate})
}

// clear is backward without rows.
func (g *grouped) clear() error {
	for _, t := range g.grads {
		if t == nil {
			continue
		}
		if err := tensor.Fill(t, func(v []float32) { clear(v) }); err != nil {
			return err
		}
	}
	return nil
}

// split makes views of the rows of each expert.
func split(views []*tensor.Tensor, t *tensor.Tensor, counts []int32) {
	from := 0
	for i, n := range counts {
		views[i] = memory.Rows(t, from, from+int(n))
		from += int(n)
	}
}

// balance is the auxiliary loss that makes the router use all experts equally.
type balance struct {
	ranks            *world.World   // that have other rows of the same sequences; nil without
	tokens           int            // of the batch
	counts           *tensor.Tensor // i32 [experts]: tokens of each, of the batch; nil for those of this rank
	coeff            float32
	scores, state    *tensor.Tensor // [T experts]
	best             *tensor.Tensor // bool [T experts]
	loss, factor     *tensor.Tensor // [1]
	dLoss            *tensor.Tensor // [1]
	dScores, dLogits *tensor.Tensor // [T experts]

	savedScore, savedLoss *opregistry.Saved
	score                 *opmanager.Bound[moe.FusedScoreForMoEAuxLossFwdArgs]
	scoreBwd              *opmanager.Bound[moe.FusedScoreForMoEAuxLossBwdArgs]
	fwd                   *opmanager.Bound[moe.FusedMoEAuxLossFwdArgs]
	bwd                   *opmanager.Bound[moe.FusedMoEAuxLossBwdArgs]
	addBwd                *opmanager.Bound[norm.ResidualAddArgs]
}

func (b *Builder) balance() *balance {
	t, n := b.mlpRows(), b.Config.NumExperts
	l := &balance{
		tokens: b.tokens() * b.contextRanks(),
		coeff:  float32(b.Config.AuxLossCoeff),
		scores: b.Keep.F32(t, n), state: b.Keep.F32(t, n), best: b.Keep.New(tensor.Bool, t, n), loss: b.Keep.F32(1), factor: b.Keep.F32(1),
		dLoss: b.Spare.F32(1), dScores: b.Spare.F32(t, n), dLogits: b.Spare.F32(t, n), savedScore: saved(), savedLoss: saved(),
		score: opmanager.MustBind(b.Fwd, moe.FusedScoreForMoEAuxLossFwd), scoreBwd: opmanager.MustBind(b.Bwd, moe.FusedScoreForMoEAuxLossBwd),
		fwd: opmanager.MustBind(b.Fwd, moe.FusedMoEAuxLossFwd), bwd: opmanager.MustBind(b.Bwd, moe.FusedMoEAuxLossBwd),
		addBwd: opmanager.MustBind(b.Bwd, norm.ResidualAdd),
	}
	if b.Part.Rows != nil {
		l.ranks, l.counts = b.Part.Rows, b.Keep.New(tensor.I32, n)
	}
	return l
}

// tokensPerExpert is that of the batch.
func (l *balance) tokensPerExpert(e *experts) *tensor.Tensor {
	if l.counts == nil {
		return e.counts
	}
	return l.counts
}

func (l *balance) Forward(r *Run, e *experts) {
	if l == nil {
		return
	}
	Call(r, l.score, moe.FusedScoreForMoEAuxLossFwdArgs{
		Logits: e.logits, Topk: e.topk, ScoreFunction: moe.SoftmaxScore,
		Scores: l.scores, RoutingMap: l.best, IntermediateOutput: l.state, Saved: l.savedScore,
	})
	counts := l.tokensPerExpert(e)
	if l.ranks != nil {
		copy(tensor.Data[int32](counts), tensor.Data[int32](e.counts))
		r.total(l.ranks, counts)
	}
	Call(r, l.fwd, moe.FusedMoEAuxLossFwdArgs{
		Probs: l.scores, TokensPerExpert: counts, TotalNumTokens: l.tokens, NumExperts: e.num, Topk: e.topk,
		Coeff: l.coeff, AuxLoss: l.loss, ConstBuf: l.factor, Saved: l.savedLoss,
	})
	if l.ranks != nil {
		r.total(l.ranks, l.loss)
	}
	if r.Err != nil {
		return
	}
	loss, err := tensor.Read[float32](l.loss)
	if err != nil {
		r.Err = err
		return
	}
	r.AuxLoss += float64(loss[0])
}

// Backward adds the gradient of the loss to that of the logits.
func (l *balance) Backward(r *Run, e *experts) {
	if l == nil {
		return
	}
	if err := tensor.Fill(l.dLoss, func(v []float32) { v[0] = r.AuxScale }); err != nil {
		r.fail(err)
		return
	}
	Call(r, l.bwd, moe.FusedMoEAuxLossBwdArgs{
		ConstBuf: l.factor, TokensPerExpert: l.tokensPerExpert(e), GradAuxLoss: l.dLoss, GradProbs: l.dScores, Saved: l.savedLoss,
	})
	Call(r, l.scoreBwd, moe.FusedScoreForMoEAuxLossBwdArgs{
		IntermediateOutput: l.state, GradScores: l.dScores, GradLogits: l.dLogits, Topk: e.topk, ScoreFunction: moe.SoftmaxScore, Saved: l.savedScore,
	})
	Call(r, l.addBwd, norm.ResidualAddArgs{A: e.dLogits, B: l.dLogits, Output: e.dLogits})
}
