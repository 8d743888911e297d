package shards

import (
	"fmt"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/tensor"
)

// Load fills states of the pieces of all ranks from a file, which only the first rank has. Other
// ranks receive it tensor by tensor. all are the tensors of all ranks, own are those of this one,
// as far as it has them.
func (s *Shard) Load(w *world.World, file *safetensors.File, all, own []model.Place, states []optim.State) error {
	longest := 0
	want := map[string]safetensors.Info{}
	for _, state := range states {
		for _, p := range s.kept(state, all) {
			want[named(p, state)] = safetensors.Info{DType: tensor.F32, Shape: p.Slice.Whole}
			longest = max(longest, p.Slice.Whole.NumElements())
		}
	}
	if w.Leads() {
		if err := checkpoint.Compare(file, want); err != nil {
			return err
		}
	}
	memory, err := tensor.FromSlice(make([]float32, longest), longest)
	if err != nil {
		return fmt.Errorf("load the checkpoint: %w", err)
	}
	parts := map[string]model.Place{}
	for _, p := range own {
		parts[p.Name] = p
	}
	for _, state := range states {
		for _, p := range s.kept(state, all) {
			one := span(memory, 0, p.Slice.Whole.NumElements())
			if w.Leads() {
				shaped, err := one.Reshape(p.Slice.Whole...)
				if err != nil {
					return fmt.Errorf("load the checkpoint: %w", err)
				}
				if err := file.ReadInto(named(p, state), shaped); err != nil {
					return fmt.Errorf("load the checkpoint: %w", err)
				}
			}
			if err := w.Copy("share the checkpoint", one); err != nil {
				return err
			}
			if part, has := parts[p.Name]; has {
				s.take(state, part, tensor.Data[float32](one))
			}
		}
	}
	return nil
}

// take copies what the pieces have of a tensor of a checkpoint.
func (s *Shard) take(state optim.State, p model.Place, whole []float32) {
	s.meet([]model.Place{p}, func(i int, p model.Place, lo, hi int) {
		into := tensor.Data[float32](state.Tensors[i])
		p.Slice.Runs(lo-p.Lo, hi-p.Lo, func(at, to, n int) {
			from := at + p.Lo - s.pieces[i].lo
			copy(into[from:from+n], whole[to:to+n])
		})
	})
}
