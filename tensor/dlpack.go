package tensor

import "unsafe"

// DLDataType is DLPack's description of an element type.
type DLDataType struct {
	Code  uint8
	Bits  uint8
	Lanes uint16
}

// DLDevice is DLPack's description of a device.
type DLDevice struct {
	Type  int32
	Index int32
}

// DLTensor has the memory layout of DLPack 1.x's DLTensor. It borrows the data:
// it is valid as long as the tensor's Storage and the struct itself are.
type DLTensor struct {
	Data       unsafe.Pointer
	Device     DLDevice
	NDim       int32
	DType      DLDataType
	Shape      *int64
	Strides    *int64
	ByteOffset uint64
}

// DLPack returns the description that other frameworks exchange. Data is the start of the Storage;
// ByteOffset is the distance from there to the first element.
func (t *Tensor) DLPack() DLTensor {
	axes := make([]int64, 2*len(t.shape))
	for i, n := range t.shape {
		axes[i] = int64(n)
		axes[len(t.shape)+i] = int64(t.strides[i])
	}
	out := DLTensor{
		Data:       t.storage.base,
		Device:     DLDevice{Type: int32(t.storage.device.Type), Index: int32(t.storage.device.Index)},
		NDim:       int32(len(t.shape)),
		DType:      t.dtype.DLPack(),
		ByteOffset: uint64(t.offset * t.dtype.Size()),
	}
	if len(t.shape) > 0 {
		out.Shape = &axes[0]
		out.Strides = &axes[len(t.shape)]
	}
	return out
}

// DLPack returns the type in DLPack's terms, the zero DLDataType for an invalid type.
func (d DType) DLPack() DLDataType {
	if !d.Valid() {
		return DLDataType{}
	}
	return DLDataType{Code: dtypes[d].dlCode, Bits: uint8(8 * d.Size()), Lanes: 1}
}
