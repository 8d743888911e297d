package opmanager

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// unexpectedWrite returns the name of the first operand that an impl changed and should not have
// changed, "" if there is none. An impl that declined a call should not have changed any operand;
// otherwise those that the op only reads must be unchanged.
func unexpectedWrite(before *sampledCall, a opregistry.Call, declined bool) string {
	operands := a.Operands()
	for i, old := range before.args.Operands() {
		o := operands[i]
		if (declined || o.Access == opregistry.AccessRead && !overlapsWritten(operands, o.Tensor)) && !sameContent(old.Tensor, o.Tensor) {
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

// sameContent reports whether two tensors of the same shape and dtype hold the same bits. Tensors
// that cannot be read count as equal.
func sameContent(x, y *tensor.Tensor) bool {
	if x == nil || y == nil {
		return true
	}
	one, err := argcopy.Tensor(x)
	if err != nil {
		return true
	}
	other, err := argcopy.Tensor(y)
	return err != nil || bytes.Equal(bytesOf(one), bytesOf(other))
}

// bytesOf returns the memory of a contiguous tensor.
func bytesOf(t *tensor.Tensor) []byte {
	return unsafe.Slice((*byte)(t.Pointer()), t.NumElements()*t.DType().Size())
}

// checkDeclined reports a violation if an impl wrote to an operand before it declined a call, and
// then restores all operands, so that the next impl is not blamed for it.
func (b *binding) checkDeclined(t *table, c *candidate, before *sampledCall, a opregistry.Call) error {
	name := unexpectedWrite(before, a, true)
	if name == "" {
		return nil
	}
	b.violated(t, c, &VerificationFailed{Op: b.name, Impl: c.info, Operand: name, UnexpectedWrite: "was written to before the impl declined"})
	operands := a.Operands()
	for i, old := range before.args.Operands() {
		if old.Tensor == nil {
			continue
		}
		if err := operands[i].Tensor.CopyFrom(old.Tensor); err != nil {
			return err
		}
	}
	return nil
}

// violated counts and reports a violation, which may start a quarantine.
func (b *binding) violated(t *table, c *candidate, v *VerificationFailed) {
	c.counters.verify.violated()
	b.m.core.emit(*v)
	if t.policy.Verify.Quarantine {
		set := t.policy.Quarantine
		set.Failures, set.Disabled = 1, false
		b.m.core.countFailure(set, b.name, c, v)
	}
}
