package world

import (
	"fmt"
	"time"

	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// Exchange adds up the gradients of all ranks, in buckets, which are ranges of the memory that all
// gradients lie in. With Sharded each rank receives the sums of its part of each bucket only, and
// Gather returns the weights of that part to all.
type Exchange struct {
	world   *World
	shard   bool
	buckets []bucket
	sent    int // buckets whose gradients are on their way
	waited  time.Duration
	scratch []float32 // what Gather sends
	narrow  *narrow   // nil where gradients are sent as they are
}

// narrow sends gradients as bf16.
type narrow struct {
	all, part *tensor.Tensor // bf16, of a bucket and of a part of it
	flag      *tensor.Tensor
}

// bucket is the range lo to hi of gradients and of weights. Its parts, one for each rank, have the
// same length.
type bucket struct {
	lo, hi        int
	grads, values *tensor.Tensor
	sums          *tensor.Tensor // of the own part; nil without shards
	ticket        *ticket        // of what is on its way; nil when nothing is
}

// Part is a range of the weights that belongs to this rank, with the sums of its gradients.
type Part struct {
	Lo, Hi int
	Sums   *tensor.Tensor // f32 [Hi−Lo]
}

const (
	smallestBucket = 1 << 20 / 4  // numbers; shorter messages take longer per number
	largestBucket  = 16 << 20 / 4 // numbers; the 16 MiB stay in the caches of CPUs
	bucketsAtLeast = 8            // if they are not too small, so that some can be sent early
	partAlign      = 16           // numbers: parts begin on cache lines
)

// NewExchange returns the exchange of gradients, f32 [n], and of the weights they belong to, as the
// parameters ask for. Of both the first used numbers are exchanged; the last bucket is filled up
// with what follows.
func (w *World) NewExchange(values, grads *tensor.Tensor, used int, p Parallel) (*Exchange, error) {
	step := partAlign * w.Ranks
	end := (used + step - 1) / step * step
	if end > grads.NumElements() {
		return nil, fmt.Errorf("%d ranks: given memory for %d gradients, want at least %d", w.Ranks, grads.NumElements(), end)
	}
	size := min(max(end/bucketsAtLeast, smallestBucket), largestBucket)
	size = (size + step - 1) / step * step
	x := &Exchange{world: w, shard: p.Sharded}
	for lo := 0; lo < end; lo += size {
		b := bucket{lo: lo, hi: min(lo+size, end)}
		b.grads, b.values = span(grads, b.lo, b.hi), span(values, b.lo, b.hi)
		if x.shard {
			b.sums = vector(make([]float32, b.part(w.Ranks)))
		}
		x.buckets = append(x.buckets, b)
	}
	size = min(size, end)
	if x.shard {
		x.scratch = make([]float32, size/w.Ranks)
	}
	if p.ReduceInBF16 {
		x.narrow = &narrow{all: vector(make([]tensor.BFloat16, size)), part: vector(make([]tensor.BFloat16, size/w.Ranks)), flag: vector(make([]int32, 1))}
	}
	return x, nil
}

// part is the number of elements of a part.
func (b *bucket) part(ranks int) int { return (b.hi - b.lo) / ranks }

// Parts returns the ranges of this rank, in ascending order. Without shards it has none.
func (x *Exchange) Parts() []Part {
	var parts []Part
	for _, b := range x.buckets {
		if n := b.part(x.world.Ranks); x.shard {
			lo := b.lo + x.world.Rank*n
			parts = append(parts, Part{lo, lo + n, b.sums})
		}
	}
	return parts
}

// Send says that the first n gradients are final, and sends the buckets that lie in them while the
// caller goes on. Nothing may be written to them before Wait returns.
func (x *Exchange) Send(n int) {
	for x.sent < len(x.buckets) && x.buckets[x.sent].hi <= n {
		b := &x.buckets[x.sent]
		b.ticket = x.world.queue.ask(true, func() error { return x.reduce(b) })
		x.sent++
	}
}

// Begun reports whether gradients were sent since the last Wait.
func (x *Exchange) Begun() bool { return x.sent > 0 }

// Wait sends all gradients that were not sent, and returns when those of this rank are added up.
func (x *Exchange) Wait() error {
	x.Send(x.end())
	err := x.await("add up the gradients", x.buckets)
	x.sent = 0
	return err
}

// Gather sends the weights of the own parts to all ranks while the caller goes on, those at the end
// first. Need waits for them.
func (x *Exchange) Gather() {
	for i := range x.buckets {
		b := &x.buckets[len(x.buckets)-1-i]
		b.ticket = x.world.queue.ask(true, func() error { return x.gather(b) })
	}
}

// Need returns when the weights from element lo on are those of the last Gather.
func (x *Exchange) Need(lo int) error {
	first := 0
	for first < len(x.buckets) && x.buckets[first].hi <= lo {
		first++
	}
	return x.await("gather the weights", x.buckets[first:])
}

// await waits for what was asked for buckets.
func (x *Exchange) await(what string, buckets []bucket) error {
	begin := time.Now()
	var failure error
	for i := range buckets {
		if t := buckets[i].ticket; t != nil && failure == nil {
			failure = t.wait()
		}
		buckets[i].ticket = nil
	}
	x.waited += time.Since(begin)
	return wrap(what, failure)
}

func (x *Exchange) end() int { return x.buckets[len(x.buckets)-1].hi }

func (x *Exchange) reduce(b *bucket) error {
	if x.narrow != nil {
		return x.narrow.reduce(x.world, b)
	}
	return x.world.reduce(b.grads, b.sums)
}

// reduce replaces a tensor by its sum over all ranks or, with a part, writes that of this rank.
func (w *World) reduce(all, part *tensor.Tensor) error {
	if part == nil {
		return w.ops.allReduce.Call(collective.AllReduceArgs{Input: all, Output: all, Group: w.Group})
	}
	return w.ops.reduceScatter.Call(collective.ReduceScatterArgs{Input: all, Output: part, Group: w.Group})
}

// reduce adds up the gradients of a bucket, rounded to bf16.
func (n *narrow) reduce(w *World, b *bucket) error {
	all := span(n.all, 0, b.hi-b.lo)
	if err := n.convert(w, b.grads, all); err != nil {
		return err
	}
	if b.sums == nil {
		if err := w.reduce(all, nil); err != nil {
			return err
		}
		return n.convert(w, all, b.grads)
	}
	part := span(n.part, 0, b.part(w.Ranks))
	if err := w.reduce(all, part); err != nil {
		return err
	}
	return n.convert(w, part, b.sums)
}

// convert writes a tensor to one of another type.
func (n *narrow) convert(w *World, from, to *tensor.Tensor) error {
	return w.ops.scale.Call(optim.MultiTensorScaleArgs{NoopFlag: n.flag, TensorLists: [][]*tensor.Tensor{{from}, {to}}, Scale: 1})
}

func (x *Exchange) gather(b *bucket) error {
	w := x.world
	n := b.part(w.Ranks)
	own := x.scratch[:n]
	copy(own, tensor.Data[float32](span(b.values, w.Rank*n, (w.Rank+1)*n)))
	return w.ops.allGather.Call(collective.AllGatherArgs{Input: vector(own), Output: b.values, Group: w.Group})
}

// Times returns how long this rank has exchanged gradients and weights so far, and how long it has
// waited for that.
func (x *Exchange) Times() (spent, waited time.Duration) {
	return time.Duration(x.world.queue.spent.Load()), x.waited
}

// span returns the elements lo to hi of a tensor of one axis.
func span(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	view, err := t.Slice(0, lo, hi)
	if err != nil {
		panic("BUG: world: " + err.Error())
	}
	return view
}
