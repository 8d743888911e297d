package gemm

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// GroupedTensor holds the matrices of one operand of a grouped product: blocks of the rows of one
// tensor, or the tensors of a list.
type GroupedTensor struct {
	Data       *tensor.Tensor   // [rows, cols], the members one after the other
	FirstDims  *tensor.Tensor   // i32 or i64, the rows of each member; nil when all have the same number
	NumTensors int              // number of members when FirstDims is nil
	List       []*tensor.Tensor // the members themselves, instead of the above
}

// Len returns the number of members.
func (g GroupedTensor) Len() int {
	switch {
	case g.List != nil:
		return len(g.List)
	case g.FirstDims != nil:
		return g.FirstDims.NumElements()
	default:
		return g.NumTensors
	}
}

// Member returns member i. For a GroupedTensor with Data, firstRow is the number of rows of the
// members before i.
func (g GroupedTensor) Member(i, firstRow int) (*tensor.Tensor, error) {
	if g.List != nil {
		return g.List[i], nil
	}
	return g.Data.Slice(0, firstRow, firstRow+g.rows(i))
}

func (g *GroupedTensor) rows(i int) int {
	switch {
	case g.List != nil:
		return g.List[i].Shape()[0]
	case g.FirstDims != nil:
		return check.Integer(g.FirstDims, i)
	default:
		return g.Data.Shape()[0] / g.NumTensors
	}
}

func (g *GroupedTensor) cols(i int) int {
	if g.List != nil {
		return g.List[i].Shape()[1]
	}
	return g.Data.Shape()[1]
}

// GroupedGemmArgs are the arguments of the grouped products with grouped tensors.
type GroupedGemmArgs struct {
	A, B, D        GroupedTensor
	TransA, TransB bool
	Bias           *tensor.Tensor // [n, cols of D], nil without bias
	Alpha          *tensor.Tensor // f32, one per member; 1 when left out
	Beta           *tensor.Tensor // f32, one per member; 0 when left out
}

// TEGeneralGroupedGemmForGroupedTensor multiplies the members of grouped tensors:
//
//	D_i = alpha_i · op(B_i) · op(A_i) + beta_i · D_i + bias_i
//
// with bias_i added to each row of D_i, and op and the sizes as in GenericGemm. A, B and D have the
// same number of members, each a block of rows of one tensor; members without rows are legal. With
// beta_i = 0, D_i is not read. A and B have one compute dtype; D and bias may have another; sums
// are kept in f32 or better and rounded once. D is written, or updated with Beta, and disjoint from
// all other operands, which are read. Source: TransformerEngine 2.14.
var TEGeneralGroupedGemmForGroupedTensor = newGroupedGemm("te_general_grouped_gemm_for_grouped_tensor",
	"matrix products of the members of grouped tensors", false, false)

// TEGeneralGroupedGemmForDiscreteIn is TEGeneralGroupedGemmForGroupedTensor with A
// given as a list of tensors, such as the weights of experts.
var TEGeneralGroupedGemmForDiscreteIn = newGroupedGemm("te_general_grouped_gemm_for_discrete_in",
	"matrix products of a list of tensors and the members of a grouped tensor", true, false)

// TEGeneralGroupedGemmForDiscreteOut is TEGeneralGroupedGemmForGroupedTensor with D given as a list
// of tensors, such as the weight gradients of experts, and without bias.
var TEGeneralGroupedGemmForDiscreteOut = newGroupedGemm("te_general_grouped_gemm_for_discrete_out",
	"matrix products of the members of grouped tensors, into a list of tensors", false, true)

func newGroupedGemm(name, doc string, listA, listD bool) *opregistry.Op[GroupedGemmArgs] {
	return opregistry.NewOp(name, opregistry.Schema[GroupedGemmArgs]{
		Doc:      doc,
		Validate: func(a GroupedGemmArgs) error { return validateGroupedTensors(name, a, listA, listD) },
		Operands: func(a GroupedGemmArgs) []opregistry.Operand {
			output := opregistry.AccessWrite
			if a.Beta != nil {
				output = opregistry.AccessUpdate
			}
			return grouped(grouped(grouped(check.Operands{}, "A", a.A, opregistry.AccessRead), "B", a.B, opregistry.AccessRead), "D", a.D, output).
				Read("bias", a.Bias).Read("alpha", a.Alpha).Read("beta", a.Beta)
		},
	})
}

// dims returns the sizes of the product of member i: op(B) is m×k, op(A) is k×n, D is m×n.
func (a *GroupedGemmArgs) dims(i int) (m, n, k int) {
	m, k = a.B.rows(i), a.B.cols(i)
	if a.TransB {
		m, k = k, m
	}
	n = a.A.cols(i)
	if a.TransA {
		n = a.A.rows(i)
	}
	return m, n, k
}

