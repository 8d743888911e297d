package torchfile

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/tensor"
)

// archive is a file of torch.save: a zip file with a pickle and the memory of each tensor.
type archive struct {
	r     *io.SectionReader
	files map[string]*zip.File // by name, without the folder that holds all of them
	root  any
}

func readArchive(ctx context.Context, r *io.SectionReader) (*archive, error) {
	z, err := zip.NewReader(r, r.Size())
	if err != nil {
		return nil, fmt.Errorf("given bytes that are not a file of torch.save (%w): want its zip format; the file may be cut short", err)
	}
	a := &archive{r: r, files: map[string]*zip.File{}}
	for _, f := range z.File {
		_, name, _ := strings.Cut(f.Name, "/")
		a.files[name] = f
	}
	if f := a.files["byteorder"]; f != nil {
		if text, err := a.section("byteorder"); err == nil && f.UncompressedSize64 == 3 {
			order := make([]byte, 3)
			if _, err := text.ReadAt(order, 0); err != nil || string(order) == "big" {
				return nil, fmt.Errorf("given numbers in big-endian order, want little-endian")
			}
		}
	}
	s, err := a.section("data.pkl")
	if err != nil {
		return nil, err
	}
	budget := newMeter(ctx)
	text, err := read(s, budget)
	if err != nil {
		return nil, err
	}
	a.root, err = unpickle(text, budget)
	return a, err
}

// section returns a part of the archive, which has it as it is.
func (a *archive) section(name string) (*io.SectionReader, error) {
	f, ok := a.files[name]
	if !ok {
		return nil, fmt.Errorf("given an archive without %s, want a file of torch.save", name)
	}
	at, err := f.DataOffset()
	size := int64(f.UncompressedSize64)
	if err != nil || f.Method != zip.Store || size < 0 || at+size < at || at+size > a.r.Size() {
		return nil, fmt.Errorf("given %s compressed or beyond the end of the archive, want it as torch.save writes it", name)
	}
	return io.NewSectionReader(a.r, at, size), nil
}

// read returns the whole of a pickle.
func read(s *io.SectionReader, budget *meter.Meter) ([]byte, error) {
	if err := budget.Allocate(s.Size()); err != nil {
		return nil, err
	}
	text := make([]byte, s.Size())
	return text, budget.ReadAt(s, text, 0)
}

// piece is a tensor in an archive, in row-major order.
type piece struct {
	dtype tensor.DType
	shape []int
	data  *io.SectionReader
}

var errNoTensor = errors.New("want a tensor")

// tensor returns the tensor that a value describes.
func (a *archive) tensor(v any) (piece, error) {
	o, ok := v.(*object)
	for ok && strings.HasPrefix(string(o.class), "torch._utils._rebuild_parameter") && len(o.args) > 0 {
		o, ok = o.args[0].(*object)
	}
	if !ok || !strings.HasPrefix(string(o.class), "torch._utils._rebuild_tensor_v") || len(o.args) < 4 {
		return piece{}, fmt.Errorf("given %s: %w", describe(v), errNoTensor)
	}
	p, _ := o.args[0].(persistent)
	id, _ := p.id.(tuple)
	if len(id) < 3 {
		return piece{}, fmt.Errorf("given a tensor without memory, want the number of its memory in the archive")
	}
	kind, _ := id[1].(class)
	if o.class == "torch._utils._rebuild_tensor_v3" && len(o.args) > 6 {
		kind, _ = o.args[6].(class)
	}
	dtype, known := dtypes[kind]
	key, _ := id[2].(string)
	begin, isInt := o.args[1].(int64)
	shape, okShape := ints(o.args[2])
	strides, okStrides := ints(o.args[3])
	if !known || !isInt || !okShape || !okStrides || len(shape) != len(strides) {
		return piece{}, fmt.Errorf("given a tensor of type %q, offset %s, shape %v and strides %v, want numbers of a known type", kind, describe(o.args[1]), shape, strides)
	}
	n, ok := product(shape)
	if !ok || !slices.Equal(strides, contiguous(shape, strides)) {
		return piece{}, fmt.Errorf("given a tensor of shape %v with the strides %v, want it in row-major order", shape, strides)
	}
	memory, err := a.section("data/" + key)
	if err != nil {
		return piece{}, err
	}
	size := int64(dtype.Size())
	if begin < 0 || begin > maxElements || (begin+int64(n))*size > memory.Size() {
		return piece{}, fmt.Errorf("given a tensor of %d elements from %d on in %d bytes, want all of them there", n, begin, memory.Size())
	}
	return piece{dtype, shape, io.NewSectionReader(memory, begin*size, int64(n)*size)}, nil
}

// contiguous returns the strides of row-major order. Those of sizes of 1 do not matter.
func contiguous(shape, strides []int) []int {
	all, next := slices.Clone(strides), 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] > 1 {
			all[i] = next
		}
		next *= shape[i]
	}
	return all
}
