package check

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Call keeps the first fault of a call. After a fault its methods do nothing.
type Call struct {
	Op  string
	Err error
}

func (c *Call) Fail(operand, want, gotFormat string, args ...any) {
	if c.Err == nil {
		c.Err = &opregistry.ArgError{Op: c.Op, Operand: operand, Got: fmt.Sprintf(gotFormat, args...), Want: want}
	}
}

// Given requires an operand and reports whether it can be used.
func (c *Call) Given(name string, t *tensor.Tensor) bool {
	if c.Err != nil {
		return false
	}
	if t == nil {
		c.Fail(name, "a tensor", "nil")
		return false
	}
	return true
}

// Compute requires an operand of a dtype that arithmetic ops store.
func (c *Call) Compute(name string, t *tensor.Tensor) bool {
	if !c.Given(name, t) {
		return false
	}
	if !IsCompute(t.DType()) {
		c.Fail(name, "dtype f32, bf16, f16 or f64", "%v", t)
		return false
	}
	return true
}

// IsCompute reports whether arithmetic ops store this dtype.
func IsCompute(d tensor.DType) bool {
	return d == tensor.F32 || d == tensor.BF16 || d == tensor.F16 || d == tensor.F64
}

func (c *Call) DType(name string, t *tensor.Tensor, want tensor.DType) bool {
	if !c.Given(name, t) {
		return false
	}
	if t.DType() != want {
		c.Fail(name, "dtype "+want.String(), "%v", t)
		return false
	}
	return true
}

func (c *Call) Index(name string, t *tensor.Tensor) bool {
	if !c.Given(name, t) {
		return false
	}
	if t.DType() != tensor.I32 && t.DType() != tensor.I64 {
		c.Fail(name, "dtype i32 or i64", "%v", t)
		return false
	}
	return true
}

func (c *Call) SameDType(name string, t *tensor.Tensor, other string, o *tensor.Tensor) {
	if c.Err == nil && t.DType() != o.DType() {
		c.Fail(name, "the dtype of "+other+", "+o.DType().String(), "%v", t)
	}
}

func (c *Call) SameShape(name string, t *tensor.Tensor, other string, o *tensor.Tensor) {
	if c.Err == nil && !t.Shape().Equal(o.Shape()) {
		c.Fail(name, "the shape of "+other+", "+o.Shape().String(), "%v", t)
	}
}

func (c *Call) Rank(name string, t *tensor.Tensor, rank int) bool {
	if c.Err == nil && len(t.Shape()) != rank {
		c.Fail(name, fmt.Sprintf("%d axes", rank), "%v", t)
	}
	return c.Err == nil
}

func (c *Call) MinRank(name string, t *tensor.Tensor, rank int) bool {
	if c.Err == nil && len(t.Shape()) < rank {
		c.Fail(name, fmt.Sprintf("at least %d axes", rank), "%v", t)
	}
	return c.Err == nil
}

// Elements requires a tensor of n elements, whatever its axes.
func (c *Call) Elements(name string, t *tensor.Tensor, n int, why string) {
	if c.Err == nil && t.NumElements() != n {
		c.Fail(name, fmt.Sprintf("%d elements (%s)", n, why), "%v", t)
	}
}

func (c *Call) Positive(name string, v float32) {
	if c.Err == nil && !(v > 0) {
		c.Fail(name, "a number > 0", "%v", v)
	}
}

// Contiguous requires elements in row-major order without gaps.
func (c *Call) Contiguous(name string, t *tensor.Tensor) {
	if c.Err == nil && !t.IsContiguous() {
		c.Fail(name, "a contiguous tensor", "%v", t)
	}
}

// Disjoint requires a written operand to share no memory with another one.
func (c *Call) Disjoint(name string, w *tensor.Tensor, other string, o *tensor.Tensor) {
	if c.Err == nil && tensor.Overlap(w, o) {
		c.Fail(name, "memory apart from "+other, "a view that overlaps %s", other)
	}
}

// Named is an operand with the name that errors use for it.
type Named struct {
	Name   string
	Tensor *tensor.Tensor
}

// Apart requires each of writes to share no memory with the others and with reads.
func (c *Call) Apart(writes, reads []Named) {
	if c.Err != nil {
		return
	}
	for i, w := range writes {
		for _, other := range [...][]Named{reads, writes[i+1:]} {
			for _, o := range other {
				if w.Tensor != nil && o.Tensor != nil {
					c.Disjoint(w.Name, w.Tensor, o.Name, o.Tensor)
				}
			}
		}
	}
}

// List is a list of operands with its name.
type List struct {
	Name    string
	Tensors []*tensor.Tensor
}

func (l List) At(i int) string { return l.Name + "[" + Itoa(i) + "]" }

// DisjointOrSame requires a written operand to be the same view as another one or apart from it.
func (c *Call) DisjointOrSame(name string, w *tensor.Tensor, other string, o *tensor.Tensor) {
	if c.Err == nil && tensor.Overlap(w, o) && !tensor.SameView(w, o) {
		c.Fail(name, "the same view as "+other+" or memory apart from it", "a view that overlaps %s in part", other)
	}
}

// Saved requires the record of a family.
func (c *Call) Saved(s *opregistry.Saved) {
	if c.Err == nil && s == nil {
		c.Fail("saved", "the *opregistry.Saved that forward and backward share", "nil")
	}
}

// Operands builds the list for Schema.Operands from names, tensors and access.
type Operands []opregistry.Operand

func (o Operands) Read(name string, t *tensor.Tensor) Operands {
	return o.Add(name, t, opregistry.AccessRead)
}

func (o Operands) Write(name string, t *tensor.Tensor) Operands {
	return o.Add(name, t, opregistry.AccessWrite)
}

func (o Operands) Update(name string, t *tensor.Tensor) Operands {
	return o.Add(name, t, opregistry.AccessUpdate)
}

// All adds the tensors of a list.
func (o Operands) All(l List, a opregistry.Access) Operands {
	for i, t := range l.Tensors {
		o = o.Add(l.At(i), t, a)
	}
	return o
}

func (o Operands) Add(name string, t *tensor.Tensor, a opregistry.Access) Operands {
	if t == nil {
		return o
	}
	return append(o, opregistry.Operand{Name: name, Tensor: t, Access: a})
}
