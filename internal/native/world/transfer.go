package world

import (
	"errors"

	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
)

// Send sends a tensor to another rank while the caller goes on; wait returns when the tensor may be
// written again. It is a broadcast among the two, in the place that it has among all that both ask
// for.
func (w *World) Send(what string, to int, t *tensor.Tensor) (wait func() error) {
	return w.transfer(what, to, w.Rank, t)
}

// Receive receives a tensor that another rank sends, while the caller goes on; wait returns when it
// is there.
func (w *World) Receive(what string, from int, t *tensor.Tensor) (wait func() error) {
	return w.transfer(what, from, from, t)
}

// Shift sends a tensor to the next rank, and receives another one from the rank before, while the
// caller goes on; the last rank sends to the first. wait returns when one may be written again and
// the other is there. Ranks of even and of odd number begin with different ones, so that no rank
// waits for itself.
func (w *World) Shift(what string, out, in *tensor.Tensor) (wait func() error) {
	next, before := (w.Rank+1)%w.Ranks, (w.Rank+w.Ranks-1)%w.Ranks
	var first, second func() error
	if w.Rank%2 == 0 {
		first = w.Send(what, next, out)
		second = w.Receive(what, before, in)
	} else {
		first = w.Receive(what, before, in)
		second = w.Send(what, next, out)
	}
	return func() error { return errors.Join(first(), second()) }
}

func (w *World) transfer(what string, peer, root int, t *tensor.Tensor) (wait func() error) {
	pair := w.pair(peer)
	args := collective.BroadcastArgs{Buffer: t, Group: pair}
	if root != min(w.Rank, peer) {
		args.Root = 1
	}
	on := w.queue.ask(true, func() error { return w.ops.broadcast.Call(args) })
	return func() error { return wrap(what, on.wait()) }
}

// pair is the group of this rank and another one.
func (w *World) pair(peer int) collective.Group {
	if w.Ranks == 2 {
		return w.Group
	}
	stride := max(w.Stride, 1)
	g := collective.Group{Ranks: 2, First: w.First + min(w.Rank, peer)*stride, Stride: (max(w.Rank, peer) - min(w.Rank, peer)) * stride}
	if w.Rank > peer {
		g.Rank = 1
	}
	return g
}
