package opmanager

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// trespass returns the first operand of a verified call that an impl has changed and should not
// have: any when it declined, otherwise one that is only read. The name is "" when there is none.
func (b *Bound[A]) trespass(s *shadow[A], a A, declined bool) string {
	operands := b.op.Operands(a)
	for i, before := range b.op.Operands(s.args) {
		o := operands[i]
		if (declined || o.Access == opregistry.AccessRead && !overlapsWritten(operands, o.Tensor)) && !sameContent(before.Tensor, o.Tensor) {
			return o.Name
		}
	}
	return ""
}

// overlapsWritten reports whether a tensor shares memory with an operand that an impl may write.
func overlapsWritten(operands []opregistry.Operand, t *tensor.Tensor) bool {
	return slices.ContainsFunc(operands, func(o opregistry.Operand) bool {
		return o.Access != opregistry.AccessRead && o.Tensor != nil && tensor.Overlap(o.Tensor, t)
	})
}

// sameContent reports whether two tensors of one shape and dtype hold the same bits. What cannot
// be read is taken to.
func sameContent(x, y *tensor.Tensor) bool {
	if x == nil || y == nil {
		return true
	}
	one, err := copyTensor(x)
	if err != nil {
		return true
	}
	other, err := copyTensor(y)
	return err != nil || bytes.Equal(bytesOf(one), bytesOf(other))
}

// bytesOf returns the memory of a contiguous tensor.
func bytesOf(t *tensor.Tensor) []byte {
	return unsafe.Slice((*byte)(t.Pointer()), t.NumElements()*t.DType().Size())
}

// accuse reports an impl that declined a verified call after it had written to an operand, and
// gives all operands what they held, so that the next impl is judged by what it computes itself.
func (b *Bound[A]) accuse(t *table, c *candidate, s *shadow[A], a A) error {
	name := b.trespass(s, a, true)
	if name == "" {
		return nil
	}
	b.violated(t, c, &VerificationFailed{Op: b.op.Name(), Impl: c.info, Operand: name, Trespass: "was written to before the impl declined"})
	operands := b.op.Operands(a)
	for i, before := range b.op.Operands(s.args) {
		if before.Tensor == nil {
			continue
		}
		if err := operands[i].Tensor.CopyFrom(before.Tensor); err != nil {
			return err
		}
	}
	return nil
}

// violated counts and reports a violation.
func (b *Bound[A]) violated(t *table, c *candidate, v *VerificationFailed) {
	c.counters.verify.violated()
	b.m.core.emit(*v)
	if t.policy.Verify.Quarantine {
		set := t.policy.Quarantine
		set.Failures, set.Disabled = 1, false
		b.m.core.setAside(set, b.op.Name(), c, v)
	}
}
