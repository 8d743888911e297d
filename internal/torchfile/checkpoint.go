package torchfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/tensor"
)

// MetadataName is the file that makes a directory a Checkpoint.
const MetadataName = ".metadata"

// Checkpoint is a directory that torch.distributed.checkpoint has written, with tensors in pieces,
// in files that several ranks wrote, or a file of torch.save.
type Checkpoint struct {
	ctx     context.Context // of reads
	dir     string          // or the file
	tensors map[string]*Tensor
	files   map[string]*os.File
}

// Tensor is a tensor of a Checkpoint.
type Tensor struct {
	DType  tensor.DType
	Shape  tensor.Shape
	name   string
	chunks []*chunk
	places map[string]*chunk // by where chunks begin; of several there, the first
	of     *Checkpoint
}

// chunk is a box of a tensor, in a file by itself.
type chunk struct {
	at, sizes    []int
	file         string
	begin, bytes int64
	data         *io.SectionReader // nil before the first read
}

// OpenCheckpoint reads the description of a checkpoint. Every piece is in its file, which is as
// long as it must be. The caller closes the Checkpoint.
func OpenCheckpoint(ctx context.Context, dir string) (*Checkpoint, error) {
	name := filepath.Join(dir, MetadataName)
	text, err := durable.ReadRegular(name, maxPickle)
	if err != nil {
		return nil, fmt.Errorf("torchfile: %w", durable.Explain(err))
	}
	c := &Checkpoint{ctx: ctx, dir: dir, tensors: map[string]*Tensor{}, files: map[string]*os.File{}}
	root, err := unpickle(text, newMeter(ctx))
	if err == nil {
		err = c.read(root)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("torchfile: %s: %w", name, err), c.Close())
	}
	if err := c.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("torchfile: %w", err), c.Close())
	}
	return c, nil
}

// read takes the tensors from the description. Other values, such as the states of random numbers,
// are left.
func (c *Checkpoint) read(root any) error {
	described, ok := entries(field(root, "state_dict_metadata"))
	if !ok {
		return fmt.Errorf("given %s, want the Metadata of torch.distributed.checkpoint", describe(root))
	}
	left := maxChunks
	for _, pair := range described {
		size := field(pair[1], "size")
		name, ok := pair[0].(string)
		if !ok || size == nil {
			continue
		}
		t, err := readTensor(pair[1])
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		if left -= len(t.chunks); left < 0 {
			return fmt.Errorf("tensor %q: given more than %d pieces of tensors, want fewer", name, maxChunks)
		}
		t.name, t.of = name, c
		c.tensors[name] = t
	}
	places, ok := entries(field(root, "storage_data"))
	if !ok {
		return fmt.Errorf("given storage_data %s, want the place of each piece", describe(field(root, "storage_data")))
	}
	for _, pair := range places {
		name, _ := field(pair[0], "fqn").(string)
		t, ok := c.tensors[name]
		if !ok {
			continue
		}
		if err := t.place(pair[0], pair[1]); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	for _, name := range c.Names() {
		for _, k := range c.tensors[name].chunks {
			if k.file == "" {
				return fmt.Errorf("tensor %q: given no place of the piece %v at %v, want one", name, k.sizes, k.at)
			}
		}
	}
	return nil
}

func readTensor(v any) (*Tensor, error) {
	shape, ok := ints(field(v, "size"))
	if _, small := product(shape); !ok || !small {
		return nil, fmt.Errorf("given the size %s, want at most %d whole numbers", describe(field(v, "size")), maxDims)
	}
	t := &Tensor{Shape: shape, places: map[string]*chunk{}}
	kind := field(field(v, "properties"), "dtype")
	if o, ok := field(v, "properties").(*object); ok && kind == nil {
		if state, ok := o.state.(tuple); ok && len(state) > 0 {
			kind = state[0]
		}
	}
	name, _ := kind.(class)
	if t.DType, ok = dtypes[name]; !ok {
		return nil, fmt.Errorf("given the dtype %q, want one that is known", name)
	}
	pieces, ok := field(v, "chunks").(*list)
	if !ok {
		return nil, fmt.Errorf("given chunks of %s, want a list", describe(field(v, "chunks")))
	}
	if len(pieces.items) > maxChunks {
		return nil, fmt.Errorf("given %d pieces, want at most %d", len(pieces.items), maxChunks)
	}
	for _, p := range pieces.items {
		at, okAt := ints(field(p, "offsets"))
		sizes, okSizes := ints(field(p, "sizes"))
		if !okAt || !okSizes || len(at) != len(shape) || len(sizes) != len(shape) {
			return nil, fmt.Errorf("given a piece %v at %v of the shape %v, want as many numbers", sizes, at, shape)
		}
		for i := range shape {
			if at[i]+sizes[i] > shape[i] {
				return nil, fmt.Errorf("given a piece %v at %v beyond the shape %v", sizes, at, shape)
			}
		}
		k := &chunk{at: at, sizes: sizes}
		t.chunks = append(t.chunks, k)
		if where := fmt.Sprint(at); t.places[where] == nil {
			t.places[where] = k
		}
	}
	return t, nil
}

// place notes where a piece is.
func (t *Tensor) place(index, info any) error {
	at, ok := ints(field(index, "offset"))
	if !ok {
		at = make([]int, len(t.Shape)) // a whole tensor
	}
	file, _ := field(info, "relative_path").(string)
	begin, okBegin := field(info, "offset").(int64)
	bytes, okBytes := field(info, "length").(int64)
	if !filepath.IsLocal(file) || !okBegin || !okBytes || begin < 0 || bytes < 1 || begin+bytes < begin {
		return fmt.Errorf("given %s bytes from %s on in the file %q, want a part of a file in the same directory", describe(field(info, "length")), describe(field(info, "offset")), file)
	}
	if changed, ok := field(info, "transform_descriptors").(*list); ok && len(changed.items) > 0 {
		return fmt.Errorf("given a piece that is compressed or encrypted in %d steps, want it plain", len(changed.items))
	}
	if k := t.places[fmt.Sprint(at)]; k != nil {
		k.file, k.begin, k.bytes = file, begin, bytes
		return nil
	}
	return fmt.Errorf("given the place of a piece at %v, want one of those that are described", at)
}

// open opens the files of all tensors.
func (c *Checkpoint) open() error {
	need := map[string]int64{}
	for _, t := range c.tensors {
		for _, k := range t.chunks {
			need[k.file] = max(need[k.file], k.begin+k.bytes)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(need)) {
		f, err := durable.OpenRegular(filepath.Join(c.dir, name))
		if err != nil {
			return durable.Explain(err)
		}
		c.files[name] = f
		info, err := f.Stat()
		if err != nil {
			return durable.Explain(err)
		}
		if info.Size() < need[name] {
			return fmt.Errorf("%s: given %d bytes, want %d as %s says: the file is cut short", f.Name(), info.Size(), need[name], MetadataName)
		}
	}
	return nil
}

// Names returns the names of the tensors, sorted.
func (c *Checkpoint) Names() []string { return slices.Sorted(maps.Keys(c.tensors)) }

// Tensor returns a tensor, nil if there is none of that name.
func (c *Checkpoint) Tensor(name string) *Tensor { return c.tensors[name] }

// Close closes the files. It is safe to call more than once.
func (c *Checkpoint) Close() error {
	var faults []error
	for _, f := range c.files {
		faults = append(faults, f.Close())
	}
	clear(c.files)
	return errors.Join(faults...)
}

// Select returns n runs of width elements each, one after another. at says where the i-th run
// begins, as an index into the elements in row-major order.
func (t *Tensor) Select(n, width int, at func(i int) int) *io.SectionReader {
	return io.NewSectionReader(&runs{t, width, at}, 0, int64(n)*int64(width)*int64(t.DType.Size()))
}

// runs reads runs of elements as one run of bytes.
type runs struct {
	t     *Tensor
	width int
	at    func(i int) int
}

func (r *runs) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = r.readSome(p[n:], off+int64(n))
		n += k
	}
	if err != nil {
		err = fmt.Errorf("torchfile: tensor %q of %s: %w", r.t.name, r.t.of.dir, err)
	}
	return n, err
}

