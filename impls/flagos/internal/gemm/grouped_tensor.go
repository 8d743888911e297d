package gemm

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/impls/flagos/internal/panel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// members are the matrices of a grouped tensor.
type members struct {
	gemm.GroupedTensor
	lengths host.Indexes // those of FirstDims
}

// membersOf requires rows of one pitch of the matrices, and a list of lengths without gaps.
func membersOf(v *host.Views, dataName, lengthsName string, g gemm.GroupedTensor, require func(name string, t *tensor.Tensor)) members {
	m := members{GroupedTensor: g}
	for _, t := range g.List {
		require(dataName, t)
	}
	if g.Data != nil {
		require(dataName, g.Data)
	}
	if g.FirstDims != nil {
		m.lengths = v.Indexes(lengthsName, g.FirstDims)
	}
	return m
}

// rows returns the number of rows of a member.
func (m *members) rows(i int) int {
	switch {
	case m.List != nil:
		return m.List[i].Shape()[0]
	case m.FirstDims != nil:
		return m.lengths.At(i)
	default:
		return m.Data.Shape()[0] / m.NumTensors
	}
}

// operand returns member i, which begins at a row of Data.
func (m *members) operand(v *host.Views, i, row int, transposed bool) panel.Operand {
	t := m.Data
	if m.List != nil {
		t, row = m.List[i], 0
	}
	x := gemmOperand(v, "a member", t, false).Block(row, m.rows(i))
	if transposed {
		x = x.Transposed()
	}
	return x
}

// matrix is operand for the member of an output.
func (m *members) matrix(v *host.Views, i, row int) host.Matrix {
	if m.List != nil {
		return v.Matrix("a member", m.List[i])
	}
	return v.Matrix("a member", m.Data).Sub(row, m.rows(i))
}

// groupedTensorGemm implements gemm.TEGeneralGroupedGemmForGroupedTensor and the ops with a list in
// place of one of the operands: it computes what genericGemm does for each member, as groupedGemm,
// after it has checked that it serves all of them.
func groupedTensorGemm(e *opregistry.Exec, args gemm.GroupedGemmArgs) error {
	var v host.Views
	operand := func(name string, t *tensor.Tensor) { gemmOperand(&v, name, t, false) }
	a := membersOf(&v, "A", "A.first_dims", args.A, operand)
	b := membersOf(&v, "B", "B.first_dims", args.B, operand)
	d := membersOf(&v, "D", "D.first_dims", args.D, func(name string, t *tensor.Tensor) { v.Matrix(name, t) })
	var bias host.Matrix
	if args.Bias != nil {
		bias = v.Matrix("bias", args.Bias)
	}
	var alpha, beta []float32
	if args.Alpha != nil {
		alpha = v.Vector("alpha", args.Alpha)
	}
	if args.Beta != nil {
		beta = v.Vector("beta", args.Beta)
	}
	if v.Err != nil {
		return v.Err
	}
	all := newGroups()
	var rowA, rowB, rowD int
	for i := range args.B.Len() {
		p := product{
			GenericGemmArgs: gemm.GenericGemmArgs{TransB: args.TransB, Bias: args.Bias}, bias: bias.Sub(i, 1),
			left: b.operand(&v, i, rowB, args.TransB), right: a.operand(&v, i, rowA, args.TransA), d: d.matrix(&v, i, rowD),
		}
		if alpha != nil {
			p.Alpha = opregistry.Float(alpha[i])
		}
		if beta != nil && beta[i] != 0 {
			p.Accumulate, p.Beta = true, opregistry.Float(beta[i])
		}
		p.run(e, all)
		rowA, rowB, rowD = rowA+a.rows(i), rowB+b.rows(i), rowD+d.rows(i)
	}
	all.run(e)
	return v.Err
}
