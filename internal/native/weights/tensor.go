package weights

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/tensor"
)

// Tensor is a weight in a file or in memory, under its name in Hugging Face's class of the model.
type Tensor struct {
	Name  string
	DType tensor.DType // f32, bf16 or f16
	Shape tensor.Shape
	Data  *io.SectionReader // the elements in row-major order, little-endian
}

// convertedBytes is the size of the parts in which elements are converted.
const convertedBytes = 1 << 20

// dtypes returns the types of elements that are read.
func dtypes() []tensor.DType { return []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} }

// otherDType is the error of a type that is none of dtypes.
func otherDType(d tensor.DType) error {
	return fmt.Errorf("given elements of type %v, want one of %v", d, dtypes())
}

// ReadFloat32 fills dst with elements from index at on. Those of bf16 and f16 become f32 exactly.
func (t Tensor) ReadFloat32(dst []float32, at int64) error {
	size := int64(t.DType.Size())
	var convert func(bits uint16) float32
	switch t.DType {
	case tensor.F32:
		return t.readAt(bytesOf(dst), at*size)
	case tensor.BF16:
		convert = func(bits uint16) float32 { return tensor.BFloat16(bits).Float32() }
	case tensor.F16:
		convert = func(bits uint16) float32 { return tensor.Float16(bits).Float32() }
	default:
		return fmt.Errorf("read tensor %q: %w", t.Name, otherDType(t.DType))
	}
	part := make([]byte, min(int64(len(dst))*size, convertedBytes))
	for len(dst) > 0 {
		part = part[:min(int64(len(dst))*size, convertedBytes)]
		if err := t.readAt(part, at*size); err != nil {
			return err
		}
		n := len(part) / 2
		for i := range n {
			dst[i] = convert(binary.LittleEndian.Uint16(part[2*i:]))
		}
		dst, at = dst[n:], at+int64(n)
	}
	return nil
}

// read fills a tensor of f32, bf16 or f16 of the shape of t, with elements rounded to its type.
func (t Tensor) read(to *tensor.Tensor) error {
	switch to.DType() {
	case tensor.F32:
		return fill(to, func(dst []float32) error { return t.ReadFloat32(dst, 0) })
	case tensor.BF16:
		return fill(to, func(dst []tensor.BFloat16) error { return readNarrow(t, dst) })
	case tensor.F16:
		return fill(to, func(dst []tensor.Float16) error { return readNarrow(t, dst) })
	default:
		return fmt.Errorf("read tensor %q: %w", t.Name, otherDType(to.DType()))
	}
}

func fill[T tensor.Element](to *tensor.Tensor, read func([]T) error) (err error) {
	copied := tensor.Fill(to, func(dst []T) { err = read(dst) })
	return errors.Join(err, copied)
}

func readNarrow[T tensor.BFloat16 | tensor.Float16](t Tensor, dst []T) error {
	all := bytesOf(dst)
	to := tensor.DTypeOf[T]()
	if t.DType == to {
		return t.readAt(all, 0)
	}
	return t.convert(to, func(part []byte) error {
		all = all[copy(all, part):]
		return nil
	})
}

func (t Tensor) readAt(dst []byte, at int64) error {
	if n, err := t.Data.ReadAt(dst, at); n < len(dst) {
		return fmt.Errorf("read tensor %q: %w", t.Name, err)
	}
	return nil
}

// bytesOf returns the memory of elements.
func bytesOf[T tensor.Element](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// Convert writes all elements as another type, rounded to the nearest with ties to even. A number
// that f16 cannot hold is an error.
func (t Tensor) Convert(w io.Writer, to tensor.DType) error {
	if to == t.DType {
		_, err := io.Copy(w, io.NewSectionReader(t.Data, 0, t.Data.Size()))
		return err
	}
	return t.convert(to, func(part []byte) error {
		_, err := w.Write(part)
		return err
	})
}

// convert passes all elements as another type to write, in parts.
func (t Tensor) convert(to tensor.DType, write func(part []byte) error) error {
	values := make([]float32, min(t.Shape.NumElements(), convertedBytes/4))
	var out []byte
	for at := 0; at < t.Shape.NumElements(); at += len(values) {
		values = values[:min(len(values), t.Shape.NumElements()-at)]
		if err := t.ReadFloat32(values, int64(at)); err != nil {
			return err
		}
		var err error
		if out, err = Append(out[:0], to, values); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if err := write(out); err != nil {
			return err
		}
	}
	return nil
}

// Append appends numbers as elements of f32, bf16 or f16.
func Append(dst []byte, to tensor.DType, values []float32) ([]byte, error) {
	dst = slices.Grow(dst, to.Size()*len(values))
	for _, v := range values {
		switch to {
		case tensor.F32:
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		case tensor.BF16:
			dst = binary.LittleEndian.AppendUint16(dst, uint16(tensor.ToBFloat16(v)))
		case tensor.F16:
			bits := tensor.ToFloat16(v)
			if math.IsInf(float64(bits.Float32()), 0) && !math.IsInf(float64(v), 0) {
				return nil, fmt.Errorf("given %v, which f16 cannot hold: use bf16 or f32", v)
			}
			dst = binary.LittleEndian.AppendUint16(dst, uint16(bits))
		default:
			return nil, otherDType(to)
		}
	}
	return dst, nil
}

// FromModel returns the weights of a model in host memory, which must not change while they are
// read.
func FromModel(m *model.Model) []Tensor {
	var all []Tensor
	for _, n := range m.Tensors() {
		data := bytesOf(tensor.Data[float32](n.Tensor))
		all = append(all, Tensor{n.Name, tensor.F32, n.Tensor.Shape(), io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))})
	}
	return all
}
