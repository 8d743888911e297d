package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/tensor"
)

//go:embed sums.cl
var sumsSource string

var sumsProgram = NewProgram("sums", sumsSource, []string{"Y"}, nil)

// Sums is scratch memory with one row of partial sums for each part of some rows.
type Sums struct {
	call *Call
	*opencl.Scratch
	Parts, Per int // Per rows in each part
	width      int
}

// maxParts bounds the parts that rows are summed in.
const (
	cpuParts = 32
	gpuParts = 256
)

// Sums returns scratch memory of width numbers for each part of some rows. How rows are cut depends
// on their number and the kind of device alone.
func (c *Call) Sums(rows, width int) (Sums, error) {
	parts := gpuParts
	if shapeFor(c.Device.Info()).Group == 1 {
		parts = min(cpuParts, max(rows*width/grain, 1))
	}
	s := Sums{call: c, Per: max(CeilDiv(rows, parts), 1), width: width}
	s.Parts = CeilDiv(rows, s.Per)
	var err error
	s.Scratch, err = c.Scratch(s.Parts * width)
	return s, err
}

// Add adds up the parts, in order, from column at on, and stores the sums.
func (s Sums) Add(out *tensor.Tensor, at int) error {
	cols := out.NumElements()
	l := s.call.Kernel(sumsProgram, "column_sums", Types{out.DType()}, 0).Vec(s.At(at), out).U32(s.Parts).U64(uint64(s.width)).U32(cols)
	return l.Items(CeilDiv(cols, l.shape.Width), max(s.Parts, 1)*l.shape.Width).Run()
}
