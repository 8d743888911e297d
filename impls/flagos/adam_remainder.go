package flagos

import (
	"math"

	kernel "github.com/primus-fl/primus/internal/kernel/optim"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// adamRemainder performs Adam steps for weights that are stored in two halves.
type adamRemainder struct {
	lists [][]*tensor.Tensor
	step  kernel.AdamStep
}

var adamRemainderKernel = parallel.NewKernel((*adamRemainder).part)

// multiTensorAdamParamRemainder implements optim.MultiTensorAdamParamRemainder.
func multiTensorAdamParamRemainder(e *opregistry.Exec, a optim.MultiTensorAdamArgs) error {
	var v views
	for i, list := range a.TensorLists {
		if i < 4 {
			v.lists(a.TensorLists[i : i+1])
			continue
		}
		for _, t := range list {
			if !v.host("a tensor of tensor_lists", t, tensor.I16) || !v.dense("a tensor of tensor_lists", t) {
				break
			}
		}
	}
	if v.err != nil {
		return v.err
	}
	c := adamRemainder{lists: a.TensorLists, step: adamStep(a)}
	adamRemainderKernel.Run(e.Pool(), blocks(a.TensorLists[0]), c)
	return nil
}

func (c *adamRemainder) part(part int) {
	at, lo, hi := locate(c.lists[0], part)
	g, m, v := flatten(c.lists[0][at]), flatten(c.lists[2][at]), flatten(c.lists[3][at])
	high, low := patterns(tensor.Data[tensor.BFloat16](c.lists[1][at])), tensor.Data[int16](c.lists[4][at])
	var gBuf, mBuf, vBuf, weights [listTile]float32
	for ; lo < hi; lo += listTile {
		n := min(listTile, hi-lo)
		p := weights[:n]
		joinHalves(p, high[lo:], low[lo:])
		mean, variance := m.piece(0, lo, n, mBuf[:]), v.piece(0, lo, n, vBuf[:])
		kernel.Adam(p, mean, variance, g.piece(0, lo, n, gBuf[:]), &c.step)
		m.settle(0, lo, mean)
		v.settle(0, lo, variance)
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
