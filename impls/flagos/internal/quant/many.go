package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// castToFP8 implements quant.CastToFP8.
func castToFP8(e *opregistry.Exec, a quant.CastToFP8Args) error {
	var v host.Views
	c := quantization{x: v.Matrix("input", a.Input), q: quant.Quantizer{Scaling: quant.DelayedScaling}, f: host.FP8Format(a.Output.DType()), height: 1, width: pieceLen}
	c.rows = side{on: true, data: v.Bytes("output", a.Output)}
	k := a.FP8Tensor
	scale, inv, history := v.Vector("scale", a.FP8MetaTensor.Scale), v.Vector("scale_inv", a.FP8MetaTensor.ScaleInv), v.Vector("amax_history", a.FP8MetaTensor.AmaxHistory)
	if v.Err != nil {
		return v.Err
	}
	c.scale, c.scaleInv, c.amax = scale[k:], inv[k:], history[k:]
	c.run(e)
	return nil
}

// multiTensorQuantize implements quant.MultiTensorQuantize.
func multiTensorQuantize(e *opregistry.Exec, a quant.MultiTensorQuantizeArgs) error {
	var v host.Views
	for i, t := range a.TensorList {
		newQuantization(&v, v.Matrix("tensor_list", t), a.QuantizerList[i], a.OutputList[i])
	}
	if v.Err != nil {
		return v.Err
	}
	for i, t := range a.TensorList {
		newQuantization(&v, v.Matrix("tensor_list", t), a.QuantizerList[i], a.OutputList[i]).run(e)
	}
	return nil
}

// sections are the parts of a tensor along its first axis.
type sections struct {
	x       host.Matrix
	perItem int // rows for each index of the first axis
	lengths []int
	out     []quant.Quantized
	many    []quant.Quantizer // nil for one
	one     quant.Quantizer
}

func sectionsOf(v *host.Views, t *tensor.Tensor, lengths []int, out []quant.Quantized) sections {
	return sections{x: v.Matrix("tensor", t), perItem: t.Shape()[1:].Rows(), lengths: lengths, out: out}
}

// each prepares every section, and quantises it if there is a runner.
func (s *sections) each(v *host.Views, e *opregistry.Exec) {
	first := 0
	for i, n := range s.lengths {
		q := s.one
		if s.many != nil {
			q = s.many[i]
		}
		q.Offset += uint64((first*s.x.Cols + 3) / 4)
		c := newQuantization(v, s.x.Sub(first, n*s.perItem), q, s.out[i])
		if e != nil {
			c.run(e)
		}
		first += n * s.perItem
	}
}

// run quantises the sections if all are served.
func (s *sections) run(v *host.Views, e *opregistry.Exec) error {
	if v.Err == nil {
		s.each(v, nil)
	}
	if v.Err != nil {
		return v.Err
	}
	s.each(v, e)
	return nil
}

// splitQuantize implements quant.SplitQuantize.
func splitQuantize(e *opregistry.Exec, a quant.SplitQuantizeArgs) error {
	var v host.Views
	s := sectionsOf(&v, a.Tensor, a.SplitSections, a.OutputList)
	s.many = a.QuantizerList
	return s.run(&v, e)
}

// groupQuantize implements quant.GroupQuantize.
func groupQuantize(e *opregistry.Exec, a quant.GroupQuantizeArgs) error {
	var v host.Views
	s := sectionsOf(&v, a.Tensor, a.FirstDims, a.OutputList)
	s.one = a.Quantizer
	return s.run(&v, e)
}

// bgradGroupQuantize implements quant.BgradGroupQuantize.
func bgradGroupQuantize(e *opregistry.Exec, a quant.BgradGroupQuantizeArgs) error {
	var v host.Views
	s := sectionsOf(&v, a.Tensor, a.FirstDims, a.OutputList)
	s.one = a.Quantizer
	dbias := v.Matrix("dbias", a.DBias)
	if err := s.run(&v, e); err != nil {
		return err
	}
	first := 0
	for i, n := range s.lengths {
		sumRows(e, dbias.Sub(i, 1), s.x.Sub(first, n*s.perItem))
		first += n * s.perItem
	}
	return nil
}

// bgradQuantize implements quant.BgradQuantize.
func bgradQuantize(e *opregistry.Exec, a quant.BgradQuantizeArgs) error {
	var v host.Views
	x, dbias := v.Matrix("input", a.Input), v.Flat("dbias", a.DBias)
	var c quantization
	if a.Quantizer.Scaling != quant.NoScaling && v.Err == nil {
		c = newQuantization(&v, x, a.Quantizer, a.Output)
	}
	if v.Err != nil {
		return v.Err
	}
	if a.Quantizer.Scaling != quant.NoScaling {
		c.run(e)
	}
	sumRows(e, dbias, x)
	return nil
}

type rowSums struct {
	host.Cut
	exec  *opregistry.Exec
	x     host.Matrix
	parts host.Matrix
}

var sumRowsKernel = parallel.NewKernel((*rowSums).part)

// sumRows stores the sums over the rows of a matrix to the row of sum: over the rows of each part,
// and then over the parts, in order. Scratch: one row per part.
func sumRows(e *opregistry.Exec, sum, x host.Matrix) {
	c := rowSums{exec: e, x: x, Cut: host.CutAtMost(x.Rows, x.Cols, host.MaxSumParts)}
	buf := e.Scratch(c.Parts * host.RoundUp(x.Cols, host.LineFloats))
	c.parts = host.PartRows(buf, c.Parts, x.Cols)
	sumRowsKernel.Run(e.Pool(), c.Parts, c)
	host.AddParts(sum, c.parts)
	e.Release(buf)
}

func (c *rowSums) part(part int) {
	lo, hi := c.Bounds(part)
	sum := c.parts.Row(part)
	clear(sum)
	buf := c.exec.Scratch(pieceLen)
	for r := lo; r < hi; r++ {
		for col := 0; col < c.x.Cols; col += pieceLen {
			n := min(pieceLen, c.x.Cols-col)
			s := sum[col:][:n]
			vector.Add(s, s, c.x.Piece(r, col, n, buf))
		}
	}
	c.exec.Release(buf)
}
