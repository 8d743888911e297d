package gemm

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// GroupedTensor holds the matrices of one operand of a grouped product: blocks of the rows of one
// tensor, or the tensors of a list.
type GroupedTensor struct {
	Data       *tensor.Tensor   `op:"0 data compute ?"`          // [rows, cols], the members one after the other
	FirstDims  *tensor.Tensor   `op:"1 first_dims read index ?"` // the rows of each member; nil when all have the same number
	NumTensors int              `op:"2 num_tensors"`             // number of members when FirstDims is nil
	List       []*tensor.Tensor `op:"3 list compute ?"`          // the members themselves, instead of the above
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
	A      GroupedTensor  `op:"0 A read"`
	B      GroupedTensor  `op:"4 B read"`
	D      GroupedTensor  `op:"8 D write|update:beta"`
	TransA bool           `op:"12 trans_a"`
	TransB bool           `op:"13 trans_b"`
	Bias   *tensor.Tensor `op:"14 bias read compute ?"` // [n, cols of D], nil without bias
	Alpha  *tensor.Tensor `op:"15 alpha read f32 ?"`    // one per member; 1 when left out
	Beta   *tensor.Tensor `op:"16 beta read f32 ?"`     // one per member; 0 when left out
}

// TEGeneralGroupedGemmForGroupedTensor multiplies the members of grouped tensors.
var TEGeneralGroupedGemmForGroupedTensor = newGroupedGemm("te_general_grouped_gemm_for_grouped_tensor",
	"matrix products of the members of grouped tensors", `
		te_general_grouped_gemm_for_grouped_tensor multiplies the members of grouped tensors:

		  D_i = alpha_i · op(B_i) · op(A_i) + beta_i · D_i + bias_i

		with bias_i added to each row of D_i, and op and the sizes as in generic_gemm. A, B and D
		have the same number of members, each a block of rows of one tensor; members without rows
		are legal. With beta_i = 0, D_i is not read. A and B have one compute dtype; D and bias may
		have another; sums are kept in f32 or better and rounded once. Source: TransformerEngine
		2.14.

		Arguments:

		  A.data        [rows, cols]: the members one after the other; so B.data and D.data
		  A.first_dims  the rows of each member; left out when all have the same number
		  A.num_tensors the number of members when first_dims is left out
		  A.list        the members, in place of the three above; so B.list and D.list
		  bias   [n, cols of D], nil without bias
		  alpha  one per member; 1 when left out
		  beta   one per member; 0 when left out

		Example:

		  A.data=[[1 2] [3 4]] A.num_tensors=2 B.data=[[5] [1] [2]] B.first_dims=i32[1 2] alpha=[1
		    2] bias=[[0.5 0.5] [0 0]] D.first_dims=i32[1 2] → D.data=[[5.5 10.5] [6 8] [12 16]]
	`, false, false)

// TEGeneralGroupedGemmForDiscreteIn is TEGeneralGroupedGemmForGroupedTensor with A given as a list
// of tensors, such as the weights of experts.
var TEGeneralGroupedGemmForDiscreteIn = newGroupedGemm("te_general_grouped_gemm_for_discrete_in",
	"matrix products of a list of tensors and the members of a grouped tensor", `
		te_general_grouped_gemm_for_discrete_in is te_general_grouped_gemm_for_grouped_tensor with A
		given as a list of tensors, such as the weights of experts.

		Arguments:

		  bias   [n, cols of D], nil without bias
		  alpha  one per member; 1 when left out
		  beta   one per member; 0 when left out

		Example:

		  A.list[0]=[[1 2]] A.list[1]=[[3 4]] B.data=[[5] [1] [2]] B.first_dims=i32[1 2]
		    D.first_dims=i32[1 2] → D.data=[[5 10] [3 4] [6 8]]
	`, true, false)

// TEGeneralGroupedGemmForDiscreteOut is TEGeneralGroupedGemmForGroupedTensor with D given as a
// list of tensors, such as the weight gradients of experts, and without bias.
var TEGeneralGroupedGemmForDiscreteOut = newGroupedGemm("te_general_grouped_gemm_for_discrete_out",
	"matrix products of the members of grouped tensors, into a list of tensors", `
		te_general_grouped_gemm_for_discrete_out is te_general_grouped_gemm_for_grouped_tensor with
		D given as a list of tensors, such as the weight gradients of experts, and without bias.

		Arguments:

		  bias   [n, cols of D], nil without bias
		  alpha  one per member; 1 when left out
		  beta   one per member; 0 when left out

		Example:

		  A.data=[[1 2] [3 4]] A.num_tensors=2 B.data=[[5] [6]] B.num_tensors=2 → D.list[0]=[[5 10]]
		    D.list[1]=[[18 24]]
	`, false, true)

