package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// adamFP8 performs Adam steps for master weights that have a copy in fp8.
type adamFP8 struct {
	lists   [][]*tensor.Tensor
	step    layers.AdamStep
	largest []float32 // magnitude of each part
}

var adamFP8Kernel = parallel.NewKernel((*adamFP8).part)

// multiTensorAdamFP8 implements optim.MultiTensorAdamFP8, in one pass over all lists. Scratch: one
// number per part.
func multiTensorAdamFP8(e *opregistry.Exec, a optim.MultiTensorAdamArgs) error {
	const name = "a tensor of tensor_lists"
	var v host.Views
	requireLists(&v, a.TensorLists[:1])
	requireLists(&v, a.TensorLists[2:4])
	for i, p := range a.TensorLists[1] {
		v.Bytes(name, p)
		v.Dense(name, p)
		for _, list := range a.TensorLists[4:] {
			v.Vector(name, list[i])
		}
	}
	if v.Err != nil {
		return v.Err
	}
	parts := blocks(a.TensorLists[0])
	c := adamFP8{lists: a.TensorLists, step: adamStep(a), largest: e.Scratch(parts)}
	adamFP8Kernel.Run(e.Pool(), parts, c)
	largest := c.largest
	for i, g := range a.TensorLists[0] {
		n := blocksOf(g)
		amax := c.vector(6, i)
		amax[0] = max(amax[0], fp8.Amax(largest[:n]))
		c.vector(7, i)[0] = 1 / c.vector(5, i)[0]
		largest = largest[n:]
	}
	e.Release(c.largest)
	return nil
}

func (c *adamFP8) vector(list, at int) []float32 { return tensor.Data[float32](c.lists[list][at]) }

func (c *adamFP8) part(part int) {
	at, lo, hi := locate(c.lists[0], part)
	g, m, v := host.Flatten(c.lists[0][at]), host.Flatten(c.lists[2][at]), host.Flatten(c.lists[3][at])
	var views host.Views
	p, format := views.Bytes("p", c.lists[1][at]), host.FP8Format(c.lists[1][at].DType())
	master, scale := c.vector(4, at), c.vector(5, at)
	var gBuf, mBuf, vBuf [listTile]float32
	largest := float32(0)
	for ; lo < hi; lo += listTile {
		n := min(listTile, hi-lo)
		weights := master[lo:][:n]
		mean, variance := m.Piece(0, lo, n, mBuf[:]), v.Piece(0, lo, n, vBuf[:])
		largest = max(largest, layers.AdamLargest(weights, mean, variance, g.Piece(0, lo, n, gBuf[:]), &c.step))
		m.Settle(0, lo, mean)
		v.Settle(0, lo, variance)
		format.Encode(p.Data[lo:][:n], weights, scale, n)
	}
	c.largest[part] = largest
}
