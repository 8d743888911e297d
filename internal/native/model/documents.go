package model

import (
	"errors"

	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/tensor"
)

// documents are the sequences within the rows of a batch, as ops with packed sequences take them.
type documents struct {
	memory *tensor.Tensor // i32 [T+1]

	// starts are the tokens before each document, i32 [documents+1], in memory; nil if rows are
	// whole. Each call that takes them looks at them, so they are known on the host, too.
	starts *tensor.Tensor
}

// set finds the documents of T = len(of) tokens, of which those begin one for which begins is true.
func (d *documents) set(of []int32, begins func(i int) bool) error {
	if of == nil {
		d.starts = nil
		return nil
	}
	var starts []int32
	err := tensor.Fill(d.memory, func(all []int32) {
		starts = all[:0]
		for i := range of {
			if begins(i) {
				starts = append(starts, int32(i))
			}
		}
		starts = append(starts, int32(len(of)))
	})
	if err != nil {
		return err
	}
	d.starts, err = tensor.Known(memory.Rows(d.memory, 0, len(starts)), starts)
	return err
}

// setDocuments takes the segments and positions of a batch.
func (p *Pass) setDocuments(b Batch) error {
	if p.embedding != nil {
		if err := p.embedding.FillPlaces(p.share, b.Positions); err != nil {
			return err
		}
	}
	if p.context != nil {
		return p.context.set(&p.places, b)
	}
	return errors.Join(
		p.segments.set(b.Segments, func(i int) bool { return i%p.seq == 0 || b.Segments[i] != b.Segments[i-1] }),
		p.places.set(b.Positions, func(i int) bool { return b.Positions[i] == 0 }),
	)
}