func newGroupedGemm(name, doc, formula string, listA, listD bool) *opregistry.Op[GroupedGemmArgs] {
	return opregistry.NewOp(name, opregistry.Schema[GroupedGemmArgs]{
		Doc: doc, Formula: formula,
		Tolerance: opregistry.Arithmetic(2e-5, 1e-5, "as te_general_grouped_gemm"),
		Check:     func(c *opregistry.Check, a *GroupedGemmArgs) { checkGroupedTensors(c, a, listA, listD) },
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

func checkGroupedTensors(c *opregistry.Check, a *GroupedGemmArgs, listA, listD bool) {
	checkGroup(c, groupNames{"A", "A.data", "A.first_dims", "A.list"}, &a.A, listA)
	checkGroup(c, groupNames{"B", "B.data", "B.first_dims", "B.list"}, &a.B, false)
	checkGroup(c, groupNames{"D", "D.data", "D.first_dims", "D.list"}, &a.D, listD)
	n := a.B.Len()
	checkMembers(c, "A", a.A, n)
	checkMembers(c, "D", a.D, n)
	if c.OK() && n > 0 {
		c.SameDType("B.data", a.B.Data, "A", a.A.first())
	}
	for i := 0; i < n && c.OK(); i++ {
		checkMember(c, a, i)
	}
	if a.Bias != nil && listD {
		c.Absent("bias", a.Bias, "with a list of outputs")
	} else if a.Bias != nil && c.Rank("bias", a.Bias, 2) {
		if s := a.Bias.Shape(); s[0] != n || n > 0 && s[1] != a.D.cols(0) {
			c.Fail("bias", "a row per member, with the columns of D", "%v", a.Bias)
		}
	}
	if a.Alpha != nil && c.OK() && c.Rank("alpha", a.Alpha, 1) {
		c.Elements("alpha", a.Alpha, n, "one per member")
	}
	if a.Beta != nil && c.OK() && c.Rank("beta", a.Beta, 1) {
		c.Elements("beta", a.Beta, n, "one per member")
	}
}

// first returns the tensor that holds member 0.
func (g *GroupedTensor) first() *tensor.Tensor {
	if g.List != nil {
		return g.List[0]
	}
	return g.Data
}

// groupNames are the names of a GroupedTensor and of its operands.
type groupNames struct{ group, data, dims, list string }

// checkGroup checks one grouped tensor by itself.
func checkGroup(c *opregistry.Check, name groupNames, g *GroupedTensor, discrete bool) {
	if discrete {
		if g.Data != nil || g.FirstDims != nil || g.NumTensors != 0 {
			c.Fail(name.group, "a list of tensors", "a grouped tensor")
		}
		for i, t := range g.List {
			if !c.OK() || len(t.Shape()) == 2 && t.DType() == g.List[0].DType() {
				continue
			}
			c.Fail(name.list+"["+check.Itoa(i)+"]", "2 axes and one dtype for all", "%v", t)
		}
		return
	}
	if g.List != nil {
		c.Fail(name.group, "a grouped tensor", "a list of tensors")
	}
	if !c.Given(name.data, g.Data) || !c.Rank(name.data, g.Data, 2) {
		return
	}
	rows := g.Data.Shape()[0]
	if g.FirstDims == nil {
		if g.NumTensors < 0 || g.NumTensors == 0 && rows > 0 || g.NumTensors > 0 && rows%g.NumTensors != 0 {
			c.Fail(name.group, "a number of members that divides its "+check.Itoa(rows)+" rows", "%d", g.NumTensors)
		}
		return
	}
	if g.NumTensors != 0 {
		c.Fail(name.group, "no number of members beside first_dims", "%d", g.NumTensors)
	}
	if !c.Rank(name.dims, g.FirstDims, 1) {
		return
	}
	sum := 0
	for i := range g.FirstDims.NumElements() {
		n := check.Integer(g.FirstDims, i)
		if n < 0 || n > rows-sum {
			sum = -1
			break
		}
		sum += n
	}
	if sum != rows {
		c.Fail(name.dims, "rows that add up to "+check.Itoa(rows), "%v", check.Host(g.FirstDims).Float64s())
	}
}

func checkMembers(c *opregistry.Check, name string, g GroupedTensor, n int) {
	if c.OK() && g.Len() != n {
		c.Fail(name, check.Itoa(n)+" members, as B", "%d", g.Len())
	}
}

// checkMember checks the sizes of one product.
func checkMember(c *opregistry.Check, a *GroupedGemmArgs, i int) {
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
