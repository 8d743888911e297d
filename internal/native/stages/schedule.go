package stages

import (
	"fmt"
	"time"

	"github.com/primus-fl/primus/internal/pipeline"
	"github.com/primus-fl/primus/tensor"
)

// Slot is the memory of the passes on one micro batch in one chunk of a stage.
type Slot struct{ Chunk, Index int }

// Work computes the passes of a stage.
type Work interface {
	// Forward computes the output of a slot from its input, for a micro batch.
	Forward(s Slot, microBatch int) error

	// Backward replaces the gradient of the output of a slot by that of its input. With weights it
	// also adds up the gradients of the weights, which Weights does otherwise.
	Backward(s Slot, microBatch int, weights bool) error

	// Weights adds up the gradients of the weights after a Backward without them.
	Weights(s Slot, microBatch int) error

	// Stream returns the memory of a slot that is exchanged between stages.
	Stream(s Slot) (in, out, gradient *tensor.Tensor)
}

// Link sends to other stages and receives from them while the caller goes on. Wait returns when the
// tensor may be written again, or is there.
type Link interface {
	Send(what string, to int, t *tensor.Tensor) (wait func() error)
	Receive(what string, from int, t *tensor.Tensor) (wait func() error)
}

// Schedule is what a stage does in a step.
type Schedule struct {
	Slots []int // how many the stage has of each chunk

	steps []step
}

// step is an action with the memory that it takes.
type step struct {
	pipeline.Action
	slot Slot
	near *Slot // of the chunk before it in the model, where this stage has that, too; of passes only
}

// New returns what a stage does in a program.
func New(p pipeline.Program, stage int) *Schedule {
	t := p.Table
	s := &Schedule{Slots: make([]int, t.Chunks)}
	type work struct{ chunk, microBatch int }
	taken, free := map[work]Slot{}, make([][]int, t.Chunks)
	slot := func(pass pipeline.Pass) Slot {
		w := work{pass.Chunk, pass.MicroBatch}
		if _, has := taken[w]; !has {
			if f := free[w.chunk]; len(f) > 0 {
				taken[w], free[w.chunk] = Slot{w.chunk, f[len(f)-1]}, f[:len(f)-1]
			} else {
				taken[w] = Slot{w.chunk, s.Slots[w.chunk]}
				s.Slots[w.chunk]++
			}
		}
		return taken[w]
	}
	unsent := map[work]bool{} // slots whose last message is a send that is still to come
	release := func(w work) {
		free[w.chunk] = append(free[w.chunk], taken[w].Index)
		delete(taken, w)
	}
	for i, a := range p.Actions[stage] {
		one, w := step{Action: a, slot: slot(a.Pass)}, work{a.Pass.Chunk, a.Pass.MicroBatch}
		backward := a.Pass.Kind == pipeline.BackwardInput || a.Pass.Kind == pipeline.Backward
		if a.Op == pipeline.Run && (a.Pass.Kind == pipeline.Forward || backward) {
			if depth := t.Depth(stage, a.Pass.Chunk); depth > 0 {
				if before, chunk := t.At(depth - 1); before == stage {
					near := slot(pipeline.Pass{Chunk: chunk, MicroBatch: a.Pass.MicroBatch})
					one.near = &near
				}
			}
		}
		s.steps = append(s.steps, one)
		switch {
		case a.Op == pipeline.Run && (a.Pass.Kind == pipeline.Backward || a.Pass.Kind == pipeline.BackwardWeights):
			if unsent[w] = sendsLater(p.Actions[stage][i+1:], a.Pass); !unsent[w] {
				release(w)
			}
		case a.Op == pipeline.Send && backward && unsent[w]:
			release(w)
		}
	}
	return s
}

// sendsLater reports whether the gradient of the input of a pass is sent by one of the actions.
func sendsLater(actions []pipeline.Action, of pipeline.Pass) bool {
	for _, a := range actions {
		if a.Op == pipeline.Send && a.Pass.Kind != pipeline.Forward && a.Pass.Chunk == of.Chunk && a.Pass.MicroBatch == of.MicroBatch {
			return true
		}
	}
	return false
}

