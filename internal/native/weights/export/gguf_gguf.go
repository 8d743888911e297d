package export

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/primus-fl/primus/tensor"
)

const (
	magic     = "GGUF"
	version   = 3
	alignment = 32
)

// Type is a type of elements, with the numbers of the format.
type Type uint32

// The types of elements.
const (
	F32  Type = 0
	F16  Type = 1
	Q8_0 Type = 8
	BF16 Type = 30
)

// String returns the name of the type.
func (t Type) String() string {
	if name, ok := map[Type]string{F32: "f32", F16: "f16", Q8_0: "q8_0", BF16: "bf16"}[t]; ok {
		return name
	}
	return fmt.Sprintf("type(%d)", uint32(t))
}

// BlockSize is the number of elements of a block of Q8_0.
const BlockSize = 32

// Size returns the bytes of n elements, and whether they can be of the type: n is a multiple of
// BlockSize for Q8_0.
func (t Type) Size(n int) (bytes int64, ok bool) {
	switch t {
	case F32:
		return 4 * int64(n), true
	case F16, BF16:
		return 2 * int64(n), true
	case Q8_0:
		return int64(n/BlockSize) * (2 + BlockSize), n%BlockSize == 0
	default:
		return 0, false
	}
}

// kind is a type of values, with the numbers of the format.
type kind uint32

const (
	kindU8 kind = iota
	kindI8
	kindU16
	kindI16
	kindU32
	kindI32
	kindF32
	kindBool
	kindString
	kindArray
	kindU64
	kindI64
	kindF64
)

// Value is a key with its value: uint32, float32, bool, string, []string, []float32 or []int32.
type Value struct {
	Key   string
	Value any
}

// Tensor is a tensor to be written. Write writes its elements, row by row, in its type.
type Tensor struct {
	Name  string
	Type  Type
	Shape tensor.Shape
	Write func(io.Writer) error
}

// Write writes a file.
func Write(w io.Writer, values []Value, tensors []Tensor) error {
	head := []byte(magic)
	head = binary.LittleEndian.AppendUint32(head, version)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(tensors)))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(values)))
	for _, v := range values {
		head = appendString(head, v.Key)
		var ok bool
		if head, ok = appendValue(head, v.Value); !ok {
			return fmt.Errorf("gguf: %s: given a value of type %T", v.Key, v.Value)
		}
	}
	at := int64(0)
	for _, t := range tensors {
		size, ok := t.Type.Size(t.Shape.NumElements())
		if !ok || t.Type == Q8_0 && t.Shape.Cols()%BlockSize != 0 {
			return fmt.Errorf("gguf: tensor %q: given %v of %v, want rows of a multiple of %d elements", t.Name, t.Shape, t.Type, BlockSize)
		}
		head = appendString(head, t.Name)
		head = binary.LittleEndian.AppendUint32(head, uint32(len(t.Shape)))
		for i := len(t.Shape) - 1; i >= 0; i-- {
			head = binary.LittleEndian.AppendUint64(head, uint64(t.Shape[i]))
		}
		head = binary.LittleEndian.AppendUint32(head, uint32(t.Type))
		head = binary.LittleEndian.AppendUint64(head, uint64(at))
		at += aligned(size)
	}
	if _, err := w.Write(pad(head)); err != nil {
		return err
	}
	for _, t := range tensors {
		counted := &counter{w: w}
		if err := t.Write(counted); err != nil {
			return fmt.Errorf("gguf: tensor %q: %w", t.Name, err)
		}
		size, _ := t.Type.Size(t.Shape.NumElements())
		if counted.n != size {
			return fmt.Errorf("gguf: tensor %q: given %d bytes, want %d", t.Name, counted.n, size)
		}
		if _, err := w.Write(make([]byte, aligned(size)-size)); err != nil {
			return err
		}
	}
	return nil
}

// counter counts the bytes written to it.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

func pad(b []byte) []byte { return append(b, make([]byte, aligned(int64(len(b)))-int64(len(b)))...) }

func appendString(dst []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(dst, uint64(len(s))), s...)
}

func appendKind(dst []byte, k kind) []byte { return binary.LittleEndian.AppendUint32(dst, uint32(k)) }

func appendArray(dst []byte, of kind, n int) []byte {
	return binary.LittleEndian.AppendUint64(appendKind(appendKind(dst, kindArray), of), uint64(n))
}

// appendValue appends a value after its type.
func appendValue(dst []byte, value any) ([]byte, bool) {
	switch v := value.(type) {
	case uint32:
		return binary.LittleEndian.AppendUint32(appendKind(dst, kindU32), v), true
	case float32:
		return binary.LittleEndian.AppendUint32(appendKind(dst, kindF32), math.Float32bits(v)), true
	case bool:
		b := byte(0)
		if v {
			b = 1
		}
		return append(appendKind(dst, kindBool), b), true
	case string:
		return appendString(appendKind(dst, kindString), v), true
	case []string:
		dst = appendArray(dst, kindString, len(v))
		for _, s := range v {
			dst = appendString(dst, s)
		}
		return dst, true
	case []float32:
		dst = appendArray(dst, kindF32, len(v))
		for _, f := range v {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
		}
		return dst, true
	case []int32:
		dst = appendArray(dst, kindI32, len(v))
		for _, i := range v {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(i))
		}
		return dst, true
	default:
		return dst, false
	}
}

// AppendQ8 appends rows of a multiple of BlockSize numbers as blocks of Q8_0: the scale is the
// largest magnitude / 127, and a number becomes round(number / scale), half away from zero.
func AppendQ8(dst []byte, values []float32) ([]byte, error) {
	for ; len(values) >= BlockSize; values = values[BlockSize:] {
		most := float32(0)
		for _, v := range values[:BlockSize] {
			most = max(most, max(v, -v))
		}
		scale := most / 127
		half := tensor.ToFloat16(scale)
		if f := float64(half.Float32()); math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, fmt.Errorf("given a block with the magnitude %v, which the f16 scale of q8_0 cannot hold", most)
		}
		dst = binary.LittleEndian.AppendUint16(dst, uint16(half))
		inverse := float32(0)
		if scale > 0 {
			inverse = 1 / scale
		}
		for _, v := range values[:BlockSize] {
			dst = append(dst, byte(int8(math.Round(float64(v*inverse)))))
		}
	}
	return dst, nil
}
