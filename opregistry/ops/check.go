package ops

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// OptionalFloat is a float that may be left out; its zero value is left out.
type OptionalFloat struct {
	value float32
	set   bool
}

// Float returns an OptionalFloat with a value.
func Float(v float32) OptionalFloat { return OptionalFloat{value: v, set: true} }

// Or returns the value, or def when it was left out.
func (f OptionalFloat) Or(def float32) float32 {
	if f.set {
		return f.value
	}
	return def
}

// Get returns the value and whether it was given.
func (f OptionalFloat) Get() (v float32, given bool) { return f.value, f.set }

// check keeps the first fault of a call. After a fault its methods do nothing.
type check struct {
	op  string
	err error
}

func (c *check) fail(operand, want, gotFormat string, args ...any) {
	if c.err == nil {
		c.err = &opregistry.ArgError{Op: c.op, Operand: operand, Got: fmt.Sprintf(gotFormat, args...), Want: want}
	}
}

// given requires an operand and reports whether it can be used.
func (c *check) given(name string, t *tensor.Tensor) bool {
	if c.err != nil {
		return false
	}
	if t == nil {
		c.fail(name, "a tensor", "nil")
		return false
	}
	return true
}

// compute requires an operand of a dtype that arithmetic ops store.
func (c *check) compute(name string, t *tensor.Tensor) bool {
	if !c.given(name, t) {
		return false
	}
	if !isCompute(t.DType()) {
		c.fail(name, "dtype f32, bf16, f16 or f64", "%v", t)
		return false
	}
	return true
}

// isCompute reports whether arithmetic ops store this dtype.
func isCompute(d tensor.DType) bool {
	return d == tensor.F32 || d == tensor.BF16 || d == tensor.F16 || d == tensor.F64
}

func (c *check) dtype(name string, t *tensor.Tensor, want tensor.DType) bool {
	if !c.given(name, t) {
		return false
	}
	if t.DType() != want {
		c.fail(name, "dtype "+want.String(), "%v", t)
		return false
	}
	return true
}

func (c *check) index(name string, t *tensor.Tensor) bool {
	if !c.given(name, t) {
		return false
	}
	if t.DType() != tensor.I32 && t.DType() != tensor.I64 {
		c.fail(name, "dtype i32 or i64", "%v", t)
		return false
	}
	return true
}

func (c *check) sameDType(name string, t *tensor.Tensor, other string, o *tensor.Tensor) {
	if c.err == nil && t.DType() != o.DType() {
		c.fail(name, "the dtype of "+other+", "+o.DType().String(), "%v", t)
	}
}

func (c *check) sameShape(name string, t *tensor.Tensor, other string, o *tensor.Tensor) {
	if c.err == nil && !t.Shape().Equal(o.Shape()) {
		c.fail(name, "the shape of "+other+", "+o.Shape().String(), "%v", t)
	}
}

func (c *check) rank(name string, t *tensor.Tensor, rank int) bool {
	if c.err == nil && len(t.Shape()) != rank {
		c.fail(name, fmt.Sprintf("%d axes", rank), "%v", t)
	}
	return c.err == nil
}

func (c *check) minRank(name string, t *tensor.Tensor, rank int) bool {
	if c.err == nil && len(t.Shape()) < rank {
		c.fail(name, fmt.Sprintf("at least %d axes", rank), "%v", t)
	}
	return c.err == nil
}

// elements requires a tensor of n elements, whatever its axes.
func (c *check) elements(name string, t *tensor.Tensor, n int, why string) {
	if c.err == nil && t.NumElements() != n {
		c.fail(name, fmt.Sprintf("%d elements (%s)", n, why), "%v", t)
	}
}

func (c *check) positive(name string, v float32) {
	if c.err == nil && !(v > 0) {
		c.fail(name, "a number > 0", "%v", v)
	}
}

func (c *check) finite(name string, v float32) {
	if c.err == nil && (math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)) {
		c.fail(name, "a finite number", "%v", v)
	}
}

