package shards

import (
	"fmt"

	"github.com/primus-fl/primus/runtime/backends/native/checkpoint"
	"github.com/primus-fl/primus/runtime/backends/native/model"
	"github.com/primus-fl/primus/runtime/backends/native/optim"
	"github.com/primus-fl/primus/runtime/backends/native/world"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/safetensors"
)

// Load fills the state of the shards of all ranks from a file, which only the first rank has. Other
// ranks receive it tensor by tensor.
func (s *Shard) Load(w *world.World, file *safetensors.File, m *model.Model, states []optim.State) error {
	all, err := places(m)
	if err != nil {
		return err
	}
	longest := 0
	want := map[string]safetensors.Info{}
	for _, state := range states {
		for _, p := range all {
			want[p.name+"."+state.Name] = safetensors.Info{DType: tensor.F32, Shape: p.shape}
			longest = max(longest, p.hi-p.lo)
		}
	}
	if w.Leads() {
		if err := checkpoint.Compare(file, want); err != nil {
			return err
		}
	}
	memory, err := tensor.FromSlice(make([]float32, longest), longest)
	if err != nil {
		return fmt.Errorf("load the state of the optimizer: %w", err)
	}
	for _, state := range states {
		for _, p := range all {
			one := span(memory, 0, p.hi-p.lo)
			if w.Leads() {
				shaped, err := one.Reshape(p.shape...)
				if err != nil {
					return fmt.Errorf("load the state of the optimizer: %w", err)
				}
				if err := file.ReadInto(p.name+"."+state.Name, shaped); err != nil {
					return fmt.Errorf("load the checkpoint: %w", err)
				}
			}
			if err := w.Copy("share the state of the optimizer", one); err != nil {
				return err
			}
			s.take(state, p, tensor.Data[float32](one))
		}
	}
	return nil
}

// take copies what belongs to the shard from a tensor of a checkpoint.
func (s *Shard) take(state optim.State, p place, values []float32) {
	for i, own := range s.pieces {
		if lo, hi := max(own.lo, p.lo), min(own.hi, p.hi); lo < hi {
			copy(tensor.Data[float32](state.Tensors[i])[lo-own.lo:hi-own.lo], values[lo-p.lo:])
		}
	}
}