// readSome reads what lies together in a piece.
func (r *runs) readSome(p []byte, off int64) (int, error) {
	size := int64(r.t.DType.Size())
	first, skip := int(off/size), off%size // of bytes in the first element
	var from *chunk
	var begin, n int
	for int64(n)*size-skip < int64(len(p)) {
		i, in := (first+n)/r.width, (first+n)%r.width
		k, at, left, err := r.t.find(r.at(i) + in)
		if err != nil {
			return 0, err
		}
		if from == nil {
			from, begin = k, at
		} else if k != from || at != begin+n {
			break
		}
		n += min(left, r.width-in)
	}
	if from.data == nil {
		if err := r.t.load(from); err != nil {
			return 0, err
		}
	}
	return from.data.ReadAt(p[:min(int64(len(p)), int64(n)*size-skip)], int64(begin)*size+skip)
}

// find returns the piece that holds an element, the index of the element in it, and how many
// elements of the same row follow in the piece, itself included.
func (t *Tensor) find(element int) (k *chunk, at, left int, err error) {
	where := make([]int, len(t.Shape))
	for i := len(where) - 1; i >= 0; i-- {
		where[i] = element % t.Shape[i]
		element /= t.Shape[i]
	}
search:
	for _, k := range t.chunks {
		at, left = 0, 1
		for i, w := range where {
			if w < k.at[i] || w >= k.at[i]+k.sizes[i] {
				continue search
			}
			at, left = at*k.sizes[i]+w-k.at[i], k.at[i]+k.sizes[i]-w
		}
		return k, at, left, nil
	}
	return nil, 0, 0, fmt.Errorf("given no piece with the element %v, want the whole of %v", where, t.Shape)
}

// load finds the memory of a piece in its file.
func (t *Tensor) load(k *chunk) error {
	a, err := readArchive(t.of.ctx, io.NewSectionReader(t.of.files[k.file], k.begin, k.bytes))
	if err != nil {
		return fmt.Errorf("%s: %w", k.file, err)
	}
	p, err := a.tensor(a.root)
	if err != nil {
		return fmt.Errorf("%s: %w", k.file, err)
	}
	if p.dtype != t.DType || !slices.Equal(p.shape, k.sizes) {
		return fmt.Errorf("%s: given %v %v, want %v %v as %s says", k.file, p.dtype, p.shape, t.DType, k.sizes, MetadataName)
	}
	k.data = p.data
	return nil
}