// contiguous requires elements in row-major order without gaps.
func (c *check) contiguous(name string, t *tensor.Tensor) {
	if c.err == nil && !t.IsContiguous() {
		c.fail(name, "a contiguous tensor", "%v", t)
	}
}

// disjoint requires a written operand to share no memory with another one.
func (c *check) disjoint(name string, w *tensor.Tensor, other string, o *tensor.Tensor) {
	if c.err == nil && tensor.Overlap(w, o) {
		c.fail(name, "memory apart from "+other, "a view that overlaps %s", other)
	}
}

// named is an operand with the name that errors use for it.
type named struct {
	name string
	t    *tensor.Tensor
}

// disjointFrom requires a written operand to share no memory with any of the others.
func (c *check) disjointFrom(name string, w *tensor.Tensor, others ...named) {
	for _, o := range others {
		c.disjoint(name, w, o.name, o.t)
	}
}

// apart requires each of writes to share no memory with the others and with reads.
func (c *check) apart(writes, reads []named) {
	if c.err != nil {
		return
	}
	for i, w := range writes {
		for _, other := range [...][]named{reads, writes[i+1:]} {
			for _, o := range other {
				if w.t != nil && o.t != nil {
					c.disjoint(w.name, w.t, o.name, o.t)
				}
			}
		}
	}
}

// list is a list of operands with its name.
type list struct {
	name string
	ts   []*tensor.Tensor
}

func (l list) at(i int) string { return l.name + "[" + itoa(i) + "]" }

// listsApart requires each tensor of writes to share no memory with the others and
// with those of reads. Tensors may be nil.
func (c *check) listsApart(writes, reads []list) {
	for i, w := range writes {
		for k, x := range w.ts {
			if x == nil {
				continue
			}
			c.listApart(w, k, list{w.name, w.ts[k+1:]}, k+1)
			for _, other := range [...][]list{reads, writes[i+1:]} {
				for _, o := range other {
					c.listApart(w, k, o, 0)
				}
			}
		}
	}
}

// listApart requires tensor k of w to be apart from those of others, which begins at index first of
// its list.
func (c *check) listApart(w list, k int, others list, first int) {
	if c.err != nil {
		return
	}
	for i, o := range others.ts {
		if o != nil && tensor.Overlap(w.ts[k], o) {
			c.fail(w.at(k), "memory apart from "+others.at(first+i), "a view that overlaps it")
			return
		}
	}
}

// disjointOrSame requires a written operand to be the same view as another one or apart from it.
func (c *check) disjointOrSame(name string, w *tensor.Tensor, other string, o *tensor.Tensor) {
	if c.err == nil && tensor.Overlap(w, o) && !tensor.SameView(w, o) {
		c.fail(name, "the same view as "+other+" or memory apart from it", "a view that overlaps %s in part", other)
	}
}

// saved requires the record of a family.
func (c *check) saved(s *opregistry.Saved) {
	if c.err == nil && s == nil {
		c.fail("saved", "the *opregistry.Saved that forward and backward share", "nil")
	}
}

// operands builds the list for Schema.Operands from names, tensors and access.
type operands []opregistry.Operand

func (o operands) read(name string, t *tensor.Tensor) operands {
	return o.add(name, t, opregistry.AccessRead)
}

func (o operands) write(name string, t *tensor.Tensor) operands {
	return o.add(name, t, opregistry.AccessWrite)
}

func (o operands) update(name string, t *tensor.Tensor) operands {
	return o.add(name, t, opregistry.AccessUpdate)
}

// all adds the tensors of a list.
func (o operands) all(l list, a opregistry.Access) operands {
	for i, t := range l.ts {
		o = o.add(l.at(i), t, a)
	}
	return o
}

func (o operands) add(name string, t *tensor.Tensor, a opregistry.Access) operands {
	if t == nil {
		return o
	}
	return append(o, opregistry.Operand{Name: name, Tensor: t, Access: a})
}
