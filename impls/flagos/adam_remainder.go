package flagos

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// adamRemainder performs Adam steps for weights that are stored in two halves.
type adamRemainder struct {
	lists [][]*tensor.Tensor
	step  layers.AdamStep
}

var adamRemainderKernel = parallel.NewKernel((*adamRemainder).part)

// multiTensorAdamParamRemainder implements optim.MultiTensorAdamParamRemainder.
func multiTensorAdamParamRemainder(e *opregistry.Exec, a optim.MultiTensorAdamArgs) error {
	var v host.Views
	for i, list := range a.TensorLists {
		if i < 4 {
			requireLists(&v, a.TensorLists[i:i+1])
			continue
		}
		for _, t := range list {
			if !v.Host("a tensor of tensor_lists", t, tensor.I16) || !v.Dense("a tensor of tensor_lists", t) {
				break
			}
		}
	}
	if v.Err != nil {
		return v.Err
	}
	c := adamRemainder{lists: a.TensorLists, step: adamStep(a)}
	adamRemainderKernel.Run(e.Pool(), blocks(a.TensorLists[0]), c)
	return nil
}

func (c *adamRemainder) part(part int) {
	at, lo, hi := locate(c.lists[0], part)
	g, m, v := host.Flatten(c.lists[0][at]), host.Flatten(c.lists[2][at]), host.Flatten(c.lists[3][at])
	high, low := host.Patterns(tensor.Data[tensor.BFloat16](c.lists[1][at])), tensor.Data[int16](c.lists[4][at])
	var gBuf, mBuf, vBuf, weights [listTile]float32
	for ; lo < hi; lo += listTile {
		n := min(listTile, hi-lo)
		p := weights[:n]
		joinHalves(p, high[lo:], low[lo:])
		mean, variance := m.Piece(0, lo, n, mBuf[:]), v.Piece(0, lo, n, vBuf[:])
		layers.Adam(p, mean, variance, g.Piece(0, lo, n, gBuf[:]), &c.step)
		m.Settle(0, lo, mean)
		v.Settle(0, lo, variance)
		splitHalves(high[lo:], low[lo:], p)
	}
}

// joinHalves assembles numbers from their upper halves, which are rounded, and the signed
// remainders.
func joinHalves(p []float32, high []uint16, low []int16) {
	high, low = high[:len(p)], low[:len(p)]
	for i := range p {
		p[i] = math.Float32frombits(uint32(high[i])<<16 + uint32(int32(low[i])))
	}
}

// splitHalves is the inverse of joinHalves: a negative remainder rounds the upper half up.
func splitHalves(high []uint16, low []int16, p []float32) {
	high, low = high[:len(p)], low[:len(p)]
	for i, x := range p {
		bits := math.Float32bits(x)
		low[i] = int16(bits)
		high[i] = uint16((bits + 1<<15) >> 16)
	}
}
