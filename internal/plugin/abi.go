package plugin

// The indexes of types that arguments have.
const (
	None   = 0
	Int    = 1
	Bool   = 2
	Float  = 3
	Tensor = 7 // a pointer to a DLTensor that the caller owns
)

// FirstObject is the first index of a type whose values are objects with a count of references.
const FirstObject = 64

// Error is the index of the type of errors.
const Error = 67

// Any is TVMFFIAny: an argument or a result.
type Any struct {
	Type  int32
	_     uint32
	Value uint64 // an int64, the bits of a float64, or a pointer
}

// Object is TVMFFIObject, with which every object begins.
type Object struct {
	References uint64
	Type       int32
	_          uint32
	Deleter    uintptr
}

// Bytes is TVMFFIByteArray.
type Bytes struct {
	Data uintptr
	Size uint64
}

// ErrorObject is the beginning of an error: a TVMFFIObject and a TVMFFIErrorCell.
type ErrorObject struct {
	Object
	Kind, Message Bytes
}

// The functions of libtvm_ffi that a caller of functions needs.
const (
	MoveFromRaised = "TVMFFIErrorMoveFromRaised"
	DecRef         = "TVMFFIObjectDecRef"
)