func validateGroupedTensors(name string, a GroupedGemmArgs, listA, listD bool) error {
	c := check.Call{Op: name}
	checkGrouped(&c, "A", "A.first_dims", &a.A, listA)
	checkGrouped(&c, "B", "B.first_dims", &a.B, false)
	checkGrouped(&c, "D", "D.first_dims", &a.D, listD)
	if c.Err != nil {
		return c.Err
	}
	n := a.B.Len()
	members(&c, "A", a.A, n)
	members(&c, "D", a.D, n)
	if c.Err == nil && n > 0 {
		c.SameDType("B", a.B.Data, "A", a.A.first())
	}
	for i := 0; i < n && c.Err == nil; i++ {
		member(&c, &a, i)
	}
	if a.Bias != nil && listD {
		c.Fail("bias", "nil with a list of outputs", "%v", a.Bias)
	} else if a.Bias != nil && c.Compute("bias", a.Bias) && c.Rank("bias", a.Bias, 2) {
		if s := a.Bias.Shape(); s[0] != n || n > 0 && s[1] != a.D.cols(0) {
			c.Fail("bias", "a row a member, with the columns of D", "%v", a.Bias)
		}
	}
	for _, x := range [...]check.Named{{Name: "alpha", Tensor: a.Alpha}, {Name: "beta", Tensor: a.Beta}} {
		if x.Tensor != nil && c.DType(x.Name, x.Tensor, tensor.F32) && c.Rank(x.Name, x.Tensor, 1) {
			c.Elements(x.Name, x.Tensor, n, "one a member")
		}
	}
	groupedApart(&c, &a)
	return c.Err
}

// first returns the tensor that holds member 0.
func (g *GroupedTensor) first() *tensor.Tensor {
	if g.List != nil {
		return g.List[0]
	}
	return g.Data
}

// checkGrouped checks one operand by itself.
func checkGrouped(c *check.Call, name, dimsName string, g *GroupedTensor, discrete bool) {
	if discrete {
		if g.Data != nil || g.FirstDims != nil || g.NumTensors != 0 {
			c.Fail(name, "a list of tensors", "a grouped tensor")
		}
		l := check.List{Name: name, Tensors: g.List}
		tensors(c, l, len(g.List))
		for i, t := range g.List {
			if c.Err == nil && !(t.DType() <= tensor.F16 && len(t.Shape()) == 2 && t.DType() == g.List[0].DType()) {
				c.Fail(l.At(i), "2 axes and one dtype f32, bf16, f16 or f64 for all", "%v", t)
			}
		}
		return
	}
	if c.Err == nil && g.List != nil {
		c.Fail(name, "a grouped tensor", "a list of tensors")
	}
	if !c.Compute(name, g.Data) || !c.Rank(name, g.Data, 2) {
		return
	}
	rows := g.Data.Shape()[0]
	if g.FirstDims == nil {
		if g.NumTensors < 0 || g.NumTensors == 0 && rows > 0 || g.NumTensors > 0 && rows%g.NumTensors != 0 {
			c.Fail(name, "a number of members that divides its "+check.Itoa(rows)+" rows", "%d", g.NumTensors)
		}
		return
	}
	if g.NumTensors != 0 {
		c.Fail(name, "no number of members beside first_dims", "%d", g.NumTensors)
	}
	if !c.Index(dimsName, g.FirstDims) || !c.Rank(dimsName, g.FirstDims, 1) {
		return
	}
	sum := 0
	for i := range g.FirstDims.NumElements() {
		n := check.Integer(g.FirstDims, i)
		if n < 0 || n > rows-sum {
			c.Fail(dimsName, "rows that add up to "+check.Itoa(rows), "%v", g.FirstDims.Float64s())
			return
		}
		sum += n
	}
	if sum != rows {
		c.Fail(dimsName, "rows that add up to "+check.Itoa(rows), "%v", g.FirstDims.Float64s())
	}
}

func members(c *check.Call, name string, g GroupedTensor, n int) {
	if c.Err == nil && g.Len() != n {
		c.Fail(name, check.Itoa(n)+" members, as B", "%d", g.Len())
	}
}

// member checks the sizes of one product.
func member(c *check.Call, a *GroupedGemmArgs, i int) {
	m, n, k := a.dims(i)
	inner := a.A.rows(i)
	if a.TransA {
		inner = a.A.cols(i)
	}
	if inner != k {
		c.Fail("A", "inner size "+check.Itoa(k)+" of op(B) for member "+check.Itoa(i), "%d", inner)
	}
	if rows, cols := a.D.rows(i), a.D.cols(i); rows != m || cols != n {
		c.Fail("D", "shape ["+check.Itoa(m)+" "+check.Itoa(n)+"] for member "+check.Itoa(i), "[%d %d]", rows, cols)
	}
}

func groupedApart(c *check.Call, a *GroupedGemmArgs) {
	if c.Err != nil {
		return
	}
	reads := [...]check.Named{
		{Name: "A", Tensor: a.A.Data}, {Name: "A.first_dims", Tensor: a.A.FirstDims}, {Name: "B", Tensor: a.B.Data}, {Name: "B.first_dims", Tensor: a.B.FirstDims},
		{Name: "D.first_dims", Tensor: a.D.FirstDims}, {Name: "bias", Tensor: a.Bias}, {Name: "alpha", Tensor: a.Alpha}, {Name: "beta", Tensor: a.Beta},
	}
	c.Apart([]check.Named{{Name: "D", Tensor: a.D.Data}}, reads[:])
	for _, t := range a.D.List {
		c.Apart([]check.Named{{Name: "D", Tensor: t}}, reads[:])
	}
	c.ListsApart([]check.List{{Name: "D", Tensors: a.D.List}}, []check.List{{Name: "A", Tensors: a.A.List}})
	for i, t := range a.A.List {
		if a.D.Data != nil && c.Err == nil && tensor.Overlap(a.D.Data, t) {
			c.Fail("D", "memory apart from "+check.List{Name: "A"}.At(i), "a view that overlaps it")
		}
	}
}

func grouped(o check.Operands, name string, g GroupedTensor, a opregistry.Access) check.Operands {
	return o.Add(name, g.Data, a).Read(name+".first_dims", g.FirstDims).All(check.List{Name: name, Tensors: g.List}, a)
}
