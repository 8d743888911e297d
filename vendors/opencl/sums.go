package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/tensor"
)

//go:embed sums.cl
var sumsSource string

var sumsProgram = newProgram("sums", sumsSource, []string{"Y"}, nil)

// partialSums is scratch memory with one row of partial sums for each part of some rows.
type partialSums struct {
	call *kernelCall
	*opencl.Scratch
	Parts, Per int // Per rows in each part
	width      int
}

// maxParts bounds the parts that rows are summed in.
const (
	cpuParts = 32
	gpuParts = 256
)

// sums returns scratch memory of width numbers for each part of some rows. How rows are cut depends
// on their number and the kind of device alone.
func (c *kernelCall) sums(rows, width int) (partialSums, error) {
	parts := gpuParts
	if shapeFor(c.Device.Info()).Group == 1 {
		parts = min(cpuParts, max(rows*width/grain, 1))
	}
	s := partialSums{call: c, Per: max(ceilDiv(rows, parts), 1), width: width}
	s.Parts = ceilDiv(rows, s.Per)
	var err error
	s.Scratch, err = c.scratch(s.Parts * width)
	return s, err
}

// add adds up the parts, in order, from column at on, and stores the sums.
func (s partialSums) add(out *tensor.Tensor, at int) error {
	cols := out.NumElements()
	l := s.call.kernel(sumsProgram, "column_sums", typeList{out.DType()}, 0).vec(s.At(at), out).u32(s.Parts).u64(uint64(s.width)).u32(cols)
	return l.items(ceilDiv(cols, l.shape.Width), max(s.Parts, 1)*l.shape.Width).Run()
}
