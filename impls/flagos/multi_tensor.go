package flagos

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// listBlock is the number of elements of a part of an op over lists of tensors.
const listBlock = 1 << 15

func blocksOf(t *tensor.Tensor) int { return (t.NumElements() + listBlock - 1) / listBlock }

// blocks returns the number of parts of a list: each tensor is cut separately.
func blocks(list []*tensor.Tensor) int {
	n := 0
	for _, t := range list {
		n += blocksOf(t)
	}
	return n
}

// locate returns the tensor of a list and the range of its elements that a part covers.
func locate(list []*tensor.Tensor, part int) (at, lo, hi int) {
	for n := blocksOf(list[at]); part >= n; n = blocksOf(list[at]) {
		part -= n
		at++
	}
	return at, part * listBlock, min((part+1)*listBlock, list[at].NumElements())
}

// requireLists requires dense f32, bf16 or f16 in all lists.
func requireLists(v *host.Views, lists [][]*tensor.Tensor) {
	for _, list := range lists {
		for _, t := range list {
			if !v.Stored("a tensor of tensor_lists", t) || !v.Dense("a tensor of tensor_lists", t) {
				return
			}
		}
	}
}

// listTile is how many elements of each tensor are held in f32 at a time when one of the tensors
// with the same index is narrow.
const listTile = 1024

// step returns how many elements of the vectors a kernel takes at a time: all of them where all are
// f32.
func step(vectors ...host.Matrix) int {
	for i := range vectors {
		if vectors[i].Narrow() {
			return listTile
		}
	}
	return listBlock
}

type scaleLists struct {
	in, out []*tensor.Tensor
	scale   float32
	flag    *int32
}

var scaleKernel = parallel.NewKernel((*scaleLists).part)

// multiTensorScale implements optim.MultiTensorScale.
func multiTensorScale(e *opregistry.Exec, a optim.MultiTensorScaleArgs) error {
	var v host.Views
	return scaleAll(&v, e, a.TensorLists, a.Scale, a.NoopFlag)
}

// multiTensorScaleTensor implements optim.MultiTensorScaleTensor.
func multiTensorScaleTensor(e *opregistry.Exec, a optim.MultiTensorScaleTensorArgs) error {
	var v host.Views
	return scaleAll(&v, e, a.TensorLists, v.Number("scale", a.Scale), a.NoopFlag)
}

func scaleAll(v *host.Views, e *opregistry.Exec, lists [][]*tensor.Tensor, scale float32, flag *tensor.Tensor) error {
	requireLists(v, lists)
	raised := v.Int32s("noop_flag", flag)
	if v.Err != nil {
		return v.Err
	}
	c := scaleLists{in: lists[0], out: lists[1], scale: scale, flag: &raised[0]}
	scaleKernel.Run(e.Pool(), blocks(c.in), c)
	return nil
}

func (c *scaleLists) part(part int) {
	at, lo, hi := locate(c.in, part)
	in, out := host.Flatten(c.in[at]), host.Flatten(c.out[at])
	var inBuf, outBuf [listTile]float32
	for n := step(in, out); lo < hi; lo += n {
		n = min(n, hi-lo)
		y := out.Place(0, lo, n, outBuf[:])
		if !vector.ScaleFinite(y, in.Piece(0, lo, n, inBuf[:]), c.scale) {
			atomic.StoreInt32(c.flag, 1)
		}
		out.Settle(0, lo, y)
	}
}

type squares struct {
	list  []*tensor.Tensor
	scale float64   // of each square
	sums  []float64 // one per part
}

var squaresKernel = parallel.NewKernel((*squares).part)

// multiTensorL2Norm implements optim.MultiTensorL2Norm. Sums are f64.
func multiTensorL2Norm(e *opregistry.Exec, a optim.MultiTensorL2NormArgs) error {
	var v host.Views
	return l2Norm(&v, e, a, 1)
}

// multiTensorUnscaleL2Norm implements optim.MultiTensorUnscaleL2Norm. Sums are f64.
func multiTensorUnscaleL2Norm(e *opregistry.Exec, a optim.MultiTensorUnscaleL2NormArgs) error {
	var v host.Views
	scale := v.Number("inv_scale", a.InvScale)
	return l2Norm(&v, e, optim.MultiTensorL2NormArgs{NoopFlag: a.NoopFlag, TensorLists: a.TensorLists, Norm: a.Norm, PerTensor: a.PerTensor}, scale)
}

func l2Norm(v *host.Views, e *opregistry.Exec, a optim.MultiTensorL2NormArgs, scale float32) error {
	requireLists(v, a.TensorLists)
	flag := v.Int32s("noop_flag", a.NoopFlag)
	norm := v.Vector("norm", a.Norm)
	var each []float32
	if a.PerTensor != nil {
		each = v.Vector("per_tensor", a.PerTensor)
	}
	if v.Err != nil {
		return v.Err
	}
	list := a.TensorLists[0]
	parts := blocks(list)
	scratch := e.Scratch(2 * parts)
	c := squares{
		list: list, scale: float64(scale) * float64(scale),
		sums: unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(scratch))), parts),
	}
	squaresKernel.Run(e.Pool(), parts, c)
	total, sums := 0., c.sums
	for i, t := range list {
		sum := 0.
		for range blocksOf(t) {
			sum += sums[0]
			sums = sums[1:]
		}
		total += sum
		if each != nil {
			each[i] = float32(math.Sqrt(sum))
		}
	}
	e.Release(scratch)
	norm[0] = float32(math.Sqrt(total))
	if math.IsInf(total, 0) || math.IsNaN(total) {
		flag[0] = 1
	}
	return nil
}

func (c *squares) part(part int) {
	at, lo, hi := locate(c.list, part)
	line := host.Flatten(c.list[at])
	if !line.Narrow() {
		c.sums[part] = c.scale * vector.SumSquares(line.Data[lo:hi])
		return
	}
	var buf [listTile]float32
	sum := 0.
	for ; lo < hi; lo += listTile {
		sum += vector.SumSquares(line.Piece(0, lo, min(listTile, hi-lo), buf[:]))
	}
	c.sums[part] = c.scale * sum
}
