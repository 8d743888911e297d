package model

import (
	"fmt"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
)

// linearEntropy is an output layer with its cross entropy, of which no logits are kept.
type linearEntropy struct {
	hidden *tensor.Tensor // [T h], the input of the layer
	head   *Linear
	saved  *opregistry.Saved
	fwd    *opmanager.Bound[loss.LinearCrossEntropyFwdArgs]
	bwd    *opmanager.Bound[loss.LinearCrossEntropyBwdArgs]

	next *expectedBackward // of the next forward pass
	done *expectedBackward // whose gradients the last forward pass has computed
}

// expectedBackward are the arguments of a Backward.
type expectedBackward struct {
	scale      float32
	accumulate bool
}

// linearEntropy makes the cross entropy of an output layer whose input is hidden, nil where its
// logits are kept.
func (b *Builder) linearEntropy(hidden *tensor.Tensor, head *Linear) *linearEntropy {
	if !b.Config.LinearCrossEntropy || b.Part.Tensor != nil || b.Part.Stretches != nil || head.eights != nil || b.Config.FinalSoftcap != 0 {
		return nil
	}
	return &linearEntropy{
		hidden: hidden, head: head, saved: saved(),
		fwd: opmanager.MustBind(b.Fwd, loss.LinearCrossEntropyFwd), bwd: opmanager.MustBind(b.Bwd, loss.LinearCrossEntropyBwd),
	}
}

// forward writes Losses and LSE, and with an expected Backward the gradients of hidden and of the
// weight: to compute them afterwards takes one product more.
func (l *linearEntropy) forward(r *Run, p *Pass) {
	b, next := &p.lossArgs, l.next
	l.next, l.done = nil, nil
	args := loss.LinearCrossEntropyFwdArgs{
		Hidden: l.hidden, Weight: l.head.matrix, Targets: b.Targets, Losses: b.Losses, LSE: b.LSE, IgnoreIndex: noIgnore, Saved: l.saved,
	}
	if next != nil && p.grad != nil && r.Err == nil {
		r.Err = b.weigh(next.scale)
		args.DLosses, args.DHidden, args.DWeight = b.DLosses, p.grad.Hidden, l.head.Weight.Grad
		args.Accumulate = next.accumulate && args.DWeight != nil
	}
	Call(r, l.fwd, args)
	if r.Err == nil && args.DLosses != nil {
		l.done = next
	}
}

// backward writes the gradients of hidden and of the weight, unless forward has.
func (l *linearEntropy) backward(r *Run, p *Pass, scale float32) {
	b, done := &p.lossArgs, l.done
	l.done = nil
	want := expectedBackward{scale, r.Accumulate}
	switch {
	case r.Err != nil:
		return
	case done != nil && *done == want:
		return
	case done != nil && done.accumulate && l.head.Weight.Grad != nil:
		r.Err = fmt.Errorf("backward with the scale %v: the gradient of the output layer has been added with the scale %v that was expected", scale, done.scale)
		return
	}
	if r.Err = b.weigh(scale); r.Err != nil {
		return
	}
	args := loss.LinearCrossEntropyBwdArgs{
		Hidden: l.hidden, Weight: l.head.matrix, Targets: b.Targets, LSE: b.LSE, DLosses: b.DLosses, DHidden: p.grad.Hidden, DWeight: l.head.Weight.Grad,
		IgnoreIndex: noIgnore, Saved: l.saved,
	}
	args.Accumulate = r.Accumulate && args.DWeight != nil
	Call(r, l.bwd, args)
}

// ExpectBackward says that Backward with these arguments follows the next Loss, which may then
// compute gradients of the output layer that it would else compute again.
func (p *Pass) ExpectBackward(scale float32, accumulate bool) {
	if p.linear != nil {
		p.linear.next = &expectedBackward{scale, accumulate}
	}
}
