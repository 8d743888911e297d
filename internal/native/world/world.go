package world

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
)

// World is the place of a rank in its job.
type World struct {
	collective.Group
	queue *queue // nil for one rank
	ops   *ops   // nil for one rank; parts of a World have those of the whole
}

// New returns the World of a rank, which Close ends. One rank alone needs no manager.
func New(m *opmanager.Manager, g collective.Group) *World {
	w := &World{Group: g}
	if w.Alone() {
		return w
	}
	w.queue, w.ops = newQueue(), bind(m)
	return w
}

// Single returns the World of one rank alone.
func Single() *World { return New(nil, collective.Group{Ranks: 1}) }

// Error says that a collective has failed.
type Error struct {
	What string // what was sent
	Err  error
}

// Error names what was sent, and the cause.
func (e *Error) Error() string { return e.What + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CommonError is an error that all ranks have, at the same point: they can end in order, and each
// can say why.
type CommonError struct{ Err error }

// Error returns the text of the error.
func (e *CommonError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *CommonError) Unwrap() error { return e.Err }

func wrap(what string, err error) error {
	if err != nil {
		return &Error{what, err}
	}
	return nil
}

// Alone reports whether this is the only rank.
func (w *World) Alone() bool { return w.Ranks == 1 }

// Leads reports whether this is the rank that writes the files of the run.
func (w *World) Leads() bool { return w.Rank == 0 }

// Close ends the goroutine of the collectives, after those that were asked for.
func (w *World) Close() {
	if w.queue != nil {
		close(w.queue.waiting)
	}
}

// do calls a collective after all that were asked for before, and waits for it.
func (w *World) do(what string, call func() error) error {
	return wrap(what, w.queue.ask(false, call).wait())
}

// Sum replaces each value by its sum over all ranks.
func (w *World) Sum(what string, values ...*float64) error {
	if w.Alone() {
		return nil
	}
	numbers := make([]float64, len(values))
	for i, v := range values {
		numbers[i] = *v
	}
	t := vector(numbers)
	if err := w.Total(what, t); err != nil {
		return err
	}
	for i, v := range values {
		*v = numbers[i]
	}
	return nil
}

// Largest replaces each number by the largest of all ranks.
func (w *World) Largest(what string, values []float64) error {
	if w.Alone() {
		return nil
	}
	var own []byte
	for _, v := range values {
		own = binary.LittleEndian.AppendUint64(own, math.Float64bits(v))
	}
	all, err := w.gather(what, own)
	if err != nil {
		return err
	}
	for _, other := range all {
		for i := range values {
			values[i] = max(values[i], math.Float64frombits(binary.LittleEndian.Uint64(other[8*i:])))
		}
	}
	return nil
}

// Gather returns the bytes of each rank.
func (w *World) Gather(what string, own []byte) ([][]byte, error) {
	if w.Alone() {
		return [][]byte{own}, nil
	}
	lengths, err := w.gather(what, binary.LittleEndian.AppendUint64(nil, uint64(len(own))))
	if err != nil {
		return nil, err
	}
	longest := 0
	for _, l := range lengths {
		longest = max(longest, int(binary.LittleEndian.Uint64(l)))
	}
	all, err := w.gather(what, append(own[:len(own):len(own)], make([]byte, longest-len(own))...))
	if err != nil {
		return nil, err
	}
	for i, l := range lengths {
		all[i] = all[i][:binary.LittleEndian.Uint64(l)]
	}
	return all, nil
}

// gather returns the bytes of each rank, of which all have as many.
func (w *World) gather(what string, own []byte) ([][]byte, error) {
	all := make([]byte, len(own)*w.Ranks)
	err := w.do(what, func() error {
		return w.ops.allGather.Call(collective.AllGatherArgs{Input: vector(own), Output: vector(all), Group: w.Group})
	})
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, w.Ranks)
	for i := range parts {
		parts[i] = all[i*len(own) : (i+1)*len(own)]
	}
	return parts, nil
}

// Agree returns nil if no rank has an error, and a *CommonError otherwise: that of this rank or, if
// it has none, one for the first rank that has one.
func (w *World) Agree(what string, own error) error {
	if w.Alone() {
		return own
	}
	text := ""
	if own != nil {
		text = own.Error()
	}
	all, err := w.Gather(what, []byte(text))
	if err != nil {
		return errors.Join(own, err)
	}
	for rank, text := range all {
		switch {
		case own != nil:
			return &CommonError{own}
		case len(text) > 0:
			return &CommonError{fmt.Errorf("rank %d: %s", rank, text)}
		}
	}
	return nil
}

// Share returns the bytes that the first rank has; what other ranks have is ignored.
func (w *World) Share(what string, own []byte) ([]byte, error) {
	if w.Alone() {
		return own, nil
	}
	length := []int64{int64(len(own))}
	if err := w.Copy(what, vector(length)); err != nil {
		return nil, err
	}
	if !w.Leads() {
		own = make([]byte, length[0])
	}
	return own, w.Copy(what, vector(own))
}

// Copy gives tensors the content that they have on the first rank.
func (w *World) Copy(what string, tensors ...*tensor.Tensor) error {
	if w.Alone() {
		return nil
	}
	for _, t := range tensors {
		err := w.do(what, func() error { return w.ops.broadcast.Call(collective.BroadcastArgs{Buffer: t, Group: w.Group}) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Total replaces a tensor by its sum over all ranks.
func (w *World) Total(what string, t *tensor.Tensor) error {
	return w.do(what, func() error {
		return w.ops.allReduce.Call(collective.AllReduceArgs{Input: t, Output: t, Group: w.Group})
	})
}

// TotalInto gives each rank its part of the sum of a tensor over all ranks, one part after the
// other.
func (w *World) TotalInto(what string, all, own *tensor.Tensor) error {
	return w.do(what, func() error {
		return w.ops.reduceScatter.Call(collective.ReduceScatterArgs{Input: all, Output: own, Group: w.Group})
	})
}

// GatherInto gives all ranks the inputs of all, one after the other. out has room for them.
func (w *World) GatherInto(what string, in, out *tensor.Tensor) error {
	return w.do(what, func() error {
		return w.ops.allGather.Call(collective.AllGatherArgs{Input: in, Output: out, Group: w.Group})
	})
}

// Swap gives each rank its part of the inputs of all, one after the other. All parts are of one
// length.
func (w *World) Swap(what string, in, out *tensor.Tensor) error {
	return w.do(what, func() error {
		return w.ops.allToAll.Call(collective.AllToAllArgs{Input: in, Output: out, Group: w.Group})
	})
}

// vector returns a tensor of numbers.
func vector[T tensor.Element](numbers []T) *tensor.Tensor {
	t, err := tensor.FromSlice(numbers, len(numbers))
	if err != nil {
		panic("BUG: world: " + err.Error())
	}
	return t
}
