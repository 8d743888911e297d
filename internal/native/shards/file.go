package shards

import (
	"errors"
	"io"
	"os"
	"unsafe"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// File is a file of tensors with the pieces of it that a rank writes. The layout is the same on all
// ranks.
type File struct {
	Name   string
	layout safetensors.Layout
	pieces []checkpoint.Piece
	names  []string // of the tensors that the pieces are parts of
}

// Whole returns a file of tensors that every rank has: each writes an equal range of its bytes.
func Whole(w *world.World, name string, tensors []model.Named, metadata map[string]string) (File, error) {
	entries := make([]safetensors.Entry, len(tensors))
	for i, n := range tensors {
		var err error
		if entries[i], err = safetensors.FromTensor(n.Name, n.Tensor); err != nil {
			return File{}, err
		}
	}
	l, err := safetensors.Arrange(entries, metadata)
	if err != nil {
		return File{}, err
	}
	f := File{Name: name, layout: l}
	first := int64(len(l.Header))
	bound := func(rank int) int64 {
		if rank == w.Ranks {
			return l.Size
		}
		return first + (l.Size-first)*int64(rank)/int64(w.Ranks)&^3 // no number of f32 is cut
	}
	lo, hi := bound(w.Rank), bound(w.Rank+1)
	for _, e := range entries {
		at := l.Begin[e.Name()]
		if from, to := max(lo, at), min(hi, at+e.Size()); from < to {
			f.pieces, f.names = append(f.pieces, checkpoint.Piece{At: from, Data: e.Data()[from-at : to-at]}), append(f.names, e.Name())
		}
	}
	return f, nil
}

// Spread returns a file of tensors of which the ranks have pieces. all are the tensors of all
// ranks, own are those of this one, as far as it has them.
func (s *Shard) Spread(name string, all, own []model.Place, states []optim.State, metadata map[string]string) (File, error) {
	var entries []safetensors.Entry
	for _, state := range states {
		for _, p := range s.kept(state, all) {
			e, err := safetensors.Stream(named(p, state), tensor.F32, p.Slice.Whole, elsewhere)
			if err != nil {
				return File{}, err
			}
			entries = append(entries, e)
		}
	}
	layout, err := safetensors.Arrange(entries, metadata)
	if err != nil {
		return File{}, err
	}
	f := File{Name: name, layout: layout}
	for _, state := range states {
		s.meet(own, func(i int, p model.Place, lo, hi int) {
			if !s.pieces[i].writes || state.Tensors[i] == nil {
				return
			}
			begin, data := layout.Begin[named(p, state)], bytes(state.Tensors[i])
			p.Slice.Runs(lo-p.Lo, hi-p.Lo, func(at, to, n int) {
				from := at + p.Lo - s.pieces[i].lo
				f.pieces = append(f.pieces, checkpoint.Piece{At: begin + 4*int64(to), Data: data[4*from : 4*(from+n)]})
				f.names = append(f.names, named(p, state))
			})
		})
	}
	return f, nil
}

// meet calls yield for each piece and each tensor that it is a part of, with the elements of the
// weight that both have.
func (s *Shard) meet(places []model.Place, yield func(piece int, p model.Place, lo, hi int)) {
	byParam := map[*model.Param][]model.Place{}
	for _, p := range places {
		byParam[p.Param] = append(byParam[p.Param], p)
	}
	for i, own := range s.pieces {
		for _, p := range byParam[own.param] {
			if lo, hi := max(own.lo, p.Lo), min(own.hi, p.Hi); lo < hi {
				yield(i, p, lo, hi)
			}
		}
	}
}

func elsewhere(io.Writer) error { return errors.New("BUG: shards: no rank has all of a tensor") }

// bytes returns the memory of f32 values.
func bytes(t *tensor.Tensor) []byte {
	values := tensor.Data[float32](t)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

// Size is the number of bytes that a rank writes of files.
func Size(files []File) (n int) {
	for _, f := range files {
		n += checkpoint.SizeOf(f.pieces)
	}
	return n
}

// Copies is memory for copies of what a rank writes; the zero value has none yet.
type Copies struct {
	memory []byte
	taken  chan struct{} // closed when the system has given all pages
}

// Reserved reports whether there is memory.
func (c *Copies) Reserved() bool { return c.memory != nil }

// Reserve makes memory for copies of files. The system gives its pages while the caller goes on.
func (c *Copies) Reserve(files []File) {
	c.memory, c.taken = make([]byte, Size(files)), make(chan struct{})
	sysmem.PreferHugePages(c.memory)
	go func(memory []byte) {
		defer close(c.taken)
		for i := 0; i < len(memory); i += os.Getpagesize() {
			memory[i] = 0
		}
	}(c.memory)
}

// Take returns files with copies of the pieces, which the workers of a pool make. They are valid
// until the next Take.
func (c *Copies) Take(files []File, pool opregistry.Pool) (copies []File) {
	if len(c.memory) < Size(files) {
		c.Reserve(files)
	}
	<-c.taken
	rest := c.memory
	for _, f := range files {
		f.pieces, rest = checkpoint.CopyPieces(rest, f.pieces, pool)
		copies = append(copies, f)
	}
	return copies
}

// Pieces calls yield for the values of each piece of a file whose tensors are f32, with the name of
// the tensor, until it returns false.
func (f File) Pieces(yield func(name string, values []float32) bool) {
	for i, p := range f.pieces {
		if !yield(f.names[i], unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(p.Data))), len(p.Data)/4)) {
			return
		}
	}
}
