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
func unexpectedWrite(before, a opregistry.Call, declined bool) string {
	operands := a.Operands()
	for i, old := range before.Operands() {
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
	one, err := dense(x)
	if err != nil {
		return true
	}
	other, err := dense(y)
	return err != nil || bytes.Equal(bytesOf(one), bytesOf(other))
}

// dense returns a tensor itself, or a contiguous copy in host memory if it is not that.
func dense(t *tensor.Tensor) (*tensor.Tensor, error) {
	if t.OnHost() && t.IsContiguous() {
		return t, nil
	}
	return argcopy.Tensor(t)
}

// bytesOf returns the memory of a contiguous tensor.
func bytesOf(t *tensor.Tensor) []byte {
	return unsafe.Slice((*byte)(t.Pointer()), t.NumElements()*t.DType().Size())
}

// checkDeclined reports a violation if an impl wrote to an operand before it declined a call, and
// then restores all operands, so that the next impl is not blamed for it.
func (b *binding) checkDeclined(t *table, c *candidate, k *check) error {
	if k == nil || k.problem != "" {
		return nil
	}
	for n, p := range k.parts {
		if name := unexpectedWrite(p.before, p.call, true); name != "" {
			k.wrong = n
			b.violated(t, c, k, &VerificationFailed{Op: b.name, Impl: c.info, Operand: name, UnexpectedWrite: "was written to before the impl declined"})
			return k.restore()
		}
	}
	return nil
}
