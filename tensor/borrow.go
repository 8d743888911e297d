package tensor

// Borrowed is a tensor over memory that another framework describes again for every call. It is
// used again for many calls, which allocates nothing while the description keeps its dtype, device,
// shape and strides. The zero Borrowed points nowhere. It is not safe for concurrent use.
type Borrowed struct {
	tensor *Tensor // nil before the first use
	packed bool    // it was described without strides
}

// Point returns the tensor that d describes, with the rules of FromDLPack. It is valid until Clear
// or the next Point.
func (b *Borrowed) Point(d *DLTensor) (*Tensor, error) {
	if b.tensor == nil || d == nil || !b.same(d) {
		t, err := FromDLPack(d, nil)
		if err != nil {
			return nil, err
		}
		b.tensor, b.packed = t, d.Strides == nil
		return t, nil
	}
	if err := b.tensor.locate(d); err != nil {
		b.Clear()
		return nil, err
	}
	return b.tensor, nil
}

// Clear forgets the address of the memory. Its owner may then return it to the system, which may
// give it to the Go runtime, whose collector takes an address of its own memory for a reference.
func (b *Borrowed) Clear() {
	if b.tensor != nil {
		b.tensor.storage.base = nil
	}
}

// same reports whether d describes a tensor like the last one, perhaps in other memory.
func (b *Borrowed) same(d *DLTensor) bool {
	t := b.tensor
	if int(d.NDim) != len(t.shape) || (d.Strides == nil) != b.packed || t.dtype.DLPack() != d.DType {
		return false
	}
	if on := t.storage.device; int32(on.Type) != d.Device.Type || int32(on.Index) != d.Device.Index {
		return false
	}
	return d.NDim == 0 || d.Shape != nil && equal(d.Shape, t.shape) && (b.packed || equal(d.Strides, t.strides))
}