// transfers wait for the messages from and to the memory of a slot that are on their way.
type transfers struct{ input, gradient, sent []func() error }

// finish waits for messages, and adds the time to waited.
func finish(waited *time.Duration, all ...*[]func() error) error {
	begin := time.Now()
	defer func() { *waited += time.Since(begin) }()
	for _, list := range all {
		for _, wait := range *list {
			if err := wait(); err != nil {
				return err
			}
		}
		*list = nil
	}
	return nil
}

// Run does all steps, and returns how long it has waited for messages, which are on their way while
// passes are computed.
func (s *Schedule) Run(link Link, work Work) (waited time.Duration, err error) {
	all := map[Slot]*transfers{}
	for chunk, n := range s.Slots {
		for i := range n {
			all[Slot{chunk, i}] = &transfers{}
		}
	}
	for _, one := range s.steps {
		if err := one.run(link, work, all[one.slot], &waited); err != nil {
			return waited, err
		}
	}
	for _, t := range all {
		if err := finish(&waited, &t.sent); err != nil {
			return waited, err
		}
	}
	return waited, nil
}

func (s step) run(link Link, work Work, t *transfers, waited *time.Duration) error {
	in, out, gradient := work.Stream(s.slot)
	forward := s.Pass.Kind == pipeline.Forward
	switch {
	case s.Op == pipeline.Receive && forward:
		t.input = append(t.input, link.Receive("receive the activations of a stage", s.Peer, in))
		return nil
	case s.Op == pipeline.Receive:
		t.gradient = append(t.gradient, link.Receive("receive the gradients of a stage", s.Peer, gradient))
		return nil
	case s.Op == pipeline.Send && forward:
		t.sent = append(t.sent, link.Send("send the activations of a stage", s.Peer, out))
		return nil
	case s.Op == pipeline.Send:
		t.sent = append(t.sent, link.Send("send the gradients of a stage", s.Peer, gradient))
		return nil
	case forward:
		if err := finish(waited, &t.input, &t.sent); err != nil {
			return err
		}
		if s.near != nil {
			_, from, _ := work.Stream(*s.near)
			if err := copyTo(in, from); err != nil {
				return err
			}
		}
		return work.Forward(s.slot, s.Pass.MicroBatch)
	case s.Pass.Kind == pipeline.BackwardWeights:
		return work.Weights(s.slot, s.Pass.MicroBatch)
	}
	if err := finish(waited, &t.gradient, &t.sent); err != nil {
		return err
	}
	if err := work.Backward(s.slot, s.Pass.MicroBatch, s.Pass.Kind == pipeline.Backward); err != nil || s.near == nil {
		return err
	}
	_, _, to := work.Stream(*s.near)
	return copyTo(to, gradient)
}

func copyTo(to, from *tensor.Tensor) error {
	if err := to.CopyFrom(from); err != nil {
		return fmt.Errorf("pass activations to the next chunk: %w", err)
	}
	return nil
}

// Forward runs one micro batch through the chunks of a stage, in their first slots.
func (p *Plan) Forward(stage int, link Link, work Work, compute func(Slot) error) error {
	s := p.shape(1)
	for chunk := range p.Chunks {
		at := Slot{Chunk: chunk}
		in, out, _ := work.Stream(at)
		depth := s.Depth(stage, chunk)
		if depth > 0 {
			before, near := s.At(depth - 1)
			if before == stage {
				_, from, _ := work.Stream(Slot{Chunk: near})
				if err := copyTo(in, from); err != nil {
					return err
				}
			} else if err := link.Receive("receive the activations of a stage", before, in)(); err != nil {
				return err
			}
		}
		if err := compute(at); err != nil {
			return err
		}
		if depth == len(p.Parts)-1 {
			continue
		}
		if next, _ := s.At(depth + 1); next != stage {
			if err := link.Send("send the activations of a stage", next, out)(); err != nil {
				return err
			}
		}
	}
	return nil
}
