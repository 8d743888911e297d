package library

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
)

// operands are the tensors of a call, kept for the next one.
type operands struct {
	tensors []*tensor.Borrowed
	used    int
}

func (o *operands) clear() {
	for _, t := range o.tensors[:o.used] {
		t.Clear()
	}
	o.used = 0
}

// tensor returns the tensor that a primus_tensor describes.
func (o *operands) tensor(at unsafe.Pointer) (*tensor.Tensor, error) {
	if o.used == len(o.tensors) {
		o.tensors = append(o.tensors, new(tensor.Borrowed))
	}
	t := o.tensors[o.used]
	o.used++
	return t.Point((*tensor.DLTensor)(at))
}

// maxItems bounds what a list may hold.
const maxItems = 1 << 20

var errNoList = errors.New("given NULL, want the address of a list")

// items returns the items of a list, nil for an empty one, which stands for a list that was left
// out.
func items[T any](l *abi.List) ([]T, error) {
	switch {
	case l == nil:
		return nil, errNoList
	case l.Count > maxItems:
		return nil, fmt.Errorf("given a list of %d items, want at most %d", l.Count, maxItems)
	case l.Count > 0 && l.Items == 0:
		return nil, fmt.Errorf("given a list of %d items at NULL, want their address", l.Count)
	}
	if l.Count == 0 {
		return nil, nil
	}
	return unsafe.Slice((*T)(address(uint64(l.Items))), l.Count), nil
}

// list returns the tensors of a primus_tensor_list. One without a dtype stands for a tensor that
// was left out.
func (o *operands) list(l *abi.List) ([]*tensor.Tensor, error) {
	given, err := items[tensor.DLTensor](l)
	if err != nil || given == nil {
		return nil, err
	}
	out := make([]*tensor.Tensor, len(given))
	for i := range given {
		if given[i].DType == (tensor.DLDataType{}) {
			continue
		}
		if out[i], err = o.tensor(unsafe.Pointer(&given[i])); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return out, nil
}

// lists returns the tensors of a primus_tensor_lists.
func (o *operands) lists(l *abi.List) ([][]*tensor.Tensor, error) {
	given, err := items[abi.List](l)
	if err != nil || given == nil {
		return nil, err
	}
	out := make([][]*tensor.Tensor, len(given))
	for i := range given {
		if out[i], err = o.list(&given[i]); err != nil {
			return nil, fmt.Errorf("list %d: %w", i, err)
		}
	}
	return out, nil
}

// numbers returns the numbers of a primus_ints.
func numbers(l *abi.List) ([]int, error) {
	given, err := items[int64](l)
	if err != nil || given == nil {
		return nil, err
	}
	out := make([]int, len(given))
	for i, n := range given {
		out[i] = int(n)
	}
	return out, nil
}

// address turns an address that C gave into a pointer.
func address(value uint64) unsafe.Pointer {
	p := uintptr(value)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}
