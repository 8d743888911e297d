package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"unsafe"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/tensor"
)

// File is a file of tensors with the pieces of it that a rank writes. The layout is the same on all
// ranks.
type File struct {
	Name   string
	layout safetensors.Layout
	pieces []checkpoint.Piece
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
	bound := func(rank int) int64 { return first + (l.Size-first)*int64(rank)/int64(w.Ranks) }
	lo, hi := bound(w.Rank), bound(w.Rank+1)
	for _, e := range entries {
		at := l.Begin[e.Name()]
		if from, to := max(lo, at), min(hi, at+e.Size()); from < to {
			f.pieces = append(f.pieces, checkpoint.Piece{At: from, Data: e.Data()[from-at : to-at]})
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

const saving = "save a checkpoint"

// Save writes a checkpoint with files, of which every rank writes its pieces, and with what add
// adds. Only the first rank has a store and returns what it has saved.
func Save(w *world.World, store *checkpoint.Store, step int64, files []File, add func(*checkpoint.Writer) error) (saved checkpoint.Saved, err error) {
	if w.Leads() {
		saved, err = lead(w, store, step, files, add)
	} else {
		_, err = together(w, "", files)
	}
	if _, lost := errors.AsType[*world.Error](err); lost {
		return saved, err
	}
	return saved, w.Agree(saving, err)
}

// lead is Save on the first rank.
func lead(w *world.World, store *checkpoint.Store, step int64, files []File, add func(*checkpoint.Writer) error) (checkpoint.Saved, error) {
	begun := false
	saved, err := store.Save(step, func(out *checkpoint.Writer) error {
		for _, f := range files {
			if err := out.Reserve(f.Name, f.layout); err != nil {
				return err
			}
		}
		begun = true
		written, err := together(w, out.Dir(), files)
		if err != nil {
			return err
		}
		for i, f := range files {
			if err := out.Complete(f.Name, f.layout, written[i]); err != nil {
				return err
			}
		}
		return add(out)
	})
	if !begun {
		if _, lost := together(w, "", nil); lost != nil {
			return saved, lost
		}
	}
	return saved, err
}

// result is what a rank has written of each file.
type result struct {
	Written [][]checkpoint.Written `json:"written"`
	Failure string                 `json:"failure,omitempty"`
}

// together lets all ranks write their pieces of the files in a directory, which the first rank
// names, and returns what they have written of each file. Without a directory nothing is written.
func together(w *world.World, dir string, files []File) ([][]checkpoint.Written, error) {
	shared, err := w.Share(saving, []byte(dir))
	if err != nil || len(shared) == 0 {
		return nil, err
	}
	var own result
	var failure error
	for _, f := range files {
		var written []checkpoint.Written
		if failure == nil {
			written, failure = checkpoint.WritePieces(filepath.Join(string(shared), f.Name), f.pieces)
		}
		own.Written = append(own.Written, written)
	}
	if failure != nil {
		own.Failure = failure.Error()
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", saving, err)
	}
	texts, err := w.Gather(saving, text)
	if err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, failure
	}
	all := make([][]checkpoint.Written, len(files))
	for rank, text := range texts {
		var of result
		if err := json.Unmarshal(text, &of); err != nil {
			return nil, fmt.Errorf("%s: rank %d: %w", saving, rank, err)
		}
		if of.Failure != "" {
			return nil, fmt.Errorf("rank %d: %s", rank, of.Failure)
		}
		for i := range all {
			all[i] = append(all[i], of.Written[i]...)
		}
	}
	return all, nil
}
