package safetensors

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/tensor"
)

// File is an open safetensors file whose header has been read and checked.
type File struct {
	name   string
	r      io.ReaderAt
	closer io.Closer // nil when the caller owns r
	data   int64     // where the data part begins
	header *header
}

// Open reads and checks the header of the file at path. All reads of the File end with ctx. The
// caller closes the File.
func Open(ctx context.Context, path string) (*File, error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("safetensors: %w", err), f.Close())
	}
	file, err := NewFile(ctx, path, f, info.Size())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file.closer = f
	return file, nil
}

// NewFile reads and checks the header of size bytes of r. name stands for the
// file in errors. r must stay readable as long as the File is used; all reads end with ctx. A
// header that takes too much is a *meter.Error.
func NewFile(ctx context.Context, name string, r io.ReaderAt, size int64) (*File, error) {
	if err := checkByteOrder(); err != nil {
		return nil, err
	}
	fail := func(got, want string) (*File, error) {
		return nil, &FormatError{File: name, Got: got, Want: want}
	}
	if size < lengthBytes {
		return fail(fmt.Sprintf("%d bytes", size), "at least 8: is the file truncated?")
	}
	var length [lengthBytes]byte
	if err := readAt(r, length[:], 0); err != nil {
		return nil, fmt.Errorf("safetensors: %s: read the header length: %w", name, err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	m := meter.New(ctx, "the header", "is this a safetensors file? If it is, divide its tensors among several files", meter.Budget{Bytes: MaxHeader, Steps: maxTokens, Unit: "tokens"})
	if err := m.Allocate(int64(min(n, math.MaxInt64))); err != nil {
		return nil, fmt.Errorf("safetensors: %s: given a header of %d bytes: %w", name, n, err)
	}
	data := lengthBytes + int64(n)
	if data > size {
		return fail(fmt.Sprintf("a header of %d bytes in a file of %d", n, size), "a file that holds its header: is it truncated?")
	}
	text := make([]byte, n)
	if err := m.ReadAt(r, text, lengthBytes); err != nil {
		return nil, fmt.Errorf("safetensors: %s: read the header: %w", name, err)
	}
	h, err := parseHeader(name, text, m)
	if err != nil {
		return nil, err
	}
	switch have := size - data; {
	case have < h.size:
		return fail(fmt.Sprintf("%d bytes of data", have), fmt.Sprintf("%d: the file is truncated", h.size))
	case have > h.size:
		return fail(fmt.Sprintf("%d bytes of data", have), fmt.Sprintf("%d: there are bytes after the last tensor", h.size))
	}
	return &File{name: name, r: meter.ReaderAt(ctx, r), data: data, header: h}, nil
}

// Close closes the file. It is safe to call more than once.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	closer := f.closer
	f.closer = nil
	return closer.Close()
}

// Name returns the path, or the name given to NewFile.
func (f *File) Name() string { return f.name }

// Names returns the names of the tensors in sorted order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.header.tensors)) }

// Metadata returns a copy of the __metadata__ map; it is empty when there is none.
func (f *File) Metadata() map[string]string {
	out := make(map[string]string, len(f.header.metadata))
	maps.Copy(out, f.header.metadata)
	return out
}

// Info returns dtype and shape of a tensor. The caller must not change the shape.
func (f *File) Info(name string) (Info, bool) {
	info, ok := f.header.tensors[name]
	return info, ok
}

// Check compares the tensor of this name with a dtype and shape; a difference,
// or a missing tensor, gives a *MismatchError.
func (f *File) Check(name string, d tensor.DType, shape tensor.Shape) error {
	want := Info{DType: d, Shape: shape}
	info, ok := f.Info(name)
	if !ok {
		return &MismatchError{File: f.name, Tensor: name, Want: want.String()}
	}
	if info.DType != d || !info.Shape.Equal(shape) {
		return &MismatchError{File: f.name, Tensor: name, Got: info.String(), Want: want.String()}
	}
	return nil
}

// ReadInto fills t with the tensor of this name. t must have its dtype and shape, be contiguous and
// lie in host memory or on a device to which it can be copied. When reading fails halfway, the
// content of t is undefined.
func (f *File) ReadInto(name string, t *tensor.Tensor) error {
	if t != nil && !t.OnHost() && t.Readable() {
		return f.readAcross(name, t)
	}
	dst, err := hostBytes(t)
	if err != nil {
		return fmt.Errorf("safetensors: %s: tensor %q: %w", f.name, name, err)
	}
	if err := f.Check(name, t.DType(), t.Shape()); err != nil {
		return err
	}
	return f.read(name, dst)
}

// readAcross is ReadInto for a tensor on a device.
func (f *File) readAcross(name string, t *tensor.Tensor) error {
	if err := f.Check(name, t.DType(), t.Shape()); err != nil {
		return err
	}
	data, err := f.Bytes(name)
	if err != nil {
		return err
	}
	host, err := tensor.FromBytes(data, t.DType(), t.Shape()...)
	if err == nil {
		err = t.CopyFrom(host)
	}
	if err != nil {
		return fmt.Errorf("safetensors: %s: tensor %q: %w", f.name, name, err)
	}
	return nil
}

// Bytes returns the data of a tensor in new memory.
func (f *File) Bytes(name string) ([]byte, error) {
	info, ok := f.Info(name)
	if !ok {
		return nil, &MismatchError{File: f.name, Tensor: name, Want: "one of its tensors"}
	}
	if info.Size() > math.MaxInt {
		return nil, fmt.Errorf("safetensors: %s: tensor %q: %d bytes do not fit in memory", f.name, name, info.Size())
	}
	dst := make([]byte, info.Size())
	return dst, f.read(name, dst)
}

func (f *File) read(name string, dst []byte) error {
	info := f.header.tensors[name]
	if err := readAt(f.r, dst, f.data+info.begin); err != nil {
		return fmt.Errorf("safetensors: %s: read tensor %q: %w", f.name, name, err)
	}
	if info.DType == tensor.Bool {
		if i := slices.IndexFunc(dst, func(b byte) bool { return b > 1 }); i >= 0 {
			return &FormatError{File: f.name, Tensor: name, Got: fmt.Sprintf("the byte %d at element %d", dst[i], i), Want: "0 or 1 in a BOOL tensor"}
		}
	}
	return nil
}

// Section returns the data of a tensor, which is readable until Close.
func (f *File) Section(name string) (*io.SectionReader, error) {
	info, ok := f.Info(name)
	if !ok {
		return nil, &MismatchError{File: f.name, Tensor: name, Want: "one of its tensors"}
	}
	return io.NewSectionReader(f.r, f.data+info.begin, info.Size()), nil
}

// Read returns the elements of a tensor whose dtype is that of T.
func Read[T tensor.Element](f *File, name string) ([]T, tensor.Shape, error) {
	info, ok := f.Info(name)
	d := tensor.DTypeOf[T]()
	if !ok {
		return nil, nil, &MismatchError{File: f.name, Tensor: name, Want: "a tensor of " + d.String()}
	}
	if info.DType != d {
		return nil, nil, &MismatchError{File: f.name, Tensor: name, Got: info.String(), Want: d.String()}
	}
	out := make([]T, info.Shape.NumElements())
	t, err := tensor.FromSlice(out, info.Shape...)
	if err != nil {
		return nil, nil, fmt.Errorf("safetensors: %s: tensor %q: %w", f.name, name, err)
	}
	if err := f.ReadInto(name, t); err != nil {
		return nil, nil, err
	}
	return out, info.Shape, nil
}

// readAt fills dst. A reader may report the end together with the last byte.
func readAt(r io.ReaderAt, dst []byte, off int64) error {
	n, err := r.ReadAt(dst, off)
	if n == len(dst) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
